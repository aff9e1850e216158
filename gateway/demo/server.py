"""What a server is made of: tools, functions for further methods, and ways to refuse a request."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from gateway.demo.tools import Json, Tool

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602

Method = Callable[[Json], Json]
"""Takes the params of a request, returns its result. Raises `Failure` or `UnknownResource`."""


NOTHING: Mapping[str, Any] = MappingProxyType({})


class Failure(Exception):
    """A request that cannot be answered, as a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.error: Json = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


class UnknownResource(Exception):
    """There is no resource with this URI. What code that has depends on who asks."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.uri = uri


def no_resource(uri: str) -> bool:
    """Whether a server without resources has this one."""
    return False


class Server(NamedTuple):
    """What a server offers: its tools, and whatever `methods` and `capabilities` add to them."""

    name: str
    title: str
    tools: tuple[Tool, ...]
    methods: Mapping[str, Method] = NOTHING
    capabilities: Mapping[str, Json] = NOTHING
    has_resource: Callable[[str], bool] = no_resource

    @property
    def info(self) -> Json:
        """Who is talking, as every modern result and the legacy handshake say it."""
        return {"name": self.name, "title": self.title, "version": "1.0.0"}


def listing(key: str, definitions: Sequence[Json]) -> Method:
    """The method that lists these definitions under `key`, all on one page."""

    def whole(params: Json) -> Json:
        if "cursor" in params:  # never given out here, so nobody can have one
            raise Failure(INVALID_PARAMS, "Invalid cursor")
        return {key: list(definitions)}

    return whole


def text_param(params: Json, name: str) -> str:
    """A parameter that has to be a string. Raises `Failure` if it is missing or something else."""
    value = params.get(name)
    if not isinstance(value, str):
        raise Failure(INVALID_PARAMS, f"{name} must be a string")
    return value


def object_param(params: Json, name: str) -> Json:
    """A parameter that has to be an object, and is empty if left out."""
    value = params.get(name, {})
    if not isinstance(value, dict):
        raise Failure(INVALID_PARAMS, f"{name} must be an object")
    return value
