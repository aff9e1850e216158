"""What a parked call costs while nobody is there: memory."""

import gc
import tracemalloc
from asyncio import TaskGroup

from gateway.calls.call import Call, Caller, Spent
from gateway.catalog.entries import Entry, Kind, Route
from gateway.downstream.link import Link
from gateway.eras.legacy.outbound import LegacyOutbound
from gateway.eras.legacy.parked import Bounds, Parked
from gateway.eras.profile import Profile
from gateway.protocol.jsonrpc import Raw, as_bytes, raw
from gateway.protocol.revisions import BY_NAME
from tests.questions.parking import ALL, conversation, settled, token_of
from tests.questions.talking import Message

CALLS = 1000
MOST_BYTES = 20 * 1024
QUESTION: Message = {
    "mode": "form",
    "message": "Which of these? " + "words " * 60,
    "requestedSchema": {
        "type": "object",
        "properties": {f"field{n}": {"type": "string", "title": "T" * 20} for n in range(8)},
    },
}


class Sink:
    """A pipe that takes everything."""

    writable = True

    def send(self, line: bytes) -> None: ...

    async def wait_writable(self) -> None: ...


@conversation
async def test_a_parked_call_costs_less_than_twenty_kibibytes() -> None:
    parked = Parked("it", lambda: 0.0, Bounds(calls=CALLS, per_principal=CALLS))
    link = Link("it", lambda _: None, lambda _: None, lambda _: None, Sink())
    outbound = LegacyOutbound(link, {}, profile=Profile(b'{"elicitation":{}}'), parked=parked)
    link.on_asked = outbound.asked
    entry = Entry("it__ask", Route("it", Kind.TOOL, "ask"), {})
    caller = Caller(BY_NAME["2026-07-28"], "ann", capabilities=ALL, session="s")

    def call(number: int) -> Call:
        arguments = Raw(b'{"text": "%s", "number": %d}' % (b"x" * 500, number))
        params = {"name": raw("it__ask"), "arguments": arguments}
        name = f"call-{number}"
        return Call(name, "tools/call", Kind.TOOL, "it__ask", params, caller, Spent(), entry=entry)

    async def park(numbers: range) -> list[str]:
        """Each is the newest when the server asks, so it gets the question."""
        async with TaskGroup() as tasks:
            waiting = []
            for number in numbers:
                waiting.append(tasks.create_task(outbound.call(call(number))))
                await settled()
                question = {"id": number, "method": "elicitation/create", "params": QUESTION}
                link.line(as_bytes({"jsonrpc": "2.0", **question}))
        return [token_of(each.result()) for each in waiting]

    tokens = await park(range(1))
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    tokens += await park(range(1, CALLS))
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    each = (after - before) / (CALLS - 1)
    print(f"{each:.0f} bytes a parked call")
    assert len(set(tokens)) == CALLS
    assert len(parked) == CALLS
    assert each < MOST_BYTES
    parked.close("over")
    assert len(parked) == 0
    assert parked.room.taken == 0
