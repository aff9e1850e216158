"""Keep one lane of a server running: start, watch, wait, start again."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from gateway.downstream.backoff import Exits, RestartPolicy
from gateway.downstream.connection import Connection
from gateway.downstream.environment import CannotStart
from gateway.downstream.lane import Lane, Phase
from gateway.downstream.transports.failures import asked_for_s
from gateway.downstream.transports.transport import Departure
from gateway.protocol.errors import GatewayError

log = structlog.get_logger()

LASTING_S = 1.0
"""A session that is lost sooner is a failure like others: opening the next at once would
go on for ever."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How one run ended. `kind` is the metric's word: `exit`, `signal`, `start`, `session`,
    `crashed`."""

    reason: str
    kind: str
    permanent: bool = False
    ready_for_s: float = 0.0
    later_s: float = 0.0
    """What the server asked to be left alone for."""

    @property
    def is_lapse(self) -> bool:
        """Nothing is wrong: the server has forgotten our session, as servers do."""
        return self.kind == "session" and self.ready_for_s >= LASTING_S


async def keep_running(
    lane: Lane, policy: RestartPolicy, chance: Callable[[], float] = random.random
) -> None:
    """Run, wait, run again, until cancelled. What is left running then is the canceller's."""
    exits = Exits()
    while True:
        lane.become(Phase.STARTING)
        ending = await _run_once(lane)
        if ending.is_lapse:
            lane.restarts[ending.kind] += 1
            log.info("session.lost", server=lane.server)
            continue
        now = lane.clock()
        exits = exits.after(now, policy, ending.ready_for_s, permanent=ending.permanent)
        retry = exits.retry(policy, chance())
        wait_s = max(retry.wait_s, ending.later_s)
        lane.restarts[ending.kind] += 1
        lane.next_start = now + wait_s
        lane.become(Phase.FAILED if retry.failed else Phase.WAITING, reason=ending.reason)
        (log.error if retry.failed else log.warning)(
            "server.failed" if retry.failed else "server.exited",
            server=lane.server,
            reason=ending.reason,
            next_start_s=round(wait_s, 1),
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await lane.kicked.wait()
        lane.kicked.clear()


async def contained(work: Awaitable[None], server: str) -> None:
    """Do something for one server in the task group of all: if it fails, it fails alone."""
    try:
        await work
    except GatewayError as error:
        log.info("work.failed", server=server, why=error.message)
    except Exception:  # boundary 2 of 3: a bug here must not take the gateway down
        log.exception("work.crashed", server=server)


async def _run_once(lane: Lane) -> Ending:
    try:
        connection = await lane.open()
    except CannotStart as error:
        return Ending(error.message, "start", permanent=error.permanent)
    except GatewayError as error:
        later_s = asked_for_s(error)
        return Ending(_without_name(error.message, lane.server), "start", later_s=later_s)
    except Exception:  # boundary 2 of 3: a bug costs this server a start, not the gateway
        log.exception("start.crashed", server=lane.server)
        return Ending("the gateway could not handle it; see the log", "crashed")
    try:
        return await _serve(lane, connection)
    except GatewayError as error:
        return Ending(_without_name(error.message, lane.server), "start")
    except Exception:  # boundary 2 of 3, once more
        log.exception("server.crashed", server=lane.server)
        return Ending("the gateway could not handle it; see the log", "crashed")
    finally:
        if lane.connection is None:  # never ready, or gone: nobody else will stop it
            lane.retire(connection.transport)


async def _serve(lane: Lane, connection: Connection) -> Ending:
    """From the handshake to the end. One process of a server at a time: the old one and
    what it started are gone before the next begins."""
    await lane.ready(connection)
    ready_for_s = 0.0
    if connection.is_alive:
        lane.become(Phase.READY, connection)
        _tell_started(lane, connection)
        await connection.transport.wait_closed()
        ready_for_s = lane.clock() - lane.since
    departure = await connection.transport.wait_closed()
    lane.become(Phase.WAITING, reason=departure.reason)  # no new call goes there
    await connection.transport.stop(lane.stop_grace_s)
    said = "".join(f"\n  {line}" for line in departure.stderr[-5:])
    reason = departure.reason + (f"; it last wrote:{said}" if said else "")
    return Ending(reason, _kind(departure), ready_for_s=ready_for_s)


def _tell_started(lane: Lane, connection: Connection) -> None:
    greeting = connection.greeting
    log.info(
        "server.started",
        server=lane.server,
        **_pid(connection),
        revision=greeting.revision.name,
        name=greeting.name,
        version=greeting.version,
    )


def _kind(departure: Departure) -> str:
    if departure.lapsed:
        return "session"
    return "signal" if departure.signal else "exit"


def _without_name(message: str, server: str) -> str:
    """What a sentence says of a server, for where its name stands already."""
    return message.removeprefix(f"The server {server} ").removeprefix("is ")


def _pid(connection: Connection) -> dict[str, int]:
    pid = connection.transport.pid
    return {} if pid is None else {"pid": pid}
