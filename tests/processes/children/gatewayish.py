"""A process like a gateway: starts children under a warden and waits to be killed.

Arguments: how many orderly stops come first, then the modes of the children, each with its
arguments joined by commas.
"""

import asyncio
import sys
from pathlib import Path

from gateway.downstream.environment import Launch
from gateway.downstream.transports.stdio import StdioTransport
from gateway.downstream.transports.transport import Departure
from gateway.downstream.warden import Warden

CHILD = Path(__file__).parent / "child.py"


class Said:
    def __init__(self) -> None:
        self.words: asyncio.Queue[bytes] = asyncio.Queue()

    def line(self, line: bytes) -> None:
        self.words.put_nowait(line)

    def oversized(self, size: int, head: bytes, tail: bytes) -> None: ...

    def closed(self, cause: Departure) -> None: ...


async def main() -> None:
    how, *modes = sys.argv[1:]
    warden = Warden()
    pids, children = [], []
    for mode in modes:
        said = Said()
        launch = Launch("it", (sys.executable, "-S", str(CHILD), *mode.split(",")))
        children.append(await StdioTransport.start(launch, said, warden))
        pids += (await said.words.get()).decode().split()[1:]
    if how == "orderly":
        await asyncio.gather(*(child.stop(0.1) for child in children))
        print("warden", warden.pid, "pids", *pids, flush=True)
        warden.close()
        return
    print("warden", warden.pid, "pids", *pids, flush=True)
    await asyncio.sleep(120)


if __name__ == "__main__":
    asyncio.run(main())
