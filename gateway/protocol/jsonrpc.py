"""JSON-RPC messages as frozen values, and the one place bytes become them.

Not MCP-aware: method names and params are opaque here. A message is decoded
once, and only as deep as anybody looks: `params` and `result` are *shallow*,
their members still the bytes they came as (`msgspec.Raw`).

Source: JSON-RPC 2.0, as narrowed by MCP (basic/index: ids are strings or
integers, never null; no batches except in 2025-03-26).
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from gateway.protocol.errors import InvalidMessage, NotJson

RequestId = str | int
Json = Any
"""Any JSON value, decoded; or `Raw`, the bytes of one."""
Fields = Mapping[str, Json]
"""The members of a JSON object. Read one with `value(fields, name)`."""


class Request(msgspec.Struct, frozen=True):
    id: RequestId
    method: str
    params: Fields


class Notification(msgspec.Struct, frozen=True):
    method: str
    params: Fields


class Result(msgspec.Struct, frozen=True):
    id: RequestId
    result: Fields


class Failure(msgspec.Struct, frozen=True):
    id: RequestId | None
    code: int
    message: str
    data: Json = None


Message = Request | Notification | Result | Failure

__all__ = ["Raw"]  # the one name others take from here that is not ours


class _Envelope(msgspec.Struct):
    id: RequestId | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: dict[str, Raw] | UnsetType = UNSET
    result: dict[str, Raw] | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Exact(_Envelope, kw_only=True):
    jsonrpc: Literal["2.0"]


class _Error(msgspec.Struct):
    code: int = -32603
    message: str = ""
    data: Raw | UnsetType = UNSET


class _Out(msgspec.Struct, omit_defaults=True):
    jsonrpc: str
    id: RequestId | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Json = UNSET
    result: Json = UNSET
    error: Json = UNSET


Form = msgspec.json.Decoder[Any]
TOLERANT: Form = msgspec.json.Decoder(_Envelope)
"""What servers are granted: whatever can be understood."""
STRICT: Form = msgspec.json.Decoder(_Exact)
"""What clients have to send: `jsonrpc` says "2.0"."""
_error = msgspec.json.Decoder(_Error)
_anything = msgspec.json.Decoder()
_shallow = msgspec.json.Decoder(dict[str, Raw])
_batch = msgspec.json.Decoder(list[Raw])
_encode = msgspec.json.Encoder().encode


def decode(raw: bytes, form: Form = TOLERANT) -> Message:
    """One message from its bytes.

    Raises `NotJson` (-32700) or `InvalidMessage` (-32600); the latter carries the
    id where one could be read, so that whoever waits for it can be told.
    """
    if not raw.isascii():
        _check_utf8(raw)  # Raw members are not decoded, so nobody else would notice
    try:
        envelope = form.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _explained(raw, error, form) from None
    if envelope.method is not UNSET:
        return _asked(envelope, envelope.method)
    return _answered(envelope)


def _asked(envelope: _Envelope, method: str) -> Message:
    params = {} if envelope.params is UNSET else envelope.params
    if envelope.id is UNSET:
        return Notification(method, params)
    if envelope.id is None:
        raise InvalidMessage("id must be a string or an integer, not null")
    return Request(envelope.id, method, params)


def _answered(envelope: _Envelope) -> Message:
    id_ = None if envelope.id is UNSET else envelope.id
    if envelope.error is UNSET:
        if envelope.result is UNSET:
            raise InvalidMessage("neither method, result nor error", request_id=id_)
        if id_ is None:
            raise InvalidMessage("a result without an id")
        return Result(id_, envelope.result)
    if envelope.result is not UNSET:
        raise InvalidMessage("both result and error", request_id=id_)
    try:
        error = _error.decode(envelope.error)
    except msgspec.DecodeError:
        raise InvalidMessage("error is not {code, message}", request_id=id_) from None
    return Failure(id_, error.code, error.message, None if error.data is UNSET else error.data)


def _check_utf8(raw: bytes) -> None:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise NotJson(f"not UTF-8 at byte {error.start}") from None


def _explained(raw: bytes, error: Exception, form: Form) -> NotJson | InvalidMessage:
    """What is wrong with these bytes, in words; only ever on the unhappy path."""
    try:
        whole = _anything.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as worse:
        return NotJson(str(worse).removeprefix("JSON is malformed: "))
    if isinstance(whole, list):
        return InvalidMessage("a batch (JSON array) is not accepted here: send one message")
    if not isinstance(whole, dict):
        return InvalidMessage("a message is a JSON object")
    id_ = whole.get("id")
    known = id_ if isinstance(id_, str | int) and not isinstance(id_, bool) else None
    if form is STRICT and whole.get("jsonrpc") != "2.0":
        return InvalidMessage('jsonrpc must be there, and say "2.0"', request_id=known)
    return InvalidMessage(str(error).replace("`", "'"), request_id=known)


def decode_batch(raw: bytes) -> list[Raw]:
    """The elements of a JSON array (2025-03-26 alone has batches), each still bytes."""
    try:
        _check_utf8(raw)
        return _batch.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotJson(str(error)) from None


def encode(message: Message) -> bytes:
    """The bytes of one message, on one line unless a member came with line breaks."""
    if isinstance(message, Request):
        return _encode(_Out("2.0", message.id, message.method, message.params))
    if isinstance(message, Notification):
        return _encode(_Out("2.0", UNSET, message.method, message.params or UNSET))
    if isinstance(message, Result):
        return _encode(_Out("2.0", message.id, result=message.result))
    error = {"code": message.code, "message": message.message}
    data = {} if message.data is None else {"data": message.data}
    return _encode(_Out("2.0", message.id, error={**error, **data}))


def request_line(id_: RequestId, method: str, params: Fields) -> bytes:
    """A request as `encode_line` has it."""
    return one_line(_encode(_Out("2.0", id_, method, params)))


def encode_line(message: Message) -> bytes:
    """Like `encode`, and certainly without a line break: for pipes and event streams."""
    return one_line(encode(message))


def one_line(raw: bytes) -> bytes:
    if b"\n" in raw or b"\r" in raw:  # white space between tokens: legal JSON, fatal framing
        return msgspec.json.format(raw, indent=-1)
    return raw


def value(fields: Fields, name: str) -> Json:
    """One member, decoded however it is held; None where it is missing.

    Raises `InvalidMessage` if its bytes cannot be decoded (a lone surrogate, say).
    """
    held = fields.get(name)
    return decoded(held) if isinstance(held, Raw) else held


def decoded(held: Json) -> Json:
    """A value, decoded if it is still bytes."""
    if not isinstance(held, Raw):
        return held
    try:
        return _anything.decode(held)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidMessage(str(error)) from None


def shallow(held: Json) -> Fields | None:
    """The members of an object held as bytes or already decoded; None if it is no object."""
    if isinstance(held, Raw):
        try:
            return _shallow.decode(held)
        except (msgspec.DecodeError, RecursionError):
            return None
    # Most are dicts, and to ask whether something is a Mapping takes three times as long.
    return held if isinstance(held, (dict, Mapping)) else None


def elements(held: Json) -> list[Json] | None:
    """The elements of an array held as bytes or already decoded; None if it is no array."""
    if isinstance(held, Raw):
        try:
            return list(_batch.decode(held))
        except (msgspec.DecodeError, RecursionError):
            return None
    return list(held) if isinstance(held, list | tuple) else None


def raw(plain: Json) -> Raw:
    """Any JSON value as its bytes."""
    return Raw(_encode(plain))


def as_bytes(plain: Json) -> bytes:
    """The JSON text of any value; `Raw` members go in as they are."""
    return _encode(plain)
