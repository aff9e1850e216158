"""What the small servers offer, the same for each SDK: they differ in the SDK alone."""

import asyncio
import os
from pathlib import Path
from typing import Any

TODAY = "notes://today"
"""Changes all the time where clients can subscribe to it."""
CHANGES_EVERY_S = 0.2


def offer_notes(server: Any, context: type) -> None:
    """Register tools, a resource, a template and a prompt by the SDK's own decorators.

    `server` has the decorators tool(), resource() and prompt(), as all of these SDKs' servers do;
    `context` is the class of the SDK that a tool's parameter has to be annotated with.
    """
    _offer_lasting(server, context)

    @server.tool()  # type: ignore[untyped-decorator]
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()  # type: ignore[untyped-decorator]
    def fail() -> str:
        """Always fail."""
        raise ValueError("It always fails.")

    @server.resource(TODAY)  # type: ignore[untyped-decorator]
    def today() -> str:
        """The note of today."""
        return "Buy milk."

    @server.resource("notes://{day}/note")  # type: ignore[untyped-decorator]
    def note(day: str) -> str:
        """The note of any day."""
        return f"The note of {day}."

    @server.prompt()  # type: ignore[untyped-decorator]
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Please greet {name}."


def _offer_lasting(server: Any, context: type) -> None:
    """A call that takes some time, and one that tells how many of those were cancelled.

    The environment variable CANCELLED names the file in which that is written down: a client
    may reach another process of the server next time.
    """
    calls = Path(os.environ.get("CANCELLED", os.devnull))

    def write_down() -> None:
        with calls.open("a") as written:
            written.write("slow\n")

    async def slow(seconds: float, ctx: Any) -> str:
        """Take some time, with progress."""
        try:
            for tenth in range(10):
                await ctx.report_progress(tenth, 10)
                await asyncio.sleep(seconds / 10)
        except asyncio.CancelledError:
            write_down()
            raise
        return f"It took {seconds} s."

    slow.__annotations__["ctx"] = context
    server.tool()(slow)

    @server.tool()  # type: ignore[untyped-decorator]
    def cancelled(server: str) -> str:
        """How many calls of a server have been cancelled: each has its file in one folder."""
        return str(len(calls.with_name(server).read_text().splitlines()))
