"""Questions in the middle of a call, between the two ways of asking them. Pure.

A modern server ends the call with `inputRequests` and is called again with
`inputResponses`; a legacy server sends requests while the call runs. In between both
are a map from key to question, and a map from the same keys to answers.
"""

from gateway.eras.profile import NEEDED_BY
from gateway.eras.shapes import older_block, without
from gateway.protocol import meta
from gateway.protocol.errors import CannotAnswer, InvalidMessage, InvalidParams
from gateway.protocol.jsonrpc import Fields, Json, decoded, elements, shallow, value
from gateway.protocol.revisions import Revision

ASKED, ANSWERED, STATE = "inputRequests", "inputResponses", "requestState"

REFUSED = "onegate/refused"
"""An answer that is none: the client refused with `{code, message}`. Never leaves the
gateway: a legacy server gets the error, a modern one cannot be told."""

OLDER_ONLY = frozenset({"_meta", "task", "elicitationId"})
"""Members of a legacy question that 2026-07-28 does not have."""


def questions_in(result: Fields) -> dict[str, tuple[str, Fields]]:
    """Key to method and params. Raises `InvalidMessage` if the server's map is none."""
    asked = shallow(result.get(ASKED))
    if asked is None:
        return {}
    found: dict[str, tuple[str, Fields]] = {}
    for key, held in asked.items():
        question = shallow(held) or {}
        method = value(question, "method")
        if not isinstance(method, str):
            raise InvalidMessage(f"{ASKED}.{key} has no method")
        found[key] = method, shallow(question.get("params")) or {}
    return found


def refused(code: int, message: str) -> dict[str, Json]:
    return {REFUSED: {"code": code, "message": message}}


def refusal_in(answer: Json) -> tuple[int, str] | None:
    """The error a client answered with, if it did."""
    held = shallow((shallow(answer) or {}).get(REFUSED))
    if held is None:
        return None
    code, message = value(held, "code"), value(held, "message")
    return (code if isinstance(code, int) else -1), str(message)


def given_up(method: str) -> dict[str, Json]:
    """What to tell a legacy server whose question nobody will answer any more."""
    if method == "elicitation/create":
        return {"action": "cancel"}
    return refused(-32603 if method == "roots/list" else -1, "The client did not answer")


def unknown_state() -> InvalidParams:
    """In the same words whatever is wrong with it: a thief is told nothing."""
    return InvalidParams(
        f"params.{STATE} is not, or no longer, that of a waiting call: "
        "call again without it, and without answers"
    )


def too_many_rounds(server: str, most: int) -> CannotAnswer:
    """A server that asks again and again is taken to be in a loop."""
    said = f"{server} asked for input more than {most} times in one call (`limits.rounds`)"
    return CannotAnswer(said, data={"limit": "limits.rounds"})


def for_modern(params: Fields) -> Fields:
    """A legacy question's params as a modern client may see them."""
    return {name: held for name, held in params.items() if name not in OLDER_ONLY}


def as_modern(result: Fields) -> dict[str, Json]:
    """A legacy server's questions, as 2026-07-28 puts them."""
    return {
        key: {"method": method, "params": for_modern(params)}
        for key, (method, params) in questions_in(result).items()
    }


def for_legacy(method: str, params: Fields, revision: Revision) -> Fields | None:
    """A question's params as a client of this revision may be asked; None if it cannot.

    Before 2025-11-25 there are no URLs to visit, no choices of several, no titled
    choices but by `enumNames`, and no tools in sampling.
    """
    if revision.asks_fully:
        return params
    if method == "sampling/createMessage":
        return None if "tools" in params else _older_sampling(params, revision)
    if method != "elicitation/create":
        return params
    if not revision.elicits or value(params, "mode") == "url":
        return None
    return _older_form(params)


def _older_form(params: Fields) -> Fields | None:
    schema = value(params, "requestedSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return params
    older: dict[str, Json] = {}
    for name, field in properties.items():
        if isinstance(field, dict) and field.get("type") == "array":
            return None
        older[name] = _titled(field)
    return {**params, "requestedSchema": {**schema, "properties": older}}


def _titled(field: Json) -> Json:
    choices = elements(field.get("oneOf")) if isinstance(field, dict) else None
    if not choices:
        return field
    kept = {name: held for name, held in field.items() if name != "oneOf"}
    return {
        **kept,
        "enum": [choice.get("const") for choice in choices],
        "enumNames": [choice.get("title", choice.get("const")) for choice in choices],
    }


def _older_sampling(params: Fields, revision: Revision) -> Fields | None:
    """Messages of one block each. What speaks of tools cannot be said."""
    messages: list[Json] = []
    for message in elements(params.get("messages")) or ():
        plain = decoded(message)
        held = plain.get("content") if isinstance(plain, dict) else None
        blocks = held if isinstance(held, list) else [held]
        if any(isinstance(one, dict) and "tool" in str(one.get("type")) for one in blocks):
            return None
        one_by_one = [_merged(blocks)] if _is_text(blocks) else blocks
        messages += [{**plain, "content": older_block(one, revision)} for one in one_by_one]
    return {**without(params, ("toolChoice",)), "messages": messages}


def answer_for(method: str, answer: Fields, revision: Revision) -> Fields:
    """A client's answer as a legacy server of this revision expects it: before 2025-11-25
    the model's is one block. What belongs to the client's own hop stays here."""
    held = shallow(answer.get("_meta"))
    if held is not None:
        answer = {**answer, "_meta": meta.travelling(held)}
    if revision.asks_fully or method != "sampling/createMessage":
        return answer
    blocks = elements(answer.get("content"))
    if blocks is None:
        return answer
    plain = [decoded(block) for block in blocks]
    one = _merged(plain) if _is_text(plain) else next(iter(plain), {"type": "text", "text": ""})
    return {**answer, "content": older_block(one, revision)}


def _is_text(blocks: list[Json]) -> bool:
    return all(isinstance(block, dict) and block.get("type") == "text" for block in blocks)


def _merged(blocks: list[Json]) -> Json:
    if len(blocks) == 1:
        return blocks[0]
    return {"type": "text", "text": "\n".join(str(block.get("text", "")) for block in blocks)}


def is_question(method: str) -> bool:
    return method in NEEDED_BY
