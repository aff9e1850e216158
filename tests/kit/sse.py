"""A reader of server-sent events that keeps everything a test may want to see."""

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One event, or one comment (`: keep-alive`), as it came."""

    data: str = ""
    event: str = ""
    id: str | None = None
    retry: str | None = None
    comment: str | None = None


async def events(chunks: AsyncIterable[bytes]) -> AsyncIterator[Event]:
    """Events as they arrive, however the bytes are cut. Lines end in LF or CR LF."""
    rest = b""
    fields: list[tuple[str, str]] = []
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            text = line.removesuffix(b"\r").decode()
            if text.startswith(":"):
                yield Event(comment=text[1:].strip())
            elif text:
                name, _, value = text.partition(":")
                fields.append((name, value.removeprefix(" ")))
            elif fields:
                yield _event(fields)
                fields = []


def _event(fields: list[tuple[str, str]]) -> Event:
    last = dict(fields)
    return Event(
        data="\n".join(value for name, value in fields if name == "data"),
        event=last.get("event", ""),
        id=last.get("id"),
        retry=last.get("retry"),
    )
