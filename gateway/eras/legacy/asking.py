"""Put a server's questions to a legacy client, on the stream of the call that caused them.

Source: 2025-11-25, client/elicitation, client/sampling, client/roots; a question belongs
on the POST stream of the request it comes from (basic/transports, "Sending Messages").
"""

import asyncio
import secrets
from asyncio import Future
from dataclasses import dataclass, field

from gateway.eras.profile import NEEDED_BY
from gateway.eras.questions import for_legacy, questions_in, refused
from gateway.eras.sides import Reply
from gateway.protocol import methods
from gateway.protocol.errors import CannotAnswer
from gateway.protocol.jsonrpc import (
    Failure,
    Fields,
    Json,
    Notification,
    Request,
    RequestId,
    Result,
    decoded,
    shallow,
    value,
)
from gateway.protocol.revisions import Revision

HUMAN_S = 600.0
"""How long a client may take over one round: a person reads, thinks and types."""

CANNOT = -32601


@dataclass(slots=True, eq=False)
class Questions:
    """Open questions to one client, by the ids they were sent under."""

    revision: Revision
    capabilities: Json
    """As the client declared them; None: it answers nothing."""
    _open: dict[RequestId, "Future[Result | Failure]"] = field(default_factory=dict)

    def answered(self, message: Result | Failure) -> None:
        """The client answers, maybe something nobody asked."""
        future = self._open.pop(message.id, None) if message.id is not None else None
        if future is not None and not future.done():
            future.set_result(message)

    async def put(self, result: Fields, reply: Reply, *, by_legacy: bool) -> dict[str, Json]:
        """Ask everything in this `input_required` result; return the answers by key.

        A refusal goes back as an error where the server understands one (`by_legacy`), and
        as far as there is a form for it otherwise. Raises `CannotAnswer` where there is none.
        """
        asked = questions_in(result)
        sent: dict[str, tuple[RequestId, Future[Result | Failure]]] = {}
        answers: dict[str, Json] = {}
        try:
            for key, (method, params) in asked.items():
                fitting = self._fitting(method, params)
                if fitting is None:
                    refusal = refused(CANNOT, f"This client cannot answer {method}")
                    answers[key] = _without_answer(method, refusal, by_legacy=by_legacy)
                else:
                    sent[key] = self._send(method, fitting, reply)
            async with asyncio.timeout(HUMAN_S):
                for key, (_, future) in sent.items():
                    method = asked[key][0]
                    answers[key] = _answer(method, await future, by_legacy=by_legacy)
        except TimeoutError:
            raise CannotAnswer("The client did not answer the server's question in time") from None
        finally:
            self._take_back([id_ for id_, future in sent.values() if not future.done()], reply)
        return answers

    def _fitting(self, method: str, params: Fields) -> Fields | None:
        """The params as this client may be asked; None if it may not."""
        declared = (shallow(self.capabilities) or {}).get(NEEDED_BY.get(method, ""))
        if declared is None:
            return None
        if value(params, "mode") == "url":
            if "url" not in (decoded(declared) or {}):
                return None
            if "elicitationId" not in params:
                params = {**params, "elicitationId": secrets.token_hex(8)}
        return for_legacy(method, params, self.revision)

    def _send(
        self, method: str, params: Fields, reply: Reply
    ) -> "tuple[RequestId, Future[Result | Failure]]":
        id_ = f"onegate-{secrets.token_hex(8)}"
        future: Future[Result | Failure] = asyncio.get_running_loop().create_future()
        self._open[id_] = future
        kept = {name: held for name, held in params.items() if name != "_meta"}
        reply.push(Request(id_, method, kept))
        return id_, future

    def _take_back(self, ids: list[RequestId], reply: Reply) -> None:
        """The call is over before its questions were answered: nobody waits any more."""
        for id_ in ids:
            self._open.pop(id_, None)
            params = {"requestId": id_, "reason": "The call that asked has ended"}
            reply.push(Notification(methods.CANCELLED, params))


def _answer(method: str, message: Result | Failure, *, by_legacy: bool) -> Json:
    if isinstance(message, Result):
        return message.result
    refusal = refused(message.code, message.message)
    return _without_answer(method, refusal, by_legacy=by_legacy)


def _without_answer(method: str, refusal: dict[str, Json], *, by_legacy: bool) -> Json:
    """What the server gets instead of an answer."""
    if by_legacy:
        return refusal
    if method == "elicitation/create":
        return {"action": "cancel"}
    told = next(iter(refusal.values()))["message"]
    raise CannotAnswer(f"The server asked for {method}, and the client refused: {told}")
