"""What the fake server offers besides running tools: lists, resources, prompts, completions."""

import argparse
import json
from typing import Any

from tests.kit.servers.fake_tools import TOOLS

Message = dict[str, Any]
MALFORMED: list[Any] = [
    {"description": "no name", "inputSchema": {"type": "object"}},
    {"name": 7, "inputSchema": {"type": "object"}},
    {"name": "no_schema"},
    "not even an object",
]
PLAIN = {"uri": "fake://plain", "name": "plain", "mimeType": "text/plain", "x-kept": {"a": [1]}}
BLOB = {"uri": "fake://blob", "name": "blob", "mimeType": "application/octet-stream"}
ITEM = {"uriTemplate": "fake://item/{id}", "name": "item", "mimeType": "text/plain"}
GREET = {"name": "greet", "arguments": [{"name": "name", "required": True}]}
WORDS = ("ada", "alan", "barbara", "edsger", "grace")


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def error(self) -> Message:
        data = {} if self.data is None else {"data": self.data}
        return {"code": self.code, "message": self.message, **data}


class Listings:
    """The lists, which tools may change, and the questions about what is in them."""

    def __init__(self, told: argparse.Namespace) -> None:
        self._told = told
        names = [name for name in TOOLS if told.only is None or name in told.only]
        tools: list[Any] = [tool(name) for name in names]
        tools += [tool(f"extra_{number}") for number in range(told.tools)]
        if told.tools_file:
            tools = json.loads(told.tools_file.read_text())
        if told.malformed:
            tools[1:1] = MALFORMED
        self.tools = tools

    def capabilities(self) -> Message:
        offered: Message = {
            "tools": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "prompts": {"listChanged": True},
            "logging": {},
            "completions": {},
        }
        return {name: value for name, value in offered.items() if name not in self._told.without}

    def answer(self, method: str, params: Message, *, modern: bool) -> Message:
        group = method.split("/")[0].replace("completion", "completions")
        if group in self._told.without:
            raise Refused(-32601, f"Method not found: {method}")
        match method:
            case "tools/list":
                return self._page("tools", self.tools, params)
            case "resources/list":
                return self._page("resources", [PLAIN, BLOB], params)
            case "resources/templates/list":
                return self._page("resourceTemplates", [ITEM], params)
            case "prompts/list":
                return self._page("prompts", [GREET, {"name": "plain"}], params)
            case "resources/read":
                return {"contents": [read(params["uri"], modern=modern)]}
            case "prompts/get":
                return prompt(params)
            case _:
                return completion(params)

    def add(self, name: str) -> None:
        self.tools.append(tool(name))

    def remove(self, name: str) -> None:
        self.tools = [each for each in self.tools if each["name"] != name]

    def _page(self, key: str, items: list[Any], params: Message) -> Message:
        size = self._told.page or len(items) or 1
        cursor = params.get("cursor")
        if self._told.stuck_cursor:
            return {key: items[:size], "nextCursor": "again"}
        if cursor is not None and not str(cursor).isdigit():
            raise Refused(-32602, "Unknown cursor")
        at = int(cursor or 0)
        page: Message = {key: items[at : at + size]}
        if at + size < len(items):
            page["nextCursor"] = str(at + size)
        return page


def tool(name: str) -> Message:
    """A definition with a field no revision knows, which must come through."""
    known = TOOLS.get(name)
    about = (known.__doc__ or "").strip() if known else "Echoes its arguments."
    return {
        "name": name,
        "description": about,
        "inputSchema": {"type": "object", "additionalProperties": True},
        "annotations": {"readOnlyHint": name == "echo"},
        "x-kept": {"order": [3, 1, 2]},
    }


def read(uri: str, *, modern: bool) -> Message:
    if uri == "fake://plain":
        return {"uri": uri, "mimeType": "text/plain", "text": "plain text"}
    if uri == "fake://blob":
        return {"uri": uri, "mimeType": "application/octet-stream", "blob": "AAEC/w=="}
    if uri.startswith("fake://item/"):
        item = uri.removeprefix("fake://item/")
        return {"uri": uri, "mimeType": "text/plain", "text": f"item {item}"}
    raise Refused(-32602 if modern else -32002, "Resource not found", {"uri": uri})


def prompt(params: Message) -> Message:
    name = params.get("name")
    if name not in ("greet", "plain"):
        raise Refused(-32602, f"Unknown prompt: {name}")
    whom = params.get("arguments", {}).get("name", "nobody")
    text = f"Please greet {whom}." if name == "greet" else "Please be plain."
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def completion(params: Message) -> Message:
    start = params["argument"]["value"]
    found = [word for word in WORDS if word.startswith(start)]
    return {"completion": {"values": found, "total": len(found), "hasMore": False}}
