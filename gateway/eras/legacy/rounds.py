"""A legacy client's call, and each time the server asks for input, the same call with answers.

Source: 2026-07-28, basic/patterns/mrtr; this client was never told of it, so the gateway
does for it what clients of that revision do for themselves.
"""

import asyncio
from dataclasses import dataclass

from msgspec.structs import replace

from gateway.calls.call import Call, InputRequired, Outcome, Spent
from gateway.eras.legacy.asking import Questions
from gateway.eras.middle import Middle
from gateway.eras.questions import ANSWERED, STATE, too_many_rounds
from gateway.eras.sides import Reply
from gateway.protocol import methods
from gateway.protocol.errors import CannotAnswer
from gateway.protocol.jsonrpc import Json, Notification

AGAIN_S = 0.1
"""A server that only wants to be called again is: not in a busy loop."""


@dataclass(slots=True)
class Rounds:
    middle: Middle
    client: Questions
    reply: Reply
    takes_stream: bool
    """Without one this client cannot be asked in mid-call, whatever it declared."""
    task: str | None = None
    """The task that the questions are about, as the client knows it."""

    async def go_on(self, call: Call, asked: InputRequired) -> Outcome:
        """Serve the call to its end, from what was asked first. Raises `GatewayError`."""
        outcome: Outcome = asked
        left = most = self.client.patience.rounds
        while isinstance(outcome, InputRequired) and left:
            outcome = await self._round(call, outcome)
            left -= 1
        if not isinstance(outcome, InputRequired):
            return outcome
        self._abandon(call, outcome)
        raise too_many_rounds("The server", most)

    async def _round(self, call: Call, asked: InputRequired) -> Outcome:
        try:
            if not self.takes_stream:
                raise CannotAnswer("The server asks for input, but this client takes no stream")
            answers = await self.client.put(asked, self.reply, self.task)
            if not answers.by_key and asked.moot is None:
                await asyncio.sleep(AGAIN_S)
            outcome = await self.middle.handle(self._retry(call, asked, answers.by_key))
        except BaseException:
            self._abandon(call, asked)
            raise
        for id_ in answers.visited:
            self.reply.push(Notification(methods.ELICITED, {"elicitationId": id_}))
        return outcome

    def _retry(self, call: Call, asked: InputRequired, answers: dict[str, Json]) -> Call:
        state = {STATE: asked.result[STATE]} if STATE in asked.result else {}
        params = {**call.params, **({ANSWERED: answers} if answers else {}), **state}
        return replace(call, id=self.middle.new_id(), params=params, spent=Spent(), at=None)

    def _abandon(self, call: Call, asked: Outcome) -> None:
        """Nobody will answer: a server that waits in mid-call is told so now."""
        if isinstance(asked, InputRequired) and asked.ours:
            self.middle.abandon(self._retry(call, asked, {}))
