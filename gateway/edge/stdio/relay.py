"""Carry one message to the gateway over Streamable HTTP, and what it says back to the client.

Implements `way.Way`. Source: 2025-11-25 and 2026-07-28, basic/transports.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

from gateway.edge.stdio.http1 import SILENCE_S, Gone, Http, Response
from gateway.edge.stdio.way import Hear, Lapsed, Posting, Returned, addressed, said_in
from gateway.eras.absent import Away
from gateway.protocol.errors import GatewayError, InvalidMessage
from gateway.protocol.framing import Event, EventSplitter
from gateway.protocol.headers import LAST_EVENT, SESSION
from gateway.protocol.jsonrpc import (
    Failure,
    Fields,
    Message,
    Notification,
    Request,
    RequestId,
    Result,
    decode,
    encode,
    one_line,
)
from gateway.protocol.methods import CANCELLED, INITIALIZE

JSON, EVENTS = "application/json", "text/event-stream"
POSTED = {"Accept": f"{JSON}, {EVENTS}", "Content-Type": JSON}
ANSWER_BYTES = 64 * 2**20
REFUSAL_BYTES = 64 * 2**10
REFUSALS = frozenset({401, 403, 405, 502, 503, 504})
"""What is answered so was asked of nobody, or nobody's answer came: the body is no answer."""
MOST_RESUMED = 5
"""Times in a row that a broken stream is gone on with before its answer is given up."""
RETRY_S = 1.0
BEGINNING_S = 10.0
"""How long the gateway may take to begin a session: one that works does so at once."""


class Token:
    """The bearer token to be sent: as given, or what stands in a file now."""

    def __init__(self, given: str | None, file: Path | None) -> None:
        self._file = file
        """Raises `ValueError` if what is given can be no token."""
        self._value = (given or "").strip()
        if not _is_visible(self._value):
            raise ValueError
        self.reread()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._value}"} if self._value else {}

    @property
    def is_given(self) -> bool:
        return bool(self._value)

    @property
    def trouble(self) -> str:
        """What a gateway has against it that lets nobody in with it."""
        if self._value:
            return "does not know this token"
        return "wants a token" + (f", and {self._file} holds none" if self._file else "")

    def reread(self) -> bool:
        """Read the file again. True if it holds another token now."""
        if self._file is None:
            return False
        before = self._value
        try:
            self._value = self._file.read_text(errors="replace").strip()
        except OSError:
            self._value = ""
        if not _is_visible(self._value):
            self._value = ""  # no token, and no header
        return self._value != before


class Relay:
    def __init__(
        self,
        http: Http,
        token: Token,
        say: Callable[[bytes], Awaitable[None]],
        tell: Callable[[str], None],
    ) -> None:
        """`say` is for the client, `tell` for whoever reads its log."""
        self._http = http
        self._token = token
        self._say = say
        self._tell = tell
        self._trouble = ""
        """Why the gateway could not be asked, the last time; told once."""

    async def post(self, message: Posting, hear: Hear | None = None) -> Returned:
        request = message.request
        reading = Reading(request.id if request else None, hear or self._pass_on)
        _check(message.headers)
        try:
            async with await self._ask(
                "POST", {**POSTED, **message.headers}, message.line, _patience_s(request)
            ) as response:
                if response.status == 404 and SESSION in message.headers:
                    raise Lapsed
                if not (response.is_stream and response.status == 200 and request):
                    return Returned(await self._single(response, request), response.headers)
                told = response.headers
                self._note("")
                await reading.read(response)
            return Returned(await self._answered(reading, message.headers), told)
        except Gone as gone:
            for id_ in reading.asked:  # nobody waits for the answer any more
                why: Fields = {"requestId": id_, "reason": "The gateway that asked has gone"}
                await self._say(encode(Notification(CANCELLED, why)))
            raise self._away(gone, request) from None
        except Away as away:
            self._note(away.message)
            raise

    async def listen(self, headers: Mapping[str, str]) -> None:
        reading = Reading(None, self._pass_on)
        while True:
            try:
                async with await self._get(headers, reading.last) as response:
                    if response.status == 400 and reading.last is not None:
                        reading.last = None  # it no longer keeps what we missed
                        continue
                    if response.status in (401, 404):
                        raise Lapsed
                    if response.status == 405:
                        return  # there is no such stream here
                    if response.is_stream:
                        self._note("")
                        await reading.read(response)
            except Gone as gone:
                if not gone.sent:
                    raise Lapsed from None
            await asyncio.sleep(reading.retry_s)

    async def delete(self, headers: Mapping[str, str]) -> None:
        with suppress(Gone):
            async with await self._ask("DELETE", headers):
                pass

    def _away(self, gone: Gone, request: Request | None) -> Away:
        """In words for a person, and for the model that called."""
        shown = self._http.place.shown
        if gone.sent and _begins(request):
            self._note(f"the gateway at {shown} does not answer: {gone.reason}")
            return Away(
                f"The onegate gateway at {shown} does not answer ({gone.reason}). This connection "
                "goes on by itself as soon as it does.",
                retryable=True,
            )
        if gone.sent:
            self._note(f"the connection to the gateway at {shown} broke: {gone.reason}")
            return Away(
                f"The onegate gateway at {shown} left before it had answered ({gone.reason}). "
                "Whether the request was carried out is not known."
            )
        self._note(f"the gateway at {shown} cannot be reached: {gone.reason}")
        return Away(
            f"The onegate gateway at {shown} cannot be reached ({gone.reason}). Start it with "
            "`onegate serve`, or correct the --url of `onegate stdio`; this connection goes on "
            "by itself as soon as the gateway answers.",
            retryable=True,
        )

    # --- within ---

    def _note(self, trouble: str) -> None:
        """Tell what changed, once."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        self._tell(trouble or f"the gateway at {self._http.place.shown} answers")

    async def _get(self, headers: Mapping[str, str], last: str | None) -> Response:
        """Open the stream of a session, or go on with a broken one. Raises `Gone`."""
        more = {LAST_EVENT: last} if last else {}
        return await self._ask("GET", {"Accept": EVENTS, **headers, **more})

    async def _ask(
        self,
        method: str,
        headers: Mapping[str, str],
        line: bytes = b"",
        head_s: float = SILENCE_S,
    ) -> Response:
        def ask() -> Awaitable[Response]:
            told = {**headers, **self._token.headers}
            return self._http.ask(method, told, line, head_s=head_s)

        response = await ask()
        if response.status == 401 and self._token.reread():
            await response.__aexit__()
            response = await ask()
        return response

    async def _pass_on(self, _: Message, line: bytes) -> None:
        await self._say(line)

    async def _single(self, response: Response, request: Request | None) -> bytes:
        """An answer that is no stream; a refusal becomes the request's error."""
        good = 200 <= response.status < 300
        body = await response.whole(ANSWER_BYTES if good else REFUSAL_BYTES)
        lost = _begins(request) and response.status == 404
        if lost or response.status in REFUSALS:
            raise self._refused(response.status, said_in(body))
        answer = b"" if request is None else addressed(body, request)
        if answer is None:
            raise self._refused(response.status, "")
        if good:
            self._note("")
        return answer

    def _refused(self, status: int, said: str) -> Away:
        where = f"The onegate gateway at {self._http.place.shown}"
        if status == 401:
            return Away(
                f"{where} {self._token.trouble} (HTTP 401). "
                "Put one of those whose hashes are under "
                "`auth.tokens` into ONEGATE_TOKEN, or name a file that holds it by --token-file."
            )
        if status == 403 and said:
            return Away(f"{where} will not be asked from here (HTTP 403): {said}")
        if status == 503:
            return Away(f"{where} is stopping, or has too much to do (HTTP 503).")
        if status in (502, 504):
            return Away(
                f"{where} gives no answer, says what stands in front of it (HTTP {status}). "
                "Whether the request was carried out is not known."
            )
        return Away(f"What answers at {self._http.place.shown} is no MCP endpoint (HTTP {status}).")

    async def _answered(self, reading: "Reading", headers: Mapping[str, str]) -> bytes:
        """The answer of a stream, which may have broken before it."""
        for _ in range(MOST_RESUMED):
            if reading.answer is not None or reading.last is None:
                break
            await asyncio.sleep(reading.retry_s)
            try:
                response = await self._get(headers, reading.last)
            except Gone as gone:
                raise Gone(gone.reason, sent=True) from None  # the request itself was
            async with response:
                if response.status == 404:
                    raise Gone("it was started anew", sent=True)
                if not response.is_stream:
                    break
                await reading.read(response)
        if reading.answer is None:
            raise Gone("its stream ended early", sent=True)
        return reading.answer


def _begins(request: Request | None) -> bool:
    return request is not None and request.method == INITIALIZE


def _patience_s(request: Request | None) -> float:
    """How long the answer may take to begin."""
    return BEGINNING_S if _begins(request) else SILENCE_S


def _check(headers: Mapping[str, str]) -> None:
    """Parts of a client's message become headers: they must not become more than one.

    Raises `InvalidMessage`.
    """
    for name, text in headers.items():
        if not _is_visible(text):
            raise InvalidMessage(f"What goes into the header {name} holds other characters")


def _is_visible(text: str) -> bool:
    """It may be part of a header."""
    return text.isascii() and text.isprintable()


class Reading:
    """What was read of an event stream, over one connection or several."""

    def __init__(self, wanted: RequestId | None, hear: Hear) -> None:
        self.answer: bytes | None = None
        self.last: str | None = None
        """Id of the last event: what to go on from."""
        self.retry_s = RETRY_S
        self.asked: list[RequestId] = []
        """Questions to the client."""
        self._wanted = wanted
        self._hear = hear

    async def read(self, response: Response) -> None:
        """Until the answer, or the end, however it comes. Raises `Gone` for what is too long."""
        splitter = EventSplitter(ANSWER_BYTES)
        try:
            async for piece in response.pieces():
                for event in splitter.feed(piece):
                    if not isinstance(event, Event):
                        raise Gone(f"it said {event.size} bytes at once", sent=True)
                    await self._take(event.data)
                self._note(splitter)
        except Gone:
            if self.last is None and self.answer is None:
                raise

    def _note(self, splitter: EventSplitter) -> None:
        self.last = splitter.last_id or self.last
        if splitter.retry_ms is not None:
            self.retry_s = splitter.retry_ms / 1000

    async def _take(self, data: bytes) -> None:
        try:
            message = decode(data)
        except GatewayError:
            return  # not for us to judge; the client could not read it either
        id_ = message.id if isinstance(message, Result | Failure) else None
        if id_ is not None and id_ == self._wanted:
            self.answer = one_line(data)
        else:
            if isinstance(message, Request):
                self.asked.append(message.id)
            await self._hear(message, data)
