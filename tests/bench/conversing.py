"""One connection that asks and waits: opening sessions, listing tools, one call at a time."""

import socket
from types import TracebackType
from typing import Self

from tests.bench.answers import Answer, Answers
from tests.bench.asking import CLIENT, Json, Refused, Session, Target, result

MOST_PAGES = 200


class Conversation:
    """A blocking keep-alive connection, opened anew when the server has closed it."""

    def __init__(self, target: Target, timeout_s: float = 30.0) -> None:
        self.target, self.timeout_s = target, timeout_s
        self._socket: socket.socket | None = None
        self._answers = Answers()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(self, raw: bytes) -> Answer:
        """Send one request, wait for the end of its answer. OSError if the connection breaks."""
        connection = self._socket or self._connect()
        connection.sendall(raw)
        while True:
            data = connection.recv(1 << 18)
            if not data:
                self.close()
                raise ConnectionError("closed in the middle of an answer")
            if found := self._answers.feed(data):
                if found[0].is_last:
                    self.close()
                return found[0]

    def listen(self, raw: bytes) -> None:
        """Open a stream. Returns when its head is there; what comes on it is not read."""
        connection = self._connect()
        connection.sendall(raw)
        head = connection.recv(1 << 16)
        if not head.startswith(b"HTTP/1.1 200"):
            raise Refused(f"no stream: {head[:200]!r}")

    def call(self, method: str, params: Json | None, session: Session) -> Json:
        """A result. Raises Refused for any other answer."""
        session.requests += 1
        return result(self.ask(self.target.request(method, params, session.requests, session)))

    def open_session(self) -> Session:
        """The handshake of the legacy era; for a modern client there is none."""
        session = Session()
        if self.target.is_modern:
            return session
        offer = {"protocolVersion": self.target.revision, "capabilities": {}, "clientInfo": CLIENT}
        answer = self.ask(self.target.request("initialize", offer, 0, session))
        result(answer)
        session.id = answer.header("mcp-session-id")
        told = self.target.request("notifications/initialized", None, None, session)
        if (status := self.ask(told).status) not in (200, 202, 204):
            raise Refused(f"HTTP {status} for notifications/initialized")
        return session

    def tool_names(self, session: Session) -> list[str]:
        """All pages of `tools/list`."""
        names: list[str] = []
        params: Json = {}
        for _ in range(MOST_PAGES):
            page = self.call("tools/list", params, session)
            names += [each["name"] for each in page["tools"]]
            if not page.get("nextCursor"):
                break
            params = {"cursor": page["nextCursor"]}
        return names

    def _connect(self) -> socket.socket:
        self._answers = Answers()
        self._socket = socket.create_connection(self.target.address, self.timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket


def open_sessions(target: Target, count: int) -> list[Session]:
    """As many clients; none of them keeps its connection."""
    opened = []
    for _ in range(count):
        with Conversation(target) as conversation:
            opened.append(conversation.open_session())
    return opened
