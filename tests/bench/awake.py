"""Keeps a core from going to sleep, in time that nobody else wants: `python -m tests.bench.awake`.

A core that sleeps in a virtual machine takes some 50 µs to wake, and a call wakes one four times:
that is the machine's, and the same for everybody. Whatever else is to run comes first at once
(SCHED_IDLE, Linux). Ends by itself.
"""

import os
import time

from tests.bench.load import STARTED

LONGEST_S = 120.0
LOOK_EVERY = 100_000


def main() -> None:
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    print(STARTED, flush=True)
    end = time.monotonic() + LONGEST_S if hasattr(os, "SCHED_IDLE") else 0.0
    while time.monotonic() < end:
        for _ in range(LOOK_EVERY):
            pass


if __name__ == "__main__":
    main()
