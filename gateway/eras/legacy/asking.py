"""Put a server's questions to a legacy client, on the stream of the call that caused them.

Source: 2025-11-25, client/elicitation, client/sampling, client/roots; a question belongs
on the POST stream of the request it comes from (basic/transports, "Sending Messages").
"""

import asyncio
import secrets
from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gateway.calls.call import InputRequired
from gateway.eras.legacy.leg import OUTLIVES_S
from gateway.eras.profile import allowed
from gateway.eras.questions import for_legacy, questions_in, refused
from gateway.eras.shapes import without
from gateway.eras.sides import Reply
from gateway.policy.phrases import duration
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
from gateway.protocol.meta import PROGRESS_TOKEN, RELATED_TASK
from gateway.protocol.revisions import Revision

CANNOT = -32601

Answering = Future[Result | Failure]


@dataclass(slots=True)
class Patience:
    """What clients that are asked in mid-call are granted; one for all sessions."""

    answer_s: float = 600.0
    """How long a client may take over one round: a person reads, thinks and types."""
    rounds: int = 10
    """Of questions in one call: what SDK clients answer before they suspect a loop."""


@dataclass(frozen=True, slots=True)
class Answers:
    by_key: dict[str, Json]
    visited: tuple[str, ...]
    """Ids that were made up here for URLs the user agreed to visit: the client expects to
    be told when that is done with."""


@dataclass(slots=True)
class Question:
    """One question on its way to the client and back."""

    method: str
    params: Fields
    is_ours: bool = False
    """Its `elicitationId` was made up here."""
    tell: Callable[[Fields], None] | None = None
    """Told how far the client is with its answer, if the server wants to know."""
    id: RequestId = ""
    answer: "Answering | None" = None

    @property
    def was_visited(self) -> bool:
        result = self.answer.result() if self.answer and self.answer.done() else None
        accepted = isinstance(result, Result) and value(result.result, "action") == "accept"
        return self.is_ours and accepted


@dataclass(slots=True, eq=False)
class Questions:
    """Open questions to one client, by the ids they were sent under."""

    revision: Revision
    capabilities: Json
    """As the client declared them; None: it answers nothing."""
    patience: Patience = field(default_factory=Patience)
    _open: dict[RequestId, Question] = field(default_factory=dict)

    def answered(self, message: Result | Failure) -> None:
        """The client answers, maybe something nobody asked."""
        question = self._open.pop(message.id, None) if message.id is not None else None
        if question is not None and question.answer and not question.answer.done():
            question.answer.set_result(message)

    def progressed(self, params: Fields) -> None:
        """The client says how far it is with an answer: its token is the question's id."""
        token = value(params, PROGRESS_TOKEN)
        question = self._open.get(token) if isinstance(token, str) else None
        if question is not None and question.tell is not None:
            question.tell(without(params, (PROGRESS_TOKEN,)))

    def give_up(self) -> None:
        """The client cannot be asked any more, and what it was asked it will not answer."""
        self.capabilities = None
        for id_ in tuple(self._open):
            self.answered(Failure(id_, CANNOT, "The client may not answer any more"))

    async def put(self, asked: InputRequired, reply: Reply, task: str | None = None) -> Answers:
        """Ask everything in this result, and wait for the answers: some may be missing if
        they became moot meanwhile.

        A refusal goes back as an error where the server understands one (a legacy server),
        and as far as there is a form for it otherwise. Raises `CannotAnswer` where there
        is none.
        """
        answers: dict[str, Json] = {}
        fitting: dict[str, Question] = {}
        for key, (method, params) in questions_in(asked.result).items():
            question = self._fitting(method, params)
            if question is not None:
                fitting[key] = question
                if asked.progressed is not None and PROGRESS_TOKEN in _meta(params):
                    question.tell = partial(asked.progressed, key)
            else:
                refusal = refused(CANNOT, f"This client cannot be asked {method}")
                answers[key] = _without_answer(method, refusal, by_legacy=asked.ours)
        try:
            for question in fitting.values():
                self._send(question, reply, task)
            async with asyncio.timeout(granted_s := self.patience.answer_s):
                await _collect(fitting, asked, answers)
        except TimeoutError:
            raise CannotAnswer(
                f"The client did not answer the server's question in time: it had "
                f"{duration(granted_s)} (`limits.answer`)"
            ) from None
        finally:
            self._take_back(fitting, asked, reply)
        visited = [str(q.params["elicitationId"]) for q in fitting.values() if q.was_visited]
        return Answers(answers, tuple(visited))

    def _fitting(self, method: str, params: Fields) -> Question | None:
        """The question as this client may be asked; None if it may not."""
        if not allowed(decoded(self.capabilities), method, params):
            return None
        is_ours = value(params, "mode") == "url" and "elicitationId" not in params
        if is_ours:
            params = {**params, "elicitationId": secrets.token_hex(8)}
        older = for_legacy(method, params, self.revision)
        return None if older is None else Question(method, older, is_ours)

    def _send(self, question: Question, reply: Reply, task: str | None) -> None:
        question.id = f"onegate-{secrets.token_hex(8)}"
        question.answer = asyncio.get_running_loop().create_future()
        self._open[question.id] = question
        meta: dict[str, Json] = {}
        if task is not None:
            meta[RELATED_TASK] = {"taskId": task}
        if question.tell is not None:
            meta[PROGRESS_TOKEN] = question.id
        kept = without(question.params, ("_meta",))
        reply.push(Request(question.id, question.method, {**kept, "_meta": meta} if meta else kept))

    def _take_back(
        self, questions: dict[str, Question], asked: InputRequired, reply: Reply
    ) -> None:
        """Nobody waits any more for answers that have not come, but for some the server."""
        for key, question in questions.items():
            deliver = asked.outlived(key) if asked.outlived else None
            if deliver is not None:
                self._leave_open(question, deliver)
            elif self._open.pop(question.id, None) is not None:
                reason = "The server no longer waits for an answer"
                params = {"requestId": question.id, "reason": reason}
                reply.push(Notification(methods.CANCELLED, params))

    def _leave_open(self, question: Question, deliver: Callable[[Json], None]) -> None:
        """The call on whose stream it was put is over; the client may still answer it."""
        assert question.answer is not None
        question.answer.add_done_callback(lambda _: deliver(_answer(question, by_legacy=True)))
        loop = asyncio.get_running_loop()
        loop.call_later(OUTLIVES_S, self._open.pop, question.id, None)


async def _collect(
    questions: dict[str, Question], asked: InputRequired, answers: dict[str, Json]
) -> None:
    """Add answers as they come, until all have, or none is wanted any more."""
    left = {question.answer: key for key, question in questions.items() if question.answer}
    moot = asked.moot
    while left and not (moot and moot.done()):
        waited: set[Future[Any]] = {*left, moot} if moot else {*left}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        for answer in [answer for answer in left if answer.done()]:
            key = left.pop(answer)
            answers[key] = _answer(questions[key], by_legacy=asked.ours)


def _meta(params: Fields) -> Fields:
    return shallow(params.get("_meta")) or {}


def _answer(question: Question, *, by_legacy: bool) -> Json:
    assert question.answer is not None
    message = question.answer.result()
    if isinstance(message, Result):
        return message.result
    refusal = refused(message.code, message.message)
    return _without_answer(question.method, refusal, by_legacy=by_legacy)


def _without_answer(method: str, refusal: dict[str, Json], *, by_legacy: bool) -> Json:
    """What the server gets instead of an answer."""
    if by_legacy:
        return refusal
    if method == "elicitation/create":
        return {"action": "cancel"}
    told = next(iter(refusal.values()))["message"]
    raise CannotAnswer(f"The server asked for {method}, and the client refused: {told}")
