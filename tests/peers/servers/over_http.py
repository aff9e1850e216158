"""The notes over HTTP: `SDK TRANSPORT PORT [OPTION...]`.

SDK is mcp-1, mcp-2 or fastmcp; TRANSPORT streamable-http or sse; options are the SDK's own,
such as stateless_http and json_response.
"""

import sys
from typing import Any


def serve(sdk: str, transport: str, port: int, options: dict[str, bool]) -> None:
    if sdk == "mcp-1":
        from mcp.server.fastmcp import FastMCP

        from tests.peers.servers import with_mcp_1

        server: Any = with_mcp_1.server
        assert isinstance(server, FastMCP)
        for name, value in {"port": port, **options}.items():
            setattr(server.settings, name, value)
        server.run(transport)
    elif sdk == "mcp-2":
        from tests.peers.servers import with_mcp_2

        with_mcp_2.server.run(transport, port=port, **options)
    else:
        from tests.peers.servers import with_fastmcp

        with_fastmcp.server.run(
            transport=transport, host="127.0.0.1", port=port, show_banner=False, **options
        )


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), dict.fromkeys(sys.argv[4:], True))
