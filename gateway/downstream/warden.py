"""See to it that a gateway which is killed outright leaves no server behind.

A server is told that the gateway is gone by the end of its stdin, but many don't care,
and after `kill -9` there is nobody left to insist. So beside the gateway there is one tiny
process that waits for its end: a shell running the constant script below, in a session
of its own, deaf to signals, holding the reading end of a pipe whose only writer is the
gateway. Over it the gateway names the process groups it starts and has stopped. However
the gateway ends, the kernel closes the pipe; then the warden sends TERM to the groups still
named, KILL two seconds later, and leaves. After an orderly stop none is named.

Why not something else: the parent-death signal of Linux reaches the wrapper but not what
it started, is lost across setuid programs, and does not exist on macOS; a file of pids is read by
the next start, which may never come, and by then the numbers may belong to others.

Nothing but numbers is ever written to the pipe, so nothing from the configuration or the
wire comes near a shell. What it can't do: find a server that made itself a new session
(`docker run`, daemons), or one started in the instant before the gateway was killed.
"""

import os
import subprocess
from contextlib import suppress

import structlog

log = structlog.get_logger()

SHELL = "/bin/sh"

SCRIPT = """# onegate-warden: ends the servers of a gateway that was killed
trap '' HUP INT QUIT TERM PIPE USR1 USR2 TSTP
groups=
while read -r sign group; do
    case $sign in
    +) groups="$groups $group" ;;
    -) kept=
       for one in $groups; do
           if [ "$one" != "$group" ]; then kept="$kept $one"; fi
       done
       groups=$kept ;;
    esac
done
for one in $groups; do kill -TERM "-$one" 2>/dev/null; done
if [ -n "$groups" ]; then sleep 2; fi
for one in $groups; do kill -KILL "-$one" 2>/dev/null; done
"""

LEAVES_WITHIN_S = 4.0
"""It leaves at once if it has nothing to do, else after its work."""


class Warden:
    """One per gateway. Started with the first group it has to watch; `close` it last of all."""

    def __init__(self, shell: str = SHELL) -> None:
        self._shell = shell
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._missing = False

    @property
    def pid(self) -> int | None:
        """Of the warden's process, if it runs."""
        return self._process.pid if self._process else None

    def watch(self, pgid: int) -> None:
        """Kill this process group if the gateway dies."""
        self._groups.add(pgid)
        self._tell(f"+ {pgid}\n")

    def forget(self, pgid: int) -> None:
        """This group has been stopped; its number may soon be somebody else's."""
        if pgid in self._groups:
            self._groups.discard(pgid)
            self._tell(f"- {pgid}\n")

    def close(self) -> None:
        """The gateway ends in good order: the warden does what is left to do, and leaves."""
        self._let_go()

    def _tell(self, line: str) -> None:
        if self._process is not None:
            try:
                os.write(self._pipe, line.encode())
            except OSError:  # somebody killed it: a new one is told everything anew
                log.warning("warden.lost", pid=self._process.pid)
                self._let_go()
            else:
                return
        if self._groups and self._start():
            everything = "".join(f"+ {pgid}\n" for pgid in sorted(self._groups))
            with suppress(OSError):  # gone again already: the next line finds that out
                os.write(self._pipe, everything.encode())

    def _start(self) -> bool:
        if self._missing:
            return False
        reading, writing = os.pipe()
        try:
            self._process = subprocess.Popen(
                [self._shell, "-c", SCRIPT, "onegate-warden"],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.defpath},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            os.close(writing)
            self._missing = True
            log.warning(
                "warden.missing",
                why=str(error),
                effect="servers may survive if the gateway is killed outright",
            )
            return False
        finally:
            os.close(reading)
        os.set_blocking(writing, False)
        self._pipe = writing
        return True

    def _let_go(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            os.close(self._pipe)
            self._pipe = -1
            with suppress(subprocess.TimeoutExpired):
                process.wait(LEAVES_WITHIN_S)
