"""Which era to speak with a server, and who speaks it.

A question of the wrong era can kill a server (old Python SDKs) or lock it (newer
ones), so each era is tried on a process of its own. The handshake of old is safe
with every server; how long it takes tells how long to wait for the other answer.
Source: 2026-07-28, basic/transports/stdio, "Backward compatibility".
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from gateway.eras.legacy.outbound import LegacyOutbound, is_about_version
from gateway.eras.legacy.parked import Parked
from gateway.eras.modern.outbound import ModernOutbound
from gateway.eras.profile import Profile
from gateway.eras.sides import Channel, Outbound
from gateway.protocol.errors import ServerFailure
from gateway.protocol.jsonrpc import Fields
from gateway.protocol.revisions import OF_ERA, Era, Revision

Got = TypeVar("Got")

PREFERRED = (Era.MODERN, Era.LEGACY)
"""For the lists of a server that has both: the core speaks the newest."""

CONFIGURED: Mapping[str, tuple[Era, ...]] = {
    "auto": (),
    "modern": (Era.MODERN,),
    "legacy": (Era.LEGACY,),
}
"""What `protocol:` of a server says about its eras; nothing means: find out."""

SHORTEST_WAIT_S, LONGEST_WAIT_S = 1.0, 10.0
"""How much longer than the handshake a probe may take: a server that has answered one
question in t seconds and not the other after 2t will not answer it (nor do SDK
clients wait beyond 10 s)."""


class Private(msgspec.Struct, frozen=True):
    """For whom a connection is opened, if not for everybody."""

    profile: Profile
    parked: Parked


def outbound(
    era: Era, channel: Channel, us: Fields, offer: Revision, private: Private | None = None
) -> Outbound:
    """Who speaks this era over this channel."""
    if era is Era.MODERN:
        return ModernOutbound(channel, us)
    if private is None:
        return LegacyOutbound(channel, us, offer)
    return LegacyOutbound(channel, us, offer, private.profile, private.parked)


def needs_apart(era: Era) -> bool:
    """Whether clients that can be asked need connections of their own: where capabilities
    are told once, when a connection opens."""
    return era is Era.LEGACY


def offers(era: Era) -> tuple[Revision, ...]:
    """What to propose, newest first."""
    return OF_ERA[era][::-1]


def may_take_an_older_one(error: ServerFailure) -> bool:
    return is_about_version(error)


async def try_both(
    attempt: Callable[[Era], Awaitable[Got | None]],
    clock: Callable[[], float],
    give_up: Callable[[Got], object],
) -> dict[Era, Got]:
    """Open a conversation in each era at once. `attempt` returns None where it failed, and is
    cancelled where it is not worth waiting for any more. `give_up` gets what was opened in vain:
    somebody ended the trial before there was a verdict."""
    opened: list[Got] = []

    async def one(era: Era) -> Got | None:
        got = await attempt(era)
        if got is not None:
            opened.append(got)
        return got

    try:
        return await _verdict(one, clock)
    except BaseException:
        for got in opened:
            give_up(got)
        raise


async def _verdict(
    attempt: Callable[[Era], Coroutine[Any, Any, Got | None]], clock: Callable[[], float]
) -> dict[Era, Got]:
    async with asyncio.TaskGroup() as tasks:
        started = clock()
        modern = tasks.create_task(attempt(Era.MODERN))
        legacy = tasks.create_task(attempt(Era.LEGACY))
        got = {Era.LEGACY: await legacy}
        if got[Era.LEGACY] is not None:
            patience = min(max(clock() - started, SHORTEST_WAIT_S), LONGEST_WAIT_S)
            await asyncio.wait({modern}, timeout=patience)
            if not modern.done():
                modern.cancel()
        await asyncio.wait({modern})
        got[Era.MODERN] = None if modern.cancelled() else modern.result()
    return {era: found for era in PREFERRED if (found := got[era]) is not None}
