"""Keep a release checklist: resources that change, a template, a prompt, and completions."""

from gateway.demo.conversation import serve
from gateway.demo.server import (
    INVALID_PARAMS,
    Failure,
    Method,
    Server,
    UnknownResource,
    listing,
    object_param,
    text_param,
)
from gateway.demo.tools import Answer, Json, Tool

CHECKLIST = "release://checklist"

ITEMS = {
    "code-frozen": "The code is frozen",
    "changelog-written": "The changelog is written",
    "tests-green": "The tests are green",
    "tagged": "The release is tagged",
    "announced": "The release is announced",
}

SHOWN: dict[str, tuple[str, ...]] = {
    CHECKLIST: tuple(ITEMS),
    **{f"{CHECKLIST}/{item}": (item,) for item in ITEMS},
}
"""Every resource there is: its URI, and the items it shows."""

NEXT_VERSIONS = ("1.4.3", "1.5.0", "2.0.0")
"""What may follow 1.4.2, which is out: a fix, a feature, a break."""


class Checklist:
    """Which items have passed. It is kept in memory: a new process starts a new release."""

    def __init__(self) -> None:
        self._passed: set[str] = set()

    def mark_passed(self, item: str) -> Answer:
        changed = () if item in self._passed else (CHECKLIST, f"{CHECKLIST}/{item}")
        self._passed.add(item)
        remaining = [each for each in ITEMS if each not in self._passed]
        return Answer({"passed": item, "remaining": remaining}, changed)

    def read(self, params: Json) -> Json:
        """`resources/read`: one resource can have several contents; these have one each."""
        return {"contents": [self._contents(text_param(params, "uri"))]}

    def review(self, params: Json) -> Json:
        """`prompts/get`: what the user says, with the checklist as it stands attached."""
        if text_param(params, "name") != PROMPT["name"]:
            raise Failure(INVALID_PARAMS, f"Unknown prompt: {params['name']}")
        version = text_param(object_param(params, "arguments"), "version")
        request = (
            f"Review whether release {version} is ready to ship. Go through the checklist"
            " below, name what is missing, and end with a clear yes or no."
        )
        attached = {"type": "resource", "resource": self._contents(CHECKLIST)}
        return {
            "description": f"A review of release {version}",
            "messages": [
                {"role": "user", "content": {"type": "text", "text": request}},
                {"role": "user", "content": attached},
            ],
        }

    def methods(self) -> dict[str, Method]:
        return {
            "resources/list": listing("resources", [RESOURCE]),
            "resources/templates/list": listing("resourceTemplates", [TEMPLATE]),
            "resources/read": self.read,
            "prompts/list": listing("prompts", [PROMPT]),
            "prompts/get": self.review,
            "completion/complete": complete,
        }

    def _contents(self, uri: str) -> Json:
        if uri not in SHOWN:
            raise UnknownResource(uri)
        lines = [f"- [{'x' if item in self._passed else ' '}] {ITEMS[item]}" for item in SHOWN[uri]]
        return {"uri": uri, "mimeType": "text/markdown", "text": "\n".join(lines)}


def complete(params: Json) -> Json:
    """`completion/complete`: what may be filled in where the user is typing."""
    ref, argument = object_param(params, "ref"), object_param(params, "argument")
    place = (ref.get("type"), ref.get("name") or ref.get("uri"), argument.get("name"))
    if place == ("ref/prompt", PROMPT["name"], "version"):
        choices: tuple[str, ...] = NEXT_VERSIONS
    elif place == ("ref/resource", TEMPLATE["uriTemplate"], "item"):
        choices = tuple(ITEMS)
    else:
        raise Failure(INVALID_PARAMS, "There is nothing to complete by that name")
    typed = text_param(argument, "value")
    values = [choice for choice in choices if choice.startswith(typed)]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


RESOURCE: Json = {
    "uri": CHECKLIST,
    "name": "checklist",
    "title": "Release checklist",
    "description": "What has to be done before a release, and what is done.",
    "mimeType": "text/markdown",
}

TEMPLATE: Json = {
    "uriTemplate": f"{CHECKLIST}/{{item}}",
    "name": "checklist_item",
    "title": "Checklist item",
    "description": f"One line of the checklist. Items: {', '.join(ITEMS)}.",
    "mimeType": "text/markdown",
}

PROMPT: Json = {
    "name": "review_release",
    "title": "Review a release",
    "description": "Ask whether a release is ready, given the checklist.",
    "arguments": [
        {
            "name": "version",
            "title": "Version",
            "description": "The version about to be released, such as 1.5.0.",
            "required": True,
        }
    ],
}

MARK_PASSED: Json = {
    "name": "mark_passed",
    "title": "Mark an item as passed",
    "description": "Tick an item of the release checklist. Returns what remains to be done.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "item": {
                "type": "string",
                "description": "The item to tick.",
                "enum": list(ITEMS),
            },
        },
        "required": ["item"],
        "additionalProperties": False,
    },
    "outputSchema": {
        "type": "object",
        "properties": {
            "passed": {"type": "string"},
            "remaining": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["passed", "remaining"],
    },
    # It adds a tick and takes nothing away, and a second time changes nothing more.
    "annotations": {
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
}


def main() -> None:
    checklist = Checklist()
    serve(
        Server(
            name="release",
            title="Release checklist",
            tools=(Tool(MARK_PASSED, checklist.mark_passed),),
            methods=checklist.methods(),
            capabilities={"resources": {"subscribe": True}, "prompts": {}, "completions": {}},
            has_resource=SHOWN.__contains__,
        )
    )


if __name__ == "__main__":
    main()
