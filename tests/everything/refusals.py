"""Why a request can fail as a JSON-RPC error."""

from typing import Any


class Refused(Exception):
    """Ends a request with this code, text and data."""

    def __init__(self, code: int, message: str, **data: Any):
        super().__init__(message)
        self.code = code
        self.data = data

    def as_error(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": str(self)}
        return error | ({"data": self.data} if self.data else {})


class BadParams(Refused):
    """-32602: the parameters do not fit the method."""

    def __init__(self, message: str, **data: Any):
        super().__init__(-32602, message, **data)


class NoSuchMethod(Refused):
    """-32601: this era, or this server, has no such method."""

    def __init__(self, method: str):
        super().__init__(-32601, f"No method {method!r}")


class NoSuchResource(Refused):
    """The URI leads nowhere. Each era has a code of its own for it, so the era chooses."""

    def __init__(self, uri: str):
        super().__init__(-32602, "No such resource", uri=uri)


class MissingCapability(Refused):
    """-32021: the client did not declare what this request needs."""

    def __init__(self, *names: str):
        needed: dict[str, Any] = {name: {} for name in names}
        super().__init__(
            -32021, f"The client lacks {', '.join(names)}", requiredCapabilities=needed
        )
