"""The notes on `fastmcp` 4.x."""

from fastmcp import Context, FastMCP

from tests.peers.servers.notes import offer_notes

server = FastMCP("notes")
offer_notes(server, Context)

if __name__ == "__main__":
    server.run(show_banner=False)
