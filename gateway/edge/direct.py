"""Connections on which nothing but whole small POSTs come: nearly all there are.

Such a request is read by aiohttp's parser and answered in one write, by one task, with no
request or response object in between: a third of what it costs otherwise. At the first
request that is anything else (another method or path, a large body or one in chunks, one
in one piece with the next, what the parser refuses), the connection is handed to
aiohttp's own handler, which gets every byte of that request and keeps the connection.
Nothing is decided here about what a request means.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import Protocol, cast

import structlog
from aiohttp import StreamReader
from aiohttp.http import HttpRequestParser, RawRequestMessage

from gateway.edge.connections import IDLE_S, Connections, Leaver
from gateway.edge.crowd import BUSY, Crowd
from gateway.edge.heads import HEAD_END, Heads
from gateway.edge.parsing import MOST_BYTES, UNREAD, needed, new_parser
from gateway.edge.pulse import Pulse
from gateway.edge.refusals import JSON, SERVER, Refused
from gateway.edge.request_head import RequestHead
from gateway.edge.wire import Wire
from gateway.eras.sides import Answer, Headers

log = structlog.get_logger()

LAST = {"Connection": "close"}


class Post(Protocol):
    """Answers one POST; None if the answer was a stream, and is out."""

    def __call__(self, head: RequestHead, body: bytes, wire: Wire) -> Awaitable[Answer | None]: ...


class Directs:
    """The connections of one listener that aiohttp's handler has not got (yet)."""

    def __init__(
        self,
        serve: Post,
        pulse: Pulse,
        crowd: Crowd,
        handlers: Connections,
        heads: Heads,
    ) -> None:
        """`handlers` makes those that take over."""
        self.serve = serve
        self.pulse = pulse
        self.crowd = crowd
        self.handlers = handlers
        self.open: set[Direct] = set()
        self.loop = asyncio.get_running_loop()
        self.heads = heads
        self._emptied: asyncio.Event | None = None

    def __call__(self) -> "Direct":
        return Direct(self)

    @property
    def is_draining(self) -> bool:
        """Every request from now on is the last on its connection."""
        return self.handlers.is_draining

    def close_idle(self) -> None:
        """Close each connection as soon as nothing is being answered on it."""
        for one in tuple(self.open):
            one.close_when_idle()

    def forget(self, one: "Direct") -> None:
        """It is closed, or aiohttp's handler has got it."""
        self.open.discard(one)
        if self._emptied is not None and not self.open:
            self._emptied.set()

    async def shutdown(self, within_s: float) -> None:
        """Wait until what is under way is answered and read, then end what is left."""
        if self.open:
            self._emptied = asyncio.Event()
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._emptied.wait()
        left = [one.task for one in self.open if one.task is not None]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=within_s)
        for one in tuple(self.open):
            one.abort()
        self.open.clear()


class Direct(asyncio.Protocol):
    """One of them. Implements `wire.Wire` for the request being served."""

    __slots__ = (
        "_closes",
        "_drained",
        "_early",
        "_ends",
        "_head",
        "_leaver",
        "_message",
        "_needed",
        "_owner",
        "_parser",
        "_payload",
        "_raw",
        "_since_s",
        "_unlike",
        "_unmoved_s",
        "_unsent",
        "heard",
        "task",
        "transport",
    )

    def __init__(self, owner: Directs) -> None:
        self._owner = owner
        self.transport: asyncio.Transport | None = None
        self.task: asyncio.Task[None] | None = None
        self.heard = False
        """A whole request has come in."""
        self._parser: HttpRequestParser | None = None
        self._raw = b""
        """Of the request that is coming in."""
        self._message: RawRequestMessage | None = None
        """Its head, once that is there."""
        self._payload: StreamReader | None = None
        """What the parser makes of its body: asked only whether all of that is there."""
        self._needed = 0
        self._head: RequestHead | None = None
        """Of the last request, if it would be known again."""
        self._unlike = 0
        """How many heads in a row were unlike the one before."""
        self._early = b""
        """What came while a request was being served."""
        self._closes = False
        self._ends = False
        self._leaver: Leaver | None = None
        self._drained: asyncio.Future[None] | None = None
        self._since_s = self._unmoved_s = owner.pulse.now_s
        self._unsent = 0

    # --- asyncio.Protocol ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if self._owner.crowd.admits(transport, self._since_s):
            self._owner.open.add(self)
            return
        self.transport.write(BUSY)
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self.task is not None:  # ahead of its turn
            self._early += data
            if len(self._early) > MOST_BYTES and self.transport is not None:
                self.transport.pause_reading()  # only now: who does not read hears nobody leave
            return
        if self._raw:
            whole = self._raw + data
        else:
            head = self._head
            if head is not None and len(data) <= MOST_BYTES:
                body = head.body_of(data)
                if body is not None:
                    self._unlike = 0
                    self.task = self._owner.loop.create_task(self._serve(head, body))
                    return
            whole = data
            self._since_s = self._owner.pulse.now_s
        if not self._feed(data, whole):
            self._hand_over(whole)
        elif self._message is None or len(whole) < self._needed:
            self._raw = whole
        else:
            self._begin(self._message, whole)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._owner.forget(self)
        if self._drained is not None and not self._drained.done():
            self._drained.set_exception(ConnectionResetError("the client has gone"))
            self._drained.exception()  # perhaps nobody waits
        if self._ends and self.task is not None:
            self.task.cancel()
        if self._leaver is not None:
            self._leaver.lost()

    def pause_writing(self) -> None:
        self._drained = self._owner.loop.create_future()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    # --- a request ---

    def _feed(self, data: bytes, whole: bytes) -> bool:
        """Let the parser read on. False: this is not for us. `whole` is all there is of the
        request, up to now."""
        try:
            parser = self._parser
            if parser is None:
                owner = self._owner
                parser = self._parser = new_parser(owner.loop, owner.handlers.header_bytes)
            messages, _, _ = parser.feed_data(data)
        except UNREAD:
            return False
        if not messages:
            return len(whole) <= (self._needed if self._message else MOST_BYTES)
        if self._message is not None or len(messages) > 1:
            return False
        self._message, self._payload = messages[0]
        self._needed = needed(self._message, whole)
        return len(whole) <= self._needed <= MOST_BYTES

    def _begin(self, message: RawRequestMessage, whole: bytes) -> None:
        if self._payload is None or not self._payload.is_eof():
            self._hand_over(whole)  # two readers of one request have to agree where it ends
            return
        self._raw, self._message, self._payload = b"", None, None
        self.heard = True
        self._closes = self._closes or message.should_close
        start = whole.find(HEAD_END) + len(HEAD_END)
        head = RequestHead(cast(Headers, message.headers))
        self._unlike += 1
        worth_it = RequestHead.is_worth_it(self._unlike)
        self._head = head.remember(whole[:start]) if worth_it else None
        self.task = self._owner.loop.create_task(self._serve(head, whole[start:]))

    async def _serve(self, head: RequestHead, body: bytes) -> None:
        try:
            answer = await self._owner.serve(head, body, self)
            if answer is not None:
                self._answer(answer)
            if self._drained is not None:
                await self._drain()
        except ConnectionError:
            self.abort()
        except Exception:  # boundary 1 of 3, where the endpoint itself has failed
            log.exception("request.crashed", method="POST")
            self.abort()
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            self.task = None
        self._next()

    def _answer(self, answer: Answer) -> None:
        if self.transport is None:
            return
        self._closes = self._closes or self._owner.is_draining
        body = answer.body
        if answer.status == 200 and body is not None and not (answer.headers or self._closes):
            head = self._owner.heads.usual(len(body))
            if len(body) < MOST_BYTES:
                self.transport.write(head + body)
            else:
                self.transport.writelines((head, body))
            return
        headers = {**(SERVER if body is None else JSON), **answer.headers}
        if answer.status != 204:
            headers["Content-Length"] = str(len(body or b""))
        if self._closes:
            headers |= LAST
        self._closes = headers.get("Connection") == "close"
        self.transport.write(self._owner.heads.of(answer.status, headers) + (body or b""))

    def _next(self) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        if self._closes:
            self.transport.close()
            return
        self._since_s = self._owner.pulse.now_s
        if self._early:
            early, self._early = self._early, b""
            self.transport.resume_reading()
            self.data_received(early)

    def _hand_over(self, data: bytes) -> None:
        transport, self.transport = self.transport, None
        self._owner.forget(self)
        if transport is None:
            return
        handler = self._owner.handlers.taking_over(heard=self.heard)
        transport.set_protocol(handler)
        handler.connection_made(transport)
        handler.data_received(data)

    # --- wire.Wire ---

    @property
    def is_gone(self) -> bool:
        return self.transport is None

    def end_with_client(self) -> None:
        self._ends = True
        if self.transport is None and self.task is not None:
            self.task.cancel()  # it had gone before anybody asked

    def tell(self, leaver: Leaver | None) -> None:
        self._leaver = leaver

    def release(self) -> None:
        self._ends, self._leaver = False, None

    def be_last(self) -> None:
        self._closes = True

    async def begin(self, head: Mapping[str, str]) -> None:
        self._closes = self._closes or self._owner.is_draining
        headers = {**head, "Transfer-Encoding": "chunked", **(LAST if self._closes else {})}
        await self._send(self._owner.heads.of(200, headers))

    async def write(self, data: bytes) -> None:
        await self._send(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        await self._send(b"0\r\n\r\n")

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    async def _send(self, data: bytes) -> None:
        if self.transport is None:
            raise ConnectionResetError("the client has gone")
        self.transport.write(data)
        await self._drain()

    async def _drain(self) -> None:
        """Wait until the client has read most of what is there for it."""
        if self._drained is not None:
            await asyncio.shield(self._drained)

    # --- pulse.Watched ---

    def check(self, pulse: Pulse) -> None:
        """Close it if its client reads or says nothing for too long."""
        transport = self.transport
        if transport is None:
            return
        unsent = transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent:
            self._unsent, self._unmoved_s = unsent, pulse.now_s
        elif pulse.now_s - self._unmoved_s >= pulse.stall_s:
            log.warning("reader.cut", unsent_bytes=unsent, stalled_s=pulse.stall_s)
            transport.abort()
            return
        if self.task is None and not transport.is_closing():
            self._check_silence(transport, pulse.now_s - self._since_s, pulse.head_s)

    def _check_silence(self, transport: asyncio.Transport, silent_s: float, head_s: float) -> None:
        if self._message is not None and silent_s >= head_s:
            late = Refused(
                408, f"The body did not arrive within {head_s:g} s (`limits.request`).", close=True
            )
            self._answer(late.answer({}))
            transport.close()
        elif silent_s >= (IDLE_S if self.heard and not self._raw else head_s):
            transport.close()  # after what is still being read of the last answer

    def close_when_idle(self) -> None:
        """Close after the request being served; at once if there is none."""
        self._closes = True
        if self.task is None and self.transport is not None:
            self.transport.close()
