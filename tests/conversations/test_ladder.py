"""2026-07-28: what is checked of a request, and in which order.

Source: basic/transports/streamable-http and basic/index. Each fault alone gives its own answer;
of two, the one that is checked first.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from multidict import CIMultiDict

from tests.conversations.talking import Gate, Message, P
from tests.kit.http import ACCEPT, Answer, Modern, Wire, read
from tests.kit.waiting import run

TOOL = "every__test_routed_by_header"


@dataclass
class Shot:
    """One request in the making, right in everything until a fault is put in."""

    message: Message
    headers: CIMultiDict[str]
    verb: str = "POST"
    body: Callable[[Message], bytes] = field(default=lambda message: json.dumps(message).encode())

    @property
    def meta(self) -> Message:
        told: Message = self.message["params"]["_meta"]
        return told

    async def fire(self, wire: Wire) -> Answer:
        data = self.body(self.message)
        async with wire.http.request(
            self.verb, wire.url, data=data, headers=self.headers
        ) as response:
            return await read(response)


def aimed(wire: Modern) -> Shot:
    message = wire.message("tools/call", {"name": TOOL, "arguments": {"region": "north"}}, id_="me")
    headers = CIMultiDict({"Accept": ACCEPT, "Content-Type": "application/json"})
    headers.update(wire.routing(message))
    headers["Mcp-Param-Region"] = "north"
    return Shot(message, headers)


def foreign_origin(shot: Shot) -> None:
    shot.headers["Origin"] = "http://evil.example"


def another_verb(shot: Shot) -> None:
    shot.verb = "GET"


def unacceptable(shot: Shot) -> None:
    shot.headers["Accept"] = "text/html"


def cut_short(shot: Shot) -> None:
    whole = shot.body
    shot.body = lambda message: whole(message)[:-1]


def no_id(shot: Shot) -> None:
    del shot.message["id"]


def in_an_array(shot: Shot) -> None:
    whole = shot.body
    shot.body = lambda message: b" [" + whole(message) + b"]"


def header_twice(shot: Shot) -> None:
    shot.headers.add("Mcp-Name", TOOL)


def no_envelope(shot: Shot) -> None:
    del shot.message["params"]["_meta"]


def no_version(shot: Shot) -> None:
    del shot.meta[f"{P}protocolVersion"]


def no_capabilities(shot: Shot) -> None:
    del shot.meta[f"{P}clientCapabilities"]


def other_name(shot: Shot) -> None:
    shot.headers["Mcp-Name"] = "old__echo"


def no_method_header(shot: Shot) -> None:
    del shot.headers["Mcp-Method"]


def other_version_header(shot: Shot) -> None:
    shot.headers["MCP-Protocol-Version"] = "2025-11-25"


def future(shot: Shot) -> None:
    shot.headers["MCP-Protocol-Version"] = shot.meta[f"{P}protocolVersion"] = "2099-01-01"


def no_param(shot: Shot) -> None:
    del shot.headers["Mcp-Param-Region"]


def other_param(shot: Shot) -> None:
    shot.headers["Mcp-Param-Region"] = "south"


def unknown_method(shot: Shot) -> None:
    shot.message["method"] = shot.headers["Mcp-Method"] = "unknown/method"


Fault = Callable[[Shot], None]
RUNGS: list[tuple[int, int | None, tuple[Fault, ...]]] = [
    (403, -32600, (foreign_origin,)),
    (405, -32600, (another_verb,)),
    (406, -32600, (unacceptable,)),
    (400, -32700, (cut_short,)),
    (202, None, (no_id,)),
    (400, -32600, (in_an_array,)),
    (400, -32020, (header_twice,)),
    (400, -32602, (no_envelope, no_version, no_capabilities)),
    (400, -32020, (other_name, no_method_header, other_version_header)),
    (400, -32022, (future,)),
    (400, -32020, (no_param, other_param)),
    (404, -32601, (unknown_method,)),
]
APART = {
    (no_id, in_an_array): "an array holds no notification of its own",
    (no_param, unknown_method): "only tools/call has such headers",
    (other_param, unknown_method): "likewise",
    (other_version_header, future): "both set the same header",
    (no_envelope, future): "there is no version to change",
    (no_version, future): "likewise",
    (another_verb, other_version_header): "of a legacy client: it lacks a session",
    (another_verb, future): "of nobody knows which era",
    (no_envelope, other_version_header): "of a legacy client: it lacks a session",
    (no_version, other_version_header): "likewise",
    (other_name, unknown_method): "only three methods have such a header",
}
FAULTS = [(status, code, fault) for status, code, faults in RUNGS for fault in faults]
FIRST = [
    (status, code, first, place)
    for place, (status, code, firsts) in enumerate(RUNGS[:-2])
    for first in firsts
]


def fired(gate: Gate, *faults: Fault) -> Answer:
    async def converse() -> Answer:
        async with Modern.to(gate.url) as wire:
            shot = aimed(wire)
            for fault in reversed(faults):
                fault(shot)
            return await shot.fire(wire)

    return run(converse())


def test_a_request_without_a_fault_is_served(gate: Gate) -> None:
    answer = fired(gate)

    assert (answer.status, answer.final["id"]) == (200, "me")
    assert answer.text == "Arguments: {'region': 'north'}"


@pytest.mark.parametrize(
    ("status", "code", "fault"), FAULTS, ids=[each[-1].__name__ for each in FAULTS]
)
def test_each_fault_has_its_answer(gate: Gate, status: int, code: int | None, fault: Any) -> None:
    answer = fired(gate, fault)

    assert answer.status == status
    if code is None:
        assert answer.body == b""
    else:
        assert answer.error["code"] == code


@pytest.mark.parametrize(
    ("status", "code", "first", "place"), FIRST, ids=[each[2].__name__ for each in FIRST]
)
def test_of_two_faults_the_one_checked_first_is_told(
    gate: Gate, status: int, code: int | None, first: Any, place: int
) -> None:
    later = [fault for _, _, faults in RUNGS[place + 1 :] for fault in faults]

    async def converse() -> dict[str, tuple[int, int | None]]:
        found: dict[str, tuple[int, int | None]] = {}
        async with Modern.to(gate.url) as wire:
            for second in later:
                if (first, second) not in APART:
                    shot = aimed(wire)
                    second(shot)
                    first(shot)
                    answer = await shot.fire(wire)
                    told = answer.error["code"] if answer.body else None
                    found[second.__name__] = (answer.status, told)
        return found

    found = run(converse())

    assert found
    assert found == dict.fromkeys(found, (status, code))


@pytest.mark.parametrize(
    "fault", [no_envelope, other_name, future, no_param, unknown_method], ids=lambda f: f.__name__
)
def test_from_the_envelope_on_errors_bear_the_requests_id(gate: Gate, fault: Any) -> None:
    assert fired(gate, fault).final["id"] == "me"


def test_another_verb_is_told_which_one_there_is(gate: Gate) -> None:
    assert fired(gate, another_verb).headers["Allow"] == "POST"


def test_an_unsupported_version_is_told_what_is_supported(gate: Gate) -> None:
    """`supported` has to agree with what server/discover offers."""

    async def discovered() -> list[str]:
        async with Modern.to(gate.url) as client:
            found = (await client.request("server/discover")).result["supportedVersions"]
            return list(found)

    data = fired(gate, future).error["data"]

    assert data["requested"] == "2099-01-01"
    assert data["supported"] == run(discovered()) == ["2026-07-28"]


@pytest.mark.parametrize("field", ["protocolVersion", "clientCapabilities", "logLevel"])
@pytest.mark.parametrize("value", [7, [], "loud"])
def test_an_envelope_of_wrong_types_is_refused_as_such(gate: Gate, field: str, value: Any) -> None:
    if field == "protocolVersion" and value == "loud":
        value = {}

    def wrong(shot: Shot) -> None:
        shot.meta[f"{P}{field}"] = value

    answer = fired(gate, wrong)

    assert (answer.status, answer.error["code"]) == (400, -32602)


def test_client_info_need_not_be_there(gate: Gate) -> None:
    """It SHOULD be sent and must never be required (2026-07-28 basic/index)."""

    def anonymous(shot: Shot) -> None:
        del shot.meta[f"{P}clientInfo"]

    assert fired(gate, anonymous).status == 200


@pytest.mark.parametrize("body", [b"", b"nonsense", b'{"id":1', b"\xff\xfe", b'{"a":"\xc3"}'])
def test_what_is_no_json_is_refused_as_such(gate: Gate, body: bytes) -> None:
    def garbled(shot: Shot) -> None:
        shot.body = lambda _: body

    answer = fired(gate, garbled)

    assert (answer.status, answer.error["code"], answer.final["id"]) == (400, -32700, None)


@pytest.mark.parametrize("body", ["7", '"text"', "null", "{}", "[]", "[[]]"])
def test_what_is_no_message_is_refused_as_such(gate: Gate, body: str) -> None:
    def odd(shot: Shot) -> None:
        shot.body = lambda _: body.encode()

    answer = fired(gate, odd)

    assert (answer.status, answer.error["code"], answer.final["id"]) == (400, -32600, None)


def test_nesting_without_end_is_refused_and_hurts_nobody(gate: Gate) -> None:
    def deep(shot: Shot) -> None:
        shot.body = lambda _: b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b'{"a":' * 100_000

    assert fired(gate, deep).status == 400
    assert fired(gate).status == 200


def test_header_values_lose_blanks_around_them_and_names_have_no_case(gate: Gate) -> None:
    """RFC 9110, 5.5 and 5.1."""

    def spaced(shot: Shot) -> None:
        shot.headers["mcp-name"] = f"  {TOOL}\t"
        shot.headers["MCP-METHOD"] = " tools/call "

    assert fired(gate, spaced).status == 200


def test_header_values_are_compared_with_regard_to_case(gate: Gate) -> None:
    def shouted(shot: Shot) -> None:
        shot.headers["Mcp-Name"] = TOOL.upper()

    assert fired(gate, shouted).error["code"] == -32020
