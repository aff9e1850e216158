"""What an answer is written to: the connection its request came over, for as long as it takes.

An answer of one piece needs none of this. A stream does, and so does whoever has to know
that the client has gone.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from aiohttp import web

from gateway.edge.connections import Leaver, connection_of


class Wire(Protocol):
    """One request's way back to its client."""

    @property
    def task(self) -> "asyncio.Task[Any] | None":
        """The task that serves the request."""

    @property
    def is_gone(self) -> bool:
        """The client has closed the connection."""

    def end_with_client(self) -> None:
        """Cancel the task when the client goes; at once, if it has gone already."""

    def tell(self, leaver: Leaver | None) -> None:
        """Who wants to know that the client has gone; replaces who did so before."""

    def release(self) -> None:
        """The request is over: its client may go without anybody being told."""

    def be_last(self) -> None:
        """No further request shall come over this connection: `begin` is to say so."""

    async def begin(self, head: Mapping[str, str]) -> None:
        """Status 200, these headers, and a body whose length nobody knows yet."""

    async def write(self, data: bytes) -> None:
        """Send a part of the body; waits while the client does not read.

        Raises ConnectionError if it has gone.
        """

    async def end(self) -> None:
        """The body is complete."""

    def close(self) -> None:
        """Close the connection when everything is out."""

    def abort(self) -> None:
        """Close the connection now; what is not out is lost."""


class RequestWire:
    """The wire of a request that aiohttp serves: it wants a response in the end."""

    __slots__ = ("_connection", "_is_last", "_request", "_response", "task")

    def __init__(self, request: web.BaseRequest) -> None:
        """Made in the task that serves the request."""
        self.task = asyncio.current_task()
        self._request = request
        self._connection = connection_of(request)
        self._is_last = False
        self._response: web.StreamResponse | None = None

    @property
    def response(self) -> web.StreamResponse:
        """What was begun; a bare one if nothing was."""
        if self._response is None:
            self._response = web.StreamResponse()
        return self._response

    @property
    def is_gone(self) -> bool:
        return self._request.transport is None

    def end_with_client(self) -> None:
        self._connection.ends = self.task
        if self._connection.transport is None and self.task is not None:
            self.task.cancel()  # it had gone before anybody asked

    def tell(self, leaver: Leaver | None) -> None:
        self._connection.leaver = leaver

    def release(self) -> None:
        self._connection.ends = self._connection.leaver = None

    def be_last(self) -> None:
        self._is_last = True

    async def begin(self, head: Mapping[str, str]) -> None:
        self._response = web.StreamResponse(headers=head)
        if self._is_last:
            self._response.force_close()
        await self._response.prepare(self._request)

    async def write(self, data: bytes) -> None:
        await self.response.write(data)

    async def end(self) -> None:
        await self.response.write_eof()

    def close(self) -> None:
        if self._request.transport is not None:
            self._request.transport.close()

    def abort(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()
