"""Long answers from a server elsewhere, in every form they may have."""

import json
from io import BytesIO
from pathlib import Path

from aiohttp import web

from tests.kit.http import Modern, read
from tests.kit.waiting import run
from tests.remote.far import Asked, Far, served, text_of, zipped
from tests.servers.gate import failure, gate

LONG = 8 * 2**20


async def as_json(asked: Asked) -> web.StreamResponse:
    return asked.text("x" * asked.arguments["size"])


async def as_event(asked: Asked) -> web.StreamResponse:
    """All on one line, as servers do."""
    return await asked.answered(await asked.stream(), "x" * asked.arguments["size"])


async def as_gzip(asked: Asked) -> web.StreamResponse:
    result = asked.far.finished(asked.message, text_of("x" * asked.arguments["size"]))
    return zipped({"jsonrpc": "2.0", "id": asked.id, "result": result})


FORMS = {form.__name__: form for form in (as_json, as_event, as_gzip)}


def test_eight_mebibytes_come_through_in_every_form(tmp_path: Path) -> None:
    async def converse() -> None:
        async with (
            served(Far(tools=dict(FORMS))) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                for name in FORMS:
                    assert len((await client.call(f"far__{name}", {"size": LONG})).text) == LONG

    run(converse(), within_s=50)


def test_an_answer_beyond_the_bound_fails_its_call_alone(tmp_path: Path) -> None:
    """However it is wrapped, and whatever a compressed one may unfold to."""

    async def refused(client: Modern, name: str) -> None:
        answer = await client.call(f"far__{name}", {"size": 200_000})
        assert failure(answer)["kind"] == "server_error"
        assert "too long" in answer.text

    async def converse() -> None:
        async with (
            served(Far(tools=dict(FORMS))) as far,
            gate(tmp_path, {"far": {"url": far.url}}, limits={"line": "64KiB"}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                for name in FORMS:
                    await refused(client, name)
                    assert (await client.call(f"far__{name}", {"size": 3})).text == "xxx"

    run(converse())


def test_an_argument_of_a_mebibyte_arrives(tmp_path: Path) -> None:
    async def converse() -> None:
        async with served(Far()) as far, gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            async with it.modern() as client:
                text = "x" * 2**20
                message = client.message(
                    "tools/call", {"name": "far__echo", "arguments": {"text": text}}
                )
                headers = {**client.headers, **client.routing(message)}
                body = BytesIO(json.dumps(message).encode())
                async with client.http.post(it.url, data=body, headers=headers) as response:
                    assert (await read(response)).text == text

    run(converse())
