"""A server whose one tool says who it is and where it can write."""

import json
import os
import sys
from pathlib import Path
from typing import Any


def writable(folders: list[str]) -> list[str]:
    """Those of the folders in which a file could be made."""
    found = []
    for folder in folders:
        try:
            file = Path(folder) / "probe"
            file.write_text("")
            file.unlink()
        except OSError:
            continue
        found.append(folder)
    return found


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "prober", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": "probe", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        told = {"uid": os.getuid(), "writable": writable(params["arguments"]["folders"])}
        return {"content": [{"type": "text", "text": json.dumps(told)}]}
    return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        said = (
            {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
        )
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)


if __name__ == "__main__":
    main()
