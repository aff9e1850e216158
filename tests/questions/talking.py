"""Clients that answer what they are asked in mid-call, of either era, and what they saw."""

import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kit.http import Legacy, Modern
from tests.kit.processes import ROOT
from tests.kit.waiting import eventually_async

Message = dict[str, Any]
Client = Legacy | Modern
ALL: Message = {"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}}
ERAS = ("legacy", "modern")


def asker(era: str, *flags: object, **keys: Any) -> Message:
    """A section for the asking server, in one era."""
    words = ["-S", "-m", "tests.questions.asker", "--era", era, *map(str, flags)]
    return {"command": sys.executable, "args": words, "cwd": str(ROOT), "protocol": era, **keys}


def by_words(params: Message) -> Message:
    """An answer that shows which question it is for."""
    return {"action": "accept", "content": {"answer": f"to {params.get('message')}"}}


def answer_to(question: Message) -> Message:
    """What a willing client answers; `question` is {method, params}."""
    params = question.get("params", {})
    match question["method"]:
        case "elicitation/create" if params.get("mode") == "url":
            return {"action": "accept"}
        case "elicitation/create":
            return by_words(params)
        case "sampling/createMessage":
            text = {"type": "text", "text": "a model's words"}
            return {"role": "assistant", "content": text, "model": "m", "stopReason": "endTurn"}
    return {"roots": [{"uri": "file:///here"}]}


Answering = Callable[[Message], Message | None]
"""Told {method, params}. A message with `error` is sent as one; None: never answered."""


@dataclass
class Talk:
    """One call from its beginning to its end."""

    final: Message = field(default_factory=dict)
    questions: list[Message] = field(default_factory=list)
    notices: list[Message] = field(default_factory=list)
    status: int = 0
    tokens: list[str] = field(default_factory=list)

    @property
    def result(self) -> Message:
        assert "result" in self.final, self.final
        return dict(self.final["result"])

    @property
    def error(self) -> Message:
        assert "error" in self.final, self.final
        return dict(self.final["error"])

    @property
    def text(self) -> str:
        return str(self.result["content"][0]["text"])

    @property
    def answers(self) -> list[Message]:
        """What the server says it was answered, one mapping for each round."""
        return list(self.result["structuredContent"]["answers"])


async def converse(
    client: Client,
    name: str,
    arguments: Message | None = None,
    answering: Answering = answer_to,
    **params: Any,
) -> Talk:
    """Call a tool, and answer whatever is asked on the way."""
    told = {"name": name, "arguments": arguments or {}, **params}
    if isinstance(client, Modern):
        return await rounds(client, "tools/call", told, answering)
    talk = Talk()
    async with client.opened(client.message("tools/call", told)) as stream:
        talk.status = stream.response.status
        if stream.response.content_type == "application/json":
            talk.final = json.loads(await stream.response.read())
            return talk
        while not talk.final:
            message = await stream.message()
            if "method" not in message:
                talk.final = message
            elif "id" not in message:
                talk.notices.append(message)
            else:
                talk.questions.append(message)
                await _respond(client, message, answering(message))
    return talk


async def _respond(client: Legacy, asked: Message, answer: Message | None) -> None:
    if answer is not None:
        kind = answer if set(answer) == {"error"} else {"result": answer}
        assert (await client.post({"jsonrpc": "2.0", "id": asked["id"], **kind})).status == 202


async def rounds(
    client: Modern, method: str, params: Message, answering: Answering = answer_to
) -> Talk:
    """What a client of 2026-07-28 does: calls again as long as it is asked."""
    talk, retry = Talk(), dict(params)
    for _ in range(20):
        answer = await client.request(method, retry)
        talk.status, talk.final = answer.status, answer.final
        talk.notices += answer.notices
        result = answer.final.get("result", {})
        if result.get("resultType") != "input_required":
            return talk
        given = {}
        for key, asked in result.get("inputRequests", {}).items():
            talk.questions.append(asked)
            if (said := answering(asked)) is not None:
                given[key] = said
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        talk.tokens += state.values()
        retry = {**params, "inputResponses": given, **state}
    raise AssertionError("asked without end")


@asynccontextmanager
async def client_of(
    era: str,
    url: str,
    capabilities: Message | None = None,
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[Client]:
    """A client that can be asked all, or just this. An era, or one legacy revision."""
    can = ALL if capabilities is None else capabilities
    if era == "modern":
        async with Modern.to(url, headers) as modern:
            modern.envelope.capabilities = can
            yield modern
        return
    async with Legacy.to(url, headers) as legacy:
        await legacy.initialize("2025-11-25" if era == "legacy" else era, can)
        yield legacy
        if legacy.session:
            await legacy.delete()


async def parked(client: Modern, name: str, arguments: Message | None = None) -> Message:
    """Call a tool that asks, and leave it there. Its `input_required` result."""
    result = (await client.call(name, arguments)).result
    assert result["resultType"] == "input_required", result
    return result


def retry_of(asked: Message, answering: Answering = answer_to) -> Message:
    """What of a retry belongs to its round: the answers, and the token."""
    given = {key: answering(each) for key, each in asked["inputRequests"].items()}
    return {"inputResponses": given} | {
        name: asked[name] for name in ("requestState",) if name in asked
    }


@dataclass(frozen=True)
class Heard:
    """What the processes of an asking server have read (`--record`)."""

    file: Path

    def lines(self, method: str | None = None) -> list[Message]:
        """Messages, with the pid of who read them."""
        if not self.file.exists():
            return []
        whole = self.file.read_text().rpartition("\n")[0]
        told = [json.loads(line) for line in whole.splitlines()]
        found = [{"pid": each["pid"], **each["line"]} for each in told]
        return [each for each in found if method is None or each.get("method") == method]

    def answers(self) -> list[Message]:
        return [each for each in self.lines() if "method" not in each]

    async def wait(self, what: Callable[[Message], bool]) -> Message:
        """The first message like this, once it has been read."""

        def found() -> Message | None:
            return next((each for each in self.lines() if what(each)), None)

        return dict(await eventually_async(found, 10, what=f"to be read: {self.lines()}"))


async def pid_of(client: Client, prefix: str) -> int:
    """Of the process that serves this client."""
    return int((await client.call(f"{prefix}__q_who")).text)
