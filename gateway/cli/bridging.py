"""`onegate stdio`: one MCP server on stdin and stdout.

Clients start it for each conversation and wait, so the way to a running gateway imports
only what it needs; what a gateway of its own needs comes with `standing_alone`.
"""

import asyncio
import os
import signal
from asyncio import TaskGroup
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gateway import __version__
from gateway.cli.ending import Misconfigured
from gateway.cli.ends import StandardEnds
from gateway.config.environ import environment, state_folder
from gateway.edge.stdio.bridge import Bridge
from gateway.edge.stdio.holding import Holding
from gateway.edge.stdio.http1 import Gone, Http
from gateway.edge.stdio.keeping import Keeping, file_of
from gateway.edge.stdio.legacy import LegacySide
from gateway.edge.stdio.modern import ModernSide
from gateway.edge.stdio.place import Place
from gateway.edge.stdio.relay import Relay, Token
from gateway.edge.stdio.work import Work
from gateway.eras.manner import Learnt

DEFAULT = "http://127.0.0.1:8765/mcp"
ASKED_WITHIN_S = 0.5
US = {"name": "onegate", "version": __version__}


def stdio(url: str | None, file: Path | None, token: str | None, token_file: Path | None) -> None:
    """Serve until stdin ends. Raises `Misconfigured` if it cannot begin."""
    if url is not None and file is not None:
        raise Misconfigured("onegate: --url and -c exclude each other: one gateway or the other")
    if url is None and (file is not None or not asyncio.run(_answers(Place.parse(DEFAULT)))):
        _alone(file)
        return
    place, given = _place(url or DEFAULT), _token(token, token_file)
    if given.is_given and not (place.is_tls or place.is_local):
        tell(f"the token goes to {place.shown} without encryption")
    asyncio.run(_bridge(place, given))


def tell(words: str) -> None:
    """One line for whoever reads the client's log."""
    with suppress(OSError):
        os.write(2, f"onegate: {words}\n".encode(errors="replace"))


def on_signals(end: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, end)


async def _bridge(place: Place, token: Token) -> None:
    ends = StandardEnds()
    http = Http(place)
    async with TaskGroup() as tasks:
        holding = Holding(ends, Work(tasks), tell)
        on_signals(holding.end)
        work, mouth, learnt = holding.work, holding.mouth, Learnt()
        keeping = Keeping(_state_file(place, token), work, tell)
        relay = Relay(http, token, mouth.say)
        legacy = LegacySide(relay, mouth, work, keeping, learnt, US)
        modern = ModernSide(relay, mouth, work, keeping, learnt, US)
        await holding.hold(Bridge(legacy, modern, work, keeping, learnt))
        await legacy.leave()
        work.end()
    http.close()
    await ends.close()


async def _answers(place: Place) -> bool:
    """Whether a gateway of ours listens there."""
    http = Http(place)
    try:
        async with asyncio.timeout(ASKED_WITHIN_S), await http.ask("OPTIONS", {}) as response:
            return response.headers.get("server") == "onegate"
    except (Gone, TimeoutError):
        return False


def _alone(file: Path | None) -> None:
    """Without a gateway to stand in front of: one in this process."""
    from gateway.cli.standing_alone import serve_alone

    try:
        serve_alone(file)
    except Misconfigured as nothing:
        if file is not None:
            raise
        raise Misconfigured(
            f"onegate: no gateway answers at {DEFAULT}, and none can be started here:\n"
            f"{nothing.message}\n"
            "Start one with `onegate serve`, name another with --url, or a configuration with -c."
        ) from None


def _place(url: str) -> Place:
    try:
        return Place.parse(url)
    except ValueError as wrong:
        raise Misconfigured(f"onegate: --url: {wrong}") from None


def _token(given: str | None, file: Path | None) -> Token:
    if file is not None and not os.access(file, os.R_OK):
        raise Misconfigured(f"onegate: --token-file: {file} cannot be read")
    return Token(given, file)


def _state_file(place: Place, token: Token) -> Path | None:
    folder = state_folder(environment())
    return file_of(folder, place.shown, "".join(token.headers.values())) if folder else None
