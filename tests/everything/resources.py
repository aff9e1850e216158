"""The resources and the template this server offers, and how they read."""

import json
import re

from tests.everything.content import picture_blob
from tests.everything.pipe import Message
from tests.everything.refusals import NoSuchResource

WATCHED = "test://watched-resource"

RESOURCES: list[Message] = [
    {
        "uri": "test://static-text",
        "name": "static-text",
        "title": "A text",
        "description": "A text that stays the same",
        "mimeType": "text/plain",
    },
    {
        "uri": "test://static-binary",
        "name": "static-binary",
        "description": "A picture of one pixel",
        "mimeType": "image/png",
    },
    {
        "uri": WATCHED,
        "name": "watched-resource",
        "description": "A text to subscribe to; test_touch_watched_resource announces a change",
        "mimeType": "text/plain",
    },
]
TEMPLATES: list[Message] = [
    {
        "uriTemplate": "test://template/{id}/data",
        "name": "template-data",
        "description": "Data for any id",
        "mimeType": "application/json",
    }
]
_TEMPLATE = re.compile(r"test://template/([^/]+)/data")


def read(uri: str) -> Message:
    """The result of resources/read without what an era adds."""
    return {"contents": [{"uri": uri, **_content(uri)}]}


def _content(uri: str) -> Message:
    match uri:
        case "test://static-text":
            return {"mimeType": "text/plain", "text": "The text of a static resource."}
        case "test://static-binary":
            return {"mimeType": "image/png", "blob": picture_blob()}
        case "test://watched-resource":
            return {"mimeType": "text/plain", "text": "The text of a watched resource."}
    found = _TEMPLATE.fullmatch(uri)
    if found is None:
        raise NoSuchResource(uri)
    data = {"id": found[1], "templateTest": True, "data": f"What there is about {found[1]}"}
    return {"mimeType": "application/json", "text": json.dumps(data)}
