"""What is pushed at a client that does not read: bounded, and never waited for."""

from gateway.edge.stdio.mouth import MOST_BYTES, Mouth
from tests.kit.waiting import run


class Full:
    """A pipe that nobody reads."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    @property
    def waiting_bytes(self) -> int:
        return sum(map(len, self.written))

    def write(self, data: bytes) -> None:
        self.written.append(data)

    async def wait_writable(self) -> None:
        return


def test_what_may_be_dropped_is_dropped_and_nothing_else_is_lost() -> None:
    pipe, told = Full(), list[str]()
    mouth = Mouth(pipe, told.append)
    mouth.push(b"x" * (MOST_BYTES - 100))
    mouth.push(b"p" * 200, may_drop=True)
    assert not told
    assert b"p" * 200 not in pipe.written

    mouth.push(b"q" * 200)

    assert told == ["the client does not read what it is told"]


def test_one_message_may_be_larger_than_the_bound_if_nothing_waits() -> None:
    pipe, told = Full(), list[str]()
    Mouth(pipe, told.append).push(b"x" * (MOST_BYTES + 1))
    assert not told
    assert len(pipe.written[0]) == MOST_BYTES + 1


def test_a_message_with_line_breaks_between_its_tokens_comes_on_one_line() -> None:
    pipe = Full()
    run(Mouth(pipe, lambda _: None).say(b'{\n "a": [1,\r\n2]\n}'))
    assert b"".join(pipe.written) == b'{"a":[1,2]}\n'
