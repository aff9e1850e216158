"""The notes on Python `mcp` 1.x: 1.6.0, which a probe kills, as well as the newest."""

from mcp.server.fastmcp import Context, FastMCP

from tests.peers.servers.notes import offer_notes

server = FastMCP("notes")
offer_notes(server, Context)

if __name__ == "__main__":
    server.run()
