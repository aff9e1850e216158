"""Where the time of a small call goes: `python -m tests.bench.profiling [--revision 2026-07-28]`.

Samples the gateway under load with py-spy, which is installed for it; root may be needed.
"""

import argparse
import subprocess
import threading
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench import asking
from tests.bench.peers import GATEWAY, Fleet
from tests.bench.running import Load, running
from tests.kit.installs import environment

PY_SPY = ["py-spy==0.4.3"]
MARGIN_S = 2.0
"""Of load before and after the sampling."""
PER_S = 200


def sample(seconds: float, revision: str) -> list[tuple[list[str], int]]:
    """Stacks of functions (outermost first) and how often each was seen."""
    py_spy = environment("bench/py-spy", PY_SPY) / "py-spy"
    with running(GATEWAY, Fleet(2, 3)) as it, TemporaryDirectory() as folder:
        work = asking.echo(it.tool("echo"))
        how = Load(64, 16, seconds + 2 * MARGIN_S, revision)
        loading = threading.Thread(target=it.measure, args=(work, how))
        loading.start()
        file = Path(folder) / "stacks"
        words = ["--format", "raw", "--rate", str(PER_S), "--duration", str(int(seconds))]
        command = [str(py_spy), "record", "--nonblocking", "--pid", str(it.program.pid), *words]
        subprocess.run([*command, "--output", str(file)], check=True, stdout=subprocess.DEVNULL)
        loading.join()
        return [_parse(line) for line in file.read_text().splitlines()]


def _parse(line: str) -> tuple[list[str], int]:
    """Without line numbers, and without the way in from the command line."""
    stack, _, count = line.rpartition(" ")
    frames = [frame.rsplit(":", 1)[0] + ")" for frame in stack.split(";")]
    loop = [at for at, frame in enumerate(frames) if frame.endswith("(asyncio/runners.py)")]
    if not loop:
        return ["(another thread, mostly waiting)"], int(count)
    return frames[loop[-1] + 1 :] or ["(the event loop)"], int(count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--revision", default=asking.LEGACY)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--frames", type=int, default=25)
    given = parser.parse_args()
    own: Counter[str] = Counter()
    within: Counter[str] = Counter()
    for stack, count in sample(given.seconds, given.revision):
        own[stack[-1]] += count
        within.update(dict.fromkeys(stack, count))
    for title, counted in (("in the function itself", own), ("with what it calls", within)):
        print(f"\n{title}:")
        for frame, count in counted.most_common(given.frames):
            print(f"{count / own.total():7.1%}  {frame}")


if __name__ == "__main__":
    main()
