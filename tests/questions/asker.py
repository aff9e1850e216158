"""The everything-server with tools that ask in every way a server can: `-m tests.questions.asker`.

    --era legacy|modern    what it speaks
    --record FILE          append each line it reads, with its pid before it
    --roots-first          asks for roots as soon as it is initialized, outside any call

`q_for_askable` is listed only for clients that can be asked something.
"""

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from tests.everything.calls import Call
from tests.everything.content import said
from tests.everything.eras import Legacy
from tests.everything.offer import Offer
from tests.everything.pipe import Message, Pipe
from tests.everything.questions import form, roots, sample
from tests.everything.refusals import Refused
from tests.everything.server import Server
from tests.everything.tools import Tool, simple_text

TEXT: Message = {"type": "string"}
ANY: Message = {"type": "object"}


def question(kind: str, words: str) -> Message:
    """One question of each kind. The words come back with the answer, so that a mix-up shows."""
    match kind:
        case "form":
            return form(words, answer=TEXT)
        case "url":
            params = {"mode": "url", "message": words, "url": "https://visit.example/?x=1"}
            return {"method": "elicitation/create", "params": params}
        case "sampling":
            return sample(words)
    return roots()


async def ask(call: Call) -> Message:
    """Asks `rounds` times, and says what was answered. `kinds`: those of each round."""
    words, kinds = call.arguments.get("words", "?"), call.arguments.get("kinds", ["form"])
    stateful, told = call.arguments.get("stateful", False), []
    for number in range(call.arguments.get("rounds", 1)):
        questions = {f"{kind}{number}": question(kind, words) for kind in kinds}
        told.append(await call.ask(questions, stateful=stateful))
    return said(f"{words} {os.getpid()}") | {"structuredContent": {"answers": told}}


async def at_once(call: Call) -> Message:
    """Legacy: sends all its questions before any is answered."""
    words = call.arguments.get("words", ["a", "b"])
    asked = (call.pipe.ask(**question("form", each)) for each in words)
    return said(str(await asyncio.gather(*asked)))


async def talk(call: Call) -> Message:
    """Says its words in every way there is before, and after, it asks."""
    words = call.arguments["words"]
    call.progress(1, 4, words)
    call.log("info", words)
    answer = (await call.ask({"it": question("form", words)}))["it"]
    call.progress(2, 4, words)
    call.log("info", words)
    return said(f"{words}: {answer.get('content', {}).get('answer')}")


async def stubborn(call: Call) -> Message:
    """Legacy: when its call is cancelled, it asks something else, about the same."""
    words = call.arguments["words"]
    try:
        await call.pipe.ask(**question("form", words))
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await call.pipe.ask(**question("form", f"again: {words}"))
    return said("given in")


async def late(call: Call) -> Message:
    """Legacy: answers, and has a question afterwards."""
    loop = asyncio.get_running_loop()
    background = asyncio.ensure_future
    loop.call_later(0.05, lambda: background(call.pipe.ask(**question("form", "late"))))
    return said("answered early")


async def impatient(call: Call) -> Message:
    """Legacy: takes its question back if nobody answers in time, and answers without."""
    try:
        async with asyncio.timeout(call.arguments.get("patience", 0.2)):
            await call.pipe.ask(**question("form", "quick!"))
    except TimeoutError:
        return said("nobody was quick")
    return said("somebody was quick")


async def curious(call: Call) -> Message:
    """Legacy: wants to hear how far its client is with the answer, if `token` is given."""
    asked, meta = sample("Think"), {"progressToken": call.arguments.get("token")}
    asked["params"] |= {"_meta": meta} if "token" in call.arguments else {}
    return said(str((await call.pipe.ask(**asked))["content"]["text"]))


class Visiting:
    """Legacy: a URL has to be visited before the call can be made."""

    def __init__(self) -> None:
        self._asked = False

    async def visit_first(self, call: Call) -> Message:
        """Refuses the first time (-32042), with the URL in the error."""
        if self._asked:
            return said("visited")
        self._asked = True
        wanted = {"url": "https://visit.example/", "message": "Visit", "elicitationId": "e-1"}
        raise Refused(-32042, "Visit first", elicitations=[{"mode": "url", **wanted}])


async def visited(call: Call) -> Message:
    """Legacy: says that what it wanted visited was."""
    call.pipe.notify("notifications/elicitation/complete", {"elicitationId": "e-1"})
    return said("told")


async def who(call: Call) -> Message:
    """Says which process this is, and what it believes of its client."""
    told = {"pid": os.getpid(), "capabilities": call.capabilities}
    return said(str(os.getpid())) | {"structuredContent": told}


async def works_on(call: Call) -> Message:
    """Asks, and works for a while when it has its answer."""
    await call.ask({"it": question("form", "before the work")})
    for done in range(100):
        call.progress(done, 100)
        await asyncio.sleep(call.arguments.get("seconds", 1) / 100)
    return said("worked")


TOOLS = {
    "q_ask": ask,
    "q_at_once": at_once,
    "q_talk": talk,
    "q_stubborn": stubborn,
    "q_late": late,
    "q_impatient": impatient,
    "q_curious": curious,
    "q_visit_first": Visiting().visit_first,
    "q_visited": visited,
    "q_who": who,
    "q_works_on": works_on,
    "q_for_askable": simple_text,
}


class Asking(Offer):
    """The tools of the everything-server are here too."""

    def __init__(self) -> None:
        super().__init__()
        self.legacy: Legacy | None = None
        more = (Tool(name, "Asks", run, ANY) for name, run in TOOLS.items())
        self._tools |= {tool.name: tool for tool in more}

    def tools(self) -> list[Message]:
        can_be_asked = self.legacy is None or bool(self.legacy.capabilities)
        return [each for each in super().tools() if can_be_asked or each["name"] != "q_for_askable"]


class Recorded:
    """Standard input, with a copy of each line in a file."""

    def __init__(self, file: Path | None) -> None:
        self._copy = file.open("ab", buffering=0) if file else None

    def readline(self) -> bytes:
        line = sys.stdin.buffer.readline()
        if self._copy and line:
            self._copy.write(b'{"pid":%d,"line":%s}\n' % (os.getpid(), line.strip()))
        return line


class Asker(Server):
    def __init__(self, pipe: Pipe, eras: frozenset[str], *, roots_first: bool) -> None:
        super().__init__(pipe, eras)
        offer = Asking()
        self._legacy.offer = self._modern.offer = offer
        offer.legacy = self._legacy if "modern" not in eras else None
        self._roots_first = roots_first
        self._asking: list[asyncio.Future[Any]] = []

    def _notified(self, message: Message) -> None:
        super()._notified(message)
        if message["method"] == "notifications/initialized" and self._roots_first:
            self._asking.append(asyncio.ensure_future(self._pipe.ask("roots/list", {})))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--era", choices=("legacy", "modern"), required=True)
    options.add_argument("--record", type=Path)
    options.add_argument("--roots-first", action="store_true")
    told = options.parse_args()
    pipe = Pipe(Recorded(told.record))  # type: ignore[arg-type]  # all a pipe reads with is readline
    asyncio.run(Asker(pipe, frozenset({told.era}), roots_first=told.roots_first).run())


if __name__ == "__main__":
    main()
