"""The notes on Python `mcp` 2.x, which serves both eras and locks to the first one it hears."""

from mcp.server.mcpserver import Context, MCPServer

from tests.peers.servers.notes import offer_notes

server = MCPServer("notes")
offer_notes(server, Context)

if __name__ == "__main__":
    server.run("stdio")
