"""A gateway: what starts after what, and what stops before what."""

import asyncio
import time
from asyncio import TaskGroup
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog

from gateway.app.current import Current
from gateway.app.reports import Reports
from gateway.app.servers import Assembly
from gateway.calls.notices import Withdrawn
from gateway.config.model import Config, Token
from gateway.config.units import Address
from gateway.downstream.fleet import Fleet
from gateway.downstream.warden import Warden
from gateway.edge.pulse import Pulse
from gateway.edge.sockets import Bound, bind
from gateway.eras.entrance import Entrance
from gateway.eras.legacy.sessions import Sessions
from gateway.eras.middle import Middle
from gateway.identity.seals import Seals
from gateway.identity.tokens import Tokens
from gateway.observe.lag import watch_lag
from gateway.observe.metrics import Metrics
from gateway.observe.sinks import Spool

if TYPE_CHECKING:
    from gateway.edge.admin.pages import AdminPages
    from gateway.edge.direct import Post
    from gateway.edge.endpoint import Endpoint
    from gateway.edge.guard import Guard
    from gateway.edge.listener import Listener, Serve

log = structlog.get_logger()

LATER = frozenset({"completions", "logging"})
"""Capabilities that are advertised while some server may still turn out to have them."""

LOOK_EVERY_S, EXPIRE_EVERY_S = 0.02, 5.0
"""What is over is looked for at most, and at least, this often."""
FLUSH_WITHIN_S = 5.0
"""How long the record may take to be written out at the end."""


@dataclass(slots=True, eq=False)
class Gateway:
    """A gateway that is up: its servers run or try to. Listening is a step of its own."""

    current: Current
    assembly: Assembly
    fleet: Fleet
    entrance: Entrance
    middle: Middle
    sessions: Sessions
    operator: Reports
    metrics: Metrics
    warden: Warden
    tasks: TaskGroup
    spools: tuple[Spool, ...] = ()
    listening: tuple[Address, ...] = ()
    """Where clients connect, with real ports."""
    admin: Address | None = None
    _endpoint: "Endpoint | None" = None
    _pulse: Pulse | None = None
    _pages: "AdminPages | None" = None
    _listener: "Listener | None" = None
    _admin_listener: "Listener | None" = None
    _bound: tuple[Bound, ...] = ()
    """What is bound already, and not yet listened on: first of all the admin's."""
    _beside: list["asyncio.Task[None]"] = field(default_factory=list)

    @property
    def config(self) -> Config:
        return self.current.config

    async def bind(self) -> None:
        """Take the addresses; nobody is served yet. Raises `CannotListen`."""
        config = self.config
        if config.admin is not None:
            self._bound = await bind([config.admin], "admin")
            self.admin = self._bound[0].address
        clients = await bind(config.listen, "listen")
        self._bound += clients
        self.listening = tuple(one.address for one in clients)

    async def listen(self) -> None:
        """Serve clients and the operator from now on. Raises `CannotListen`, unless the
        addresses have been taken before: the time it takes to load what serves them is that of
        servers to start."""
        if not self._bound:
            await self.bind()
        from gateway.edge.admin.pages import AdminPages
        from gateway.edge.endpoint import Endpoint

        config = self.config
        bound, self._bound = self._bound, ()
        if self.admin is not None:
            self._pages = AdminPages(
                self.operator,
                self._admin_guard(),
                is_local=self.admin.is_loopback,
                request_s=config.limits.request_s,
            )
            # Operators get in when clients are already sent away.
            self._admin_listener = await self._start(
                self._pages.serve, Pulse(), bound[:1], spare_share=0.5
            )
            bound = bound[1:]
        pulse = Pulse(head_s=config.limits.request_s, stream_age_s=config.limits.stream_age_s)
        self._endpoint = Endpoint(
            self.entrance,
            self._guard(),
            pulse,
            self.tasks,
            body_bytes=config.limits.body_bytes,
            request_s=config.limits.request_s,
        )
        self._serve_pair(self._endpoint)
        self._pulse = pulse
        self._listener = await self._start(
            self._endpoint.serve, pulse, bound, post=self._endpoint.post
        )
        self.operator.is_open = True

    def regard(self) -> None:
        """Go by what the configuration says now: names, tokens, bounds."""
        limits = self.config.limits
        if self._pulse is not None:
            self._pulse.stream_age_s = limits.stream_age_s
        if self._endpoint is not None:
            self._endpoint.guard = self._guard()
            self._endpoint.body_bytes = limits.body_bytes
            self._endpoint.request_s = limits.request_s
            self._serve_pair(self._endpoint)
        if self._pages is not None:
            self._pages.guard = self._admin_guard()
            self._pages.request_s = limits.request_s
        for listener in filter(None, (self._listener, self._admin_listener)):
            listener.regard(limits.header_bytes, limits.request_s)
        self.sessions.most, self.sessions.idle_s = limits.sessions, limits.session_idle_s
        patience = self.sessions.patience
        patience.answer_s, patience.rounds = limits.answer_s, limits.rounds
        self.middle.seals = Seals(_known(self.config) or ())
        self.assembly.bound()

    def withdraw(self, principals: frozenset[str | None]) -> None:
        """What these have opened ends; nobody waits for those who have no other token now."""
        self.sessions.dismiss(principals)
        self.middle.board.post(Withdrawn(principals))
        auth = self.config.auth
        known = {token.name for token in auth.tokens} if auth.mode == "tokens" else {None}
        for server in self.fleet.succession.all:
            server.apart.parked.dismiss(principals - known)

    def _serve_pair(self, endpoint: "Endpoint") -> None:
        from gateway.edge.pair import PairOfPaths

        pair = PairOfPaths(self.entrance.pair, endpoint)
        endpoint.more_paths = pair.verbs if self.config.legacy_sse else {}

    def _guard(self) -> "Guard":
        from gateway.edge.guard import Guard, own_names

        config = self.config
        names = own_names(self.listening, config.allowed_hosts, config.allowed_origins)
        return Guard(names, _tokens(config))

    def _admin_guard(self) -> "Guard":
        from gateway.edge.guard import Guard, own_names

        assert self.admin is not None
        names = own_names([self.admin], self.config.allowed_hosts, ())
        return Guard(names, _tokens(self.config))

    async def stop(self) -> None:
        """Stop in the order that loses least; bounded by the sum of its bounds: `drain`,
        the longest ladder of a server, and what it takes to write the record out."""
        self.operator.is_open = False  # /readyz says so while calls finish
        self.middle.closing.set()
        for one in self._bound:
            one.close()
        if self._listener is not None:
            await self._listener.drain(self.config.limits.drain_s)
        self.sessions.close_all()
        self.middle.background.close()
        await self.fleet.stop()
        self.operator.ledger.flush()
        for spool in self.spools:
            await asyncio.to_thread(spool.close, FLUSH_WITHIN_S)
        if self._admin_listener is not None:
            await self._admin_listener.drain(0.0)
        for task in self._beside:
            task.cancel()
        self.warden.close()

    def run_beside(self, *more: Coroutine[Any, Any, None]) -> None:
        """What goes on as long as the gateway does, its stopping included."""
        self._beside += [self.tasks.create_task(one) for one in more]

    def watch_over(self) -> None:
        """Measure how late things are, and end what has been idle too long."""
        self.run_beside(watch_lag(self.metrics.lagged, time.monotonic), self._expire_sessions())

    async def _expire_sessions(self) -> None:
        while True:
            await asyncio.sleep(self._look_again_s())
            self.sessions.expire()
            self.middle.tasks.expire()
            self.middle.background.expire()
            self.fleet.expire()

    def _look_again_s(self) -> float:
        """A quarter of whatever is soonest over, within reason."""
        limits = self.config.limits
        soonest = min(limits.session_idle_s, limits.answer_s)
        for section in self.config.servers.values():
            soonest = min(soonest, section.process_idle_s, section.owned_process_idle_s)
        return max(LOOK_EVERY_S, min(EXPIRE_EVERY_S, soonest / 4))

    async def _start(
        self,
        serve: "Serve",
        pulse: Pulse,
        bound: Sequence[Bound],
        spare_share: float = 1.0,
        post: "Post | None" = None,
    ) -> "Listener":
        from gateway.edge.listener import Listener

        listener = Listener(
            serve,
            pulse,
            self.tasks,
            header_bytes=self.config.limits.header_bytes,
            spare_share=spare_share,
            post=post,
        )
        self.operator.crowds.append(listener.crowd)
        await listener.start(bound)
        return listener


def _tokens(config: Config) -> Tokens | None:
    known = _known(config)
    return None if known is None else Tokens(known)


def _known(config: Config) -> Sequence[Token] | None:
    return config.auth.tokens if config.auth.mode == "tokens" else None
