"""From exposed name to server: the first stage of the pipeline, and its end."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from msgspec.structs import replace

from gateway.calls.call import NOTHING_KNOWN, Call, Caller, Outcome, Verdict
from gateway.calls.pipeline import Handler
from gateway.catalog.catalog import Catalog
from gateway.catalog.entries import Entry
from gateway.protocol.errors import ServerUnavailable


class Backend(Protocol):
    """A server, as far as a call needs one."""

    async def call(self, call: Call) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class Resolve:
    """Looks up what the call is about and what the rules say. Refuses nothing itself,
    so that the record made inside it describes refused calls with all that is known.
    """

    catalog: Callable[[], Catalog]
    verdict: Callable[[Caller, Entry], Verdict]

    def __call__(self, call: Call, proceed: Handler) -> Awaitable[Outcome]:
        entry = self.catalog().resolve(call.kind, call.name)
        verdict = self.verdict(call.caller, entry) if entry else NOTHING_KNOWN
        return proceed(replace(call, entry=entry, verdict=verdict))


@dataclass(frozen=True, slots=True)
class Forward:
    """Hands the call to its server and notes how long that took."""

    backends: Mapping[str, Backend]
    clock: Callable[[], float]
    own: Mapping[str, Backend] = field(default_factory=dict)
    """What the gateway itself has on offer."""

    async def __call__(self, call: Call) -> Outcome:
        assert call.entry is not None, "authorize runs before Forward"
        server = call.entry.route.server
        backend = call.at or self.backends.get(server) or self.own.get(server)
        if backend is None:
            raise ServerUnavailable(f"The server {server} is no longer configured", server=server)
        started = self.clock()
        try:
            return await backend.call(call)
        finally:
            call.spent.server_s += self.clock() - started
