"""One call that goes on after its client was answered, and what has become of it."""

import asyncio
from dataclasses import dataclass, field

import structlog

from gateway.calls.call import Call, Completed, InputRequired, Outcome, Spent
from gateway.calls.notices import Emitted, Progress
from gateway.calls.pipeline import Handler
from gateway.protocol.errors import Cancelled, CannotAnswer, GatewayError
from gateway.protocol.jsonrpc import Fields, value

log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class GoingOn:
    """Calls `moved` whenever its status has become another."""

    handle: str
    call: Call
    after_s: float
    began: float
    """Seconds since 1970, as are `changed` and `ended`."""
    changed: float
    listener: Call | None
    """Whose answer progress and log lines ride; None: nobody waits now."""
    takes_questions: bool = False
    """The client has a way to answer what the server may ask meanwhile."""
    end: Outcome | GatewayError | None = None
    progress: Fields | None = None
    """Params of the last report."""
    task: "asyncio.Task[object] | None" = None
    _turned: asyncio.Event = field(default_factory=asyncio.Event)
    _is_given_up: bool = False

    @property
    def status(self) -> str:
        """In the words of tasks."""
        match self.end:
            case None:
                return "working"
            case InputRequired():
                return "input_required"
            case Completed():
                return "completed"
            case Cancelled():
                return "cancelled"
            case GatewayError() as error:
                return "completed" if error.for_the_model else "failed"

    @property
    def is_over(self) -> bool:
        return self.end is not None and not isinstance(self.end, InputRequired)

    @property
    def size(self) -> int:
        """Bytes it keeps."""
        return self.end.size if isinstance(self.end, Completed | InputRequired) else 0

    async def run(self, call: Call, proceed: Handler) -> None:
        """Serve it; the end is kept and never raised. Runs in a task of its own."""
        self.task = asyncio.current_task()
        end: Outcome | GatewayError = GatewayError("The call failed inside the gateway")
        try:
            if self._is_given_up:
                raise asyncio.CancelledError
            end = await proceed(call)
        except GatewayError as error:
            end = error
        except asyncio.CancelledError:
            end = Cancelled("The call was cancelled")
            if not self._is_given_up:
                raise
        finally:
            self.task = None
            self.end = end
            self._turned.set()

    async def wait(self, within_s: float) -> bool:
        """Whether there is news within this time: an end, or a question."""
        try:
            async with asyncio.timeout(within_s):
                await self._turned.wait()
        except TimeoutError:
            return self._turned.is_set()
        return True

    def emit(self, notice: Emitted) -> None:
        """What the call says: to whoever waits for it now. Progress is kept for others."""
        if isinstance(notice, Progress):
            self.progress = notice.params
        if self.listener is not None:
            self.listener.emit(notice)

    def give_up(self) -> None:
        """End it now; its server is told. Of one that is over nothing changes."""
        if self.end is None:
            self._is_given_up = True
            if self.task is not None:
                self.task.cancel()
        elif isinstance(self.end, InputRequired):
            self.end = Cancelled("The call was cancelled")

    def outcome(self) -> Outcome:
        """What it ended with. Raises `GatewayError` where that was an error."""
        if isinstance(self.end, GatewayError):
            raise self.end
        if isinstance(self.end, InputRequired) and not self.takes_questions:
            raise CannotAnswer("The server asked for input when nobody could be asked any more")
        assert self.end is not None, "there is an end once `wait` said so"
        return self.end

    def again(self, id_: str, more: Fields) -> Call:
        """The same call with the answers to its questions."""
        self.end = None
        self._turned.clear()
        params = {**self.call.params, **more}
        self.call = Call(
            id_,
            self.call.method,
            self.call.kind,
            self.call.name,
            params,
            self.call.caller,
            Spent(),
            self.call.meta,
            self.call.trace,
            self.call.request_bytes,
            entry=self.call.entry,
            verdict=self.call.verdict,
            emit=self.emit,
        )
        return self.call


def done_of(progress: Fields | None) -> str:
    """How far it is, in words; nothing if it never said."""
    if progress is None:
        return ""
    done, total, said = (value(progress, k) for k in ("progress", "total", "message"))
    of = f" of {total}" if total is not None else ""
    return f" Progress: {done}{of}{f', {said}' if said else ''}."
