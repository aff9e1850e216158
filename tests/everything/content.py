"""Content blocks to show: a picture of one pixel, a tone, texts, embedded resources."""

import base64
import io
import struct
import wave
import zlib

from tests.everything.pipe import Message


def text(words: str) -> Message:
    return {"type": "text", "text": words}


def said(words: str, *, failed: bool = False) -> Message:
    """A tool's result that is one text; `failed` marks it as an error the model should see."""
    return {"content": [text(words)]} | ({"isError": True} if failed else {})


def picture() -> Message:
    return {"type": "image", "data": _base64(_png()), "mimeType": "image/png"}


def tone() -> Message:
    return {"type": "audio", "data": _base64(_wav()), "mimeType": "audio/wav"}


def embedded(uri: str, mime_type: str, words: str) -> Message:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": words}}


def picture_blob() -> str:
    return _base64(_png())


def _png() -> bytes:
    """One red pixel: header, one filtered row, end."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    row = chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00"))
    return b"\x89PNG\r\n\x1a\n" + header + row + chunk(b"IEND", b"")


def _wav() -> bytes:
    """Ten milliseconds of a square wave."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes((b"\x40" * 10 + b"\xc0" * 10) * 4)
    return file.getvalue()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
