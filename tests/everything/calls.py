"""What a tool or prompt sees of the request it serves, the same in both eras."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.everything.pipe import Message, Pipe
from tests.everything.refusals import BadParams, MissingCapability
from tests.everything.state import open_state, sealed_state

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
CAPABILITY = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


class InputRequired(Exception):
    """A modern call can't go on: these questions have to be answered first."""

    def __init__(self, questions: dict[str, Message], state: str | None):
        super().__init__(f"Waiting for {', '.join(questions)}")
        self.questions = questions
        self.state = state

    def as_result(self) -> Message:
        result: Message = {"resultType": "input_required", "inputRequests": self.questions}
        return result | ({} if self.state is None else {"requestState": self.state})


@dataclass
class Call:
    """One request in progress. `level` is the lowest log level wanted, None for no log at all."""

    pipe: Pipe
    params: Message
    capabilities: Message
    level: str | None
    announce: Callable[[str], None]
    updated: Callable[[str], None]

    @property
    def arguments(self) -> Message:
        arguments = self.params.get("arguments", {})
        if not isinstance(arguments, dict):
            raise BadParams("arguments has to be an object")
        return arguments

    def progress(self, done: float, total: float, message: str | None = None) -> None:
        token = self.params.get("_meta", {}).get("progressToken")
        if token is None:
            return
        params = {"progressToken": token, "progress": done, "total": total}
        self.pipe.notify(
            "notifications/progress", params | ({"message": message} if message else {})
        )

    def log(self, level: str, text: str) -> None:
        if self.level is not None and LEVELS.index(level) >= LEVELS.index(self.level):
            params = {"level": level, "logger": "everything", "data": text}
            self.pipe.notify("notifications/message", params)

    def need(self, *names: str) -> None:
        """Refuse to go on for a client without these capabilities."""
        missing = [name for name in names if name not in self.capabilities]
        if missing:
            raise MissingCapability(*missing)

    async def ask(
        self, questions: dict[str, Message], *, stateful: bool = False
    ) -> dict[str, Message]:
        """The client's answers to all of these questions, by the same keys.

        `stateful` has the modern era hand out a requestState even for the first round.
        """
        self.need(*dict.fromkeys(CAPABILITY[each["method"]] for each in questions.values()))
        return await self._answers(questions, stateful)

    async def _answers(self, questions: dict[str, Message], stateful: bool) -> dict[str, Message]:
        raise NotImplementedError


class LegacyCall(Call):
    """Asks by requests of its own, all at once, while the client's request stays open."""

    async def _answers(self, questions: dict[str, Message], stateful: bool) -> dict[str, Message]:
        asked = (self.pipe.ask(each["method"], each["params"]) for each in questions.values())
        return dict(zip(questions, await asyncio.gather(*asked), strict=True))


@dataclass
class ModernCall(Call):
    """Asks by ending; the retry runs the tool from its start with the answers known so far."""

    subject: str = ""
    _known: dict[str, Message] = field(default_factory=dict)

    def __post_init__(self) -> None:
        state = self.params.get("requestState")
        if state is not None:
            self._known |= open_state(state, self.subject)
        responses = self.params.get("inputResponses", {})
        if not isinstance(responses, dict):
            raise BadParams("inputResponses has to be an object")
        self._known |= responses

    async def _answers(self, questions: dict[str, Message], stateful: bool) -> dict[str, Message]:
        given = {
            key: self._known[key]
            for key, each in questions.items()
            if is_answer(each["method"], self._known.get(key))
        }
        missing = {key: each for key, each in questions.items() if key not in given}
        if not missing:
            return given
        kept = {key: value for key, value in self._known.items() if isinstance(value, dict)}
        keep = stateful or "requestState" in self.params
        raise InputRequired(missing, sealed_state(kept, self.subject) if keep else None)


def is_answer(method: str, value: Any) -> bool:
    """Whether the client's value has the shape of an answer to that question."""
    if not isinstance(value, dict):
        return False
    match method:
        case "elicitation/create":
            return value.get("action") in ("accept", "decline", "cancel")
        case "sampling/createMessage":
            return "role" in value and "content" in value
        case _:
            return isinstance(value.get("roots"), list)
