"""What a caller is told about things it may not use: the same as about things that are not."""

import asyncio

import pytest
from msgspec.structs import replace

from gateway.calls.call import Call, Outcome, Verdict
from gateway.catalog.catalog import Catalog
from gateway.catalog.entries import Kind
from gateway.eras.middle import failure_data
from gateway.policy.authorize import authorize
from gateway.protocol.errors import Denied, UnknownEntry, wire_code
from tests.policy.calls import DONE, call, entry, unknown

DENIED = Verdict(allowed=False, rule="*__delete_*")


async def server(_call: Call) -> Outcome:
    return DONE


def refusal(made: Call) -> UnknownEntry:
    with pytest.raises(UnknownEntry) as caught:
        authorize(made, server)
    return caught.value


def test_an_allowed_call_goes_on() -> None:
    async def main() -> Outcome:
        return await authorize(call(), server)

    assert asyncio.run(main()) is DONE


@pytest.mark.parametrize("kind", Kind)
def test_denied_and_unknown_cannot_be_told_apart_from_outside(kind: Kind) -> None:
    missing = unknown("files__delete_all", kind)
    denied = replace(missing, entry=entry("files__delete_all", kind), verdict=DENIED)
    first, second = refusal(missing), refusal(denied)
    assert (type(first), type(second)) == (UnknownEntry, Denied)  # the record knows better
    assert first.message == second.message
    assert wire_code(first) == wire_code(second) == -32602
    assert failure_data(first) == failure_data(second)
    assert first.status == second.status


def test_a_resource_that_is_refused_names_its_uri() -> None:
    """2026-07-28, server/resources, "Error Handling"."""
    data = refusal(unknown("file:///x", Kind.RESOURCE)).data
    assert data == {"kind": "invalid", "uri": "file:///x"}
    assert refusal(unknown("no_such_tool")).message == "Unknown tool: no_such_tool"


@pytest.mark.parametrize(
    "spelt",
    [
        "FILES__delete_all", " files__delete_all", "files__delete_all\n", "files__delete\u200b_all",
        "files__ԁelete_all", "files__delete_all\0", "ﬁles__delete_all", "files__delete%5Fall",
    ],
)  # fmt: skip
def test_another_spelling_of_a_name_is_unknown(spelt: str) -> None:
    tool = entry("files__delete_all")
    catalog = Catalog(entries={(Kind.TOOL, tool.name): tool}, order={Kind.TOOL: (tool,)})
    assert catalog.resolve(Kind.TOOL, "files__delete_all") is tool
    assert catalog.resolve(Kind.TOOL, spelt) is None


def test_a_name_of_any_length_is_repeated_only_in_part() -> None:
    assert len(refusal(unknown("x" * 1_000_000)).message) < 300
