"""Seal what a client is given to bring back, and open what it brings: see `identity.seals`.

It is done at the clients' side, so that servers and parked calls get their own states exactly.
"""

from msgspec.structs import replace

from gateway.calls.call import Call, Caller, InputRequired
from gateway.eras.middle import subject
from gateway.eras.questions import STATE
from gateway.identity.seals import Seals
from gateway.protocol.jsonrpc import Request, value


def sealed(call: Call, asked: InputRequired, seals: Seals) -> InputRequired:
    """The same, its state for this client and this call's name alone."""
    state = value(asked.result, STATE)
    if not isinstance(state, str):
        return asked
    about = _about(call.method, call.name)
    given = seals.sealed(call.caller.principal, about, state)
    return replace(asked, result={**asked.result, STATE: given})


def opened(request: Request, caller: Caller, seals: Seals) -> Request | None:
    """The same with the state as it was; None if this client never had it."""
    given = value(request.params, STATE)
    if not isinstance(given, str):
        return None
    state = seals.opened(caller.principal, _about(request.method, subject(request)[1]), given)
    return None if state is None else replace(request, params={**request.params, STATE: state})


def _about(method: str, name: str) -> str:
    return f"{method} {name}"
