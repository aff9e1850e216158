"""Questions of a legacy server elsewhere: each on the stream of the call it belongs to."""

import asyncio
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.kit.http import Legacy
from tests.kit.waiting import run
from tests.remote.far import Asked, Message, served
from tests.remote.test_legacy import far_legacy
from tests.servers.gate import Gate, gate


class Asking:
    """A tool that asks for a name once two of it run, and answers with it."""

    def __init__(self) -> None:
        self.both = asyncio.Barrier(2)
        self.answers: dict[Any, asyncio.Future[Any]] = {}

    async def __call__(self, asked: Asked) -> web.StreamResponse:
        me = asked.arguments["me"]
        self.answers[me] = asyncio.get_running_loop().create_future()
        told = await asked.stream()
        await self.both.wait()
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        params = {"message": f"Who is {me}?", "requestedSchema": schema}
        question = {"jsonrpc": "2.0", "id": me, "method": "elicitation/create"}
        await told.event({**question, "params": params})
        answer = await self.answers[me]
        return await asked.answered(told, answer["content"]["name"])

    async def hear(self, _: web.Request, message: Message) -> web.Response | None:
        if "result" not in message:
            return None
        self.answers[message["id"]].set_result(message["result"])
        return web.Response(status=202)


def test_questions_of_two_clients_reach_each_its_own(tmp_path: Path) -> None:
    asking = Asking()

    async def one(it: Gate, me: str) -> None:
        async with it.modern() as client:
            client.envelope.capabilities = {"elicitation": {}}
            asked = (await client.call("far__asks", {"me": me})).result
            assert asked["resultType"] == "input_required"
            ((key, question),) = asked["inputRequests"].items()
            assert question["params"]["message"] == f"Who is {me}?"
            told = {key: {"action": "accept", "content": {"name": f"{me}!"}}}
            done = await client.call(
                "far__asks", {"me": me}, inputResponses=told, requestState=asked["requestState"]
            )
            assert done.text == f"{me}!"

    async def converse() -> None:
        far = far_legacy(tools={"asks": asking}, before=asking.hear)
        async with served(far), gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(one(it, "ann"))
                tasks.create_task(one(it, "bob"))

    run(converse())


def test_two_calls_of_one_session_are_each_asked_on_their_own_stream(tmp_path: Path) -> None:
    """The stream a question came on tells whose it is, so the newest call need not do."""
    asking = Asking()

    async def one(client: Legacy, me: str) -> None:
        message = client.message("tools/call", {"name": "far__asks", "arguments": {"me": me}})
        async with client.opened(message) as stream:
            question = await stream.message()
            assert question["params"]["message"] == f"Who is {me}?"
            await client.respond(
                question["id"], {"action": "accept", "content": {"name": f"{me}!"}}
            )
            answer = await stream.message()
            assert answer["result"]["content"][0]["text"] == f"{me}!"

    async def converse() -> None:
        far = far_legacy(tools={"asks": asking}, before=asking.hear)
        async with served(far), gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            async with Legacy.to(it.url) as client:
                await client.initialize("2025-06-18", {"elicitation": {}})
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(one(client, "ann"))
                    tasks.create_task(one(client, "bob"))

    run(converse())
