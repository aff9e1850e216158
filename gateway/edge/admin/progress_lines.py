"""Answer a call of the operator with lines of JSON: one for each progress, the answer last.

`{"progress": {"progress": 3, "total": 10, "message": …}}`, then `{"result": …}` or `{"error": …}`.
Of progress that comes faster than the operator reads only the latest is kept.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from gateway.calls.call import Emit
from gateway.calls.notices import Emitted, Progress
from gateway.edge.refusals import SERVER
from gateway.protocol.jsonrpc import as_bytes, one_line

LINES = "application/jsonl"
HEAD = {"Content-Type": LINES, "Cache-Control": "no-store", "X-Accel-Buffering": "no", **SERVER}


async def answer_in_lines(
    request: web.BaseRequest, call: Callable[[Emit], Awaitable[Mapping[str, Any]]]
) -> web.StreamResponse:
    """Make the call, telling how far it is. `call` is given where to tell that."""
    response = web.StreamResponse(headers=HEAD)
    await response.prepare(request)
    latest = _Latest()
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(_write(response, latest))
        answer = await call(latest.hear)
        writing.cancel()
    await response.write(_line(answer))
    await response.write_eof()
    return response


class _Latest:
    """The newest progress that was not told yet."""

    def __init__(self) -> None:
        self.came = asyncio.Event()
        self._held: Progress | None = None

    def hear(self, emitted: Emitted) -> None:
        if isinstance(emitted, Progress):
            self._held = emitted
            self.came.set()

    def take(self) -> Progress | None:
        self.came.clear()
        return self._held


async def _write(response: web.StreamResponse, latest: _Latest) -> None:
    while True:
        await latest.came.wait()
        progress = latest.take()
        if progress is not None:
            await response.write(_line({"progress": progress.params}))


def _line(value: object) -> bytes:
    return one_line(as_bytes(value)) + b"\n"
