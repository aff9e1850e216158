"""`onegate stdio`: one MCP server on stdin and stdout.

Clients start it for each conversation and wait, so the way to a running gateway imports
only what it needs; what a gateway of its own needs comes with `standing_alone`, beside the
first answers.
"""

import asyncio
import importlib
import os
import signal
from asyncio import TaskGroup
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from click import ClickException

from gateway import __version__
from gateway.cli.ending import Misconfigured, causes
from gateway.cli.ends import StandardEnds
from gateway.cli.lean import load_lean
from gateway.cli.reach import begin_reading
from gateway.config.aside import Reading
from gateway.config.environ import environment, state_folder
from gateway.edge.stdio.bridge import Bridge, Patience
from gateway.edge.stdio.footing import Footing
from gateway.edge.stdio.holding import Holding
from gateway.edge.stdio.http1 import Gone, Http
from gateway.edge.stdio.keeping import Keeping, file_of
from gateway.edge.stdio.place import Place
from gateway.edge.stdio.relay import Relay, Token
from gateway.edge.stdio.way import Way
from gateway.edge.stdio.within import Within
from gateway.edge.stdio.work import Work
from gateway.eras.manner import Learnt
from gateway.observe.stream import LineStream

DEFAULT = "http://127.0.0.1:8765/mcp"
NEITHER = (
    f"onegate: no gateway answers at {DEFAULT}, and none can be started here:\n{{}}\n"
    "Start one with `onegate serve`, name another with --url, or a configuration with -c."
)
ASKED_WITHIN_S = 0.5
IN_FRONT = Patience(0.7, 3.0)
ALONE = Patience(0.4, 20.0)
"""Loading the gateway takes a second; what is remembered is there at once."""
STOP_S = 0.4
"""Servers have this long to leave; then they are killed."""
US = {"name": "onegate", "version": __version__}


def stdio(url: str | None, file: Path | None, token: str | None, token_file: Path | None) -> None:
    """Serve until stdin ends. Raises `Misconfigured` if it cannot begin."""
    if url is not None and file is not None:
        raise Misconfigured("onegate: --url and -c exclude each other: one gateway or the other")
    if url is None and file is None and not asyncio.run(_answers(Place.parse(DEFAULT))):
        try:
            asyncio.run(_alone(None))
        except Misconfigured as nothing:
            raise Misconfigured(NEITHER.format(nothing.message)) from None
    elif url is None and file is not None:
        asyncio.run(_alone(file))
    else:
        place, given = _place(url or DEFAULT), _token(token, token_file)
        if given.is_given and not (place.is_tls or place.is_local):
            tell(f"the token goes to {place.shown} without encryption")
        asyncio.run(_in_front(place, given))


def tell(words: str) -> None:
    """One line for whoever reads the client's log, if anybody does."""
    LineStream(2).write(f"onegate: {words}\n".encode(errors="replace"))


async def _in_front(place: Place, token: Token) -> None:
    """Of a gateway that runs elsewhere."""
    ends, http = StandardEnds(), Http(place)
    remembered = (place.shown, *token.headers.values())
    async with TaskGroup() as tasks:
        holding = Holding(ends, Work(tasks), tell)
        await _converse(holding, Relay(http, token, holding.mouth.say, tell), remembered, IN_FRONT)
    http.close()
    await ends.close()


async def _alone(file: Path | None) -> None:
    """With a gateway of its own. It takes a second to load: meanwhile what was seen last
    time answers the client."""
    reading = begin_reading(file)  # beside the loading of all that comes now
    ends, stop = StandardEnds(), asyncio.Event()
    remembered = (os.getcwd(), str(file), environment().get("ONEGATE_CONFIG", ""))
    try:
        async with asyncio.timeout(None) as hurry, TaskGroup() as tasks:
            holding = Holding(ends, Work(tasks), tell, lambda: within.has_begun)
            within = Within(holding.mouth)
            tasks.create_task(_host(reading, within, stop))
            await _converse(holding, within, remembered, ALONE)
            stop.set()
            wait_s = STOP_S if within.is_open else 0.0
            hurry.reschedule(asyncio.get_running_loop().time() + wait_s)
    except TimeoutError:
        pass  # whoever had not left by then was killed
    except BaseExceptionGroup as group:
        raise next((e for e in causes(group) if isinstance(e, ClickException)), group) from None
    finally:
        reading.drop()
    await ends.close()
    if not within.is_open:  # nothing was started, and the thread that loads it would be waited for
        os._exit(0)


async def _host(reading: Reading, within: Within, stop: asyncio.Event) -> None:
    module = await asyncio.to_thread(_load, "gateway.cli.standing_alone")
    await module.host(reading, within, stop)


def _load(name: str) -> ModuleType:
    load_lean()
    return importlib.import_module(name)


async def _converse(
    holding: Holding, way: Way, remembered: Sequence[str], patience: Patience
) -> None:
    """Until the client has gone, or a signal says that it is time to."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, holding.end)
    folder = state_folder(environment())
    file = file_of(folder, remembered) if folder else None
    keeping = Keeping(file, holding.work, tell)
    footing = Footing(way, holding.mouth, holding.work, keeping, Learnt(), US)
    bridge = Bridge(footing, patience)
    await holding.hold(bridge)
    await bridge.leave()
    holding.work.end()


async def _answers(place: Place) -> bool:
    """Whether a gateway of ours listens there."""
    http = Http(place)
    try:
        async with asyncio.timeout(ASKED_WITHIN_S), await http.ask("OPTIONS", {}) as response:
            return response.headers.get("server") == "onegate"
    except (Gone, TimeoutError):
        return False
    finally:
        http.close()


def _place(url: str) -> Place:
    try:
        return Place.parse(url)
    except ValueError as wrong:
        raise Misconfigured(f"onegate: --url: {wrong}") from None


def _token(given: str | None, file: Path | None) -> Token:
    if file is not None and not os.access(file, os.R_OK):
        raise Misconfigured(f"onegate: --token-file: {file} cannot be read")
    try:
        return Token(given, file)
    except ValueError:
        said = "ONEGATE_TOKEN holds characters that no token has"
        raise Misconfigured(f"onegate: {said}") from None
