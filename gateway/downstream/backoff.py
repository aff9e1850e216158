"""Decide when to start a server again. Pure: told the time, returns a decision.

A good handshake proves nothing: a server that crashes right after it would be started
for ever at full speed. Only staying up for a while wipes the slate.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Waits double from `first_wait_s`; the slate is wiped after `stable_s` of being ready."""

    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0
    stable_s: float = 60.0
    """Longer than any crash that comes from starting up."""
    window_s: float = 60.0
    exits_allowed: int = 5
    """More exits than this within the window are a crash loop."""
    slow_wait_s: float = 300.0
    """How often a failed server is tried all the same: whatever ails it may have been mended."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Start again after `wait_s`. `failed`: operators should look, it won't mend by itself."""

    wait_s: float
    failed: bool


@dataclass(frozen=True, slots=True)
class Exits:
    """What is known of a server's endings since it was last stable."""

    in_a_row: int = 0
    at: tuple[float, ...] = ()
    """When, oldest first, within the window."""
    failed: bool = False

    def after(
        self,
        now: float,
        policy: RestartPolicy,
        ready_for_s: float = 0.0,
        *,
        permanent: bool = False,
    ) -> "Exits":
        """The server ended, or could not be started, at `now`.

        `ready_for_s`: how long it had been ready (0 if it never was). `permanent`: no try
        can succeed until something outside changes, as with a missing command.
        """
        before = Exits() if ready_for_s >= policy.stable_s else self
        at = (*(t for t in before.at if now - t < policy.window_s), now)
        return replace(
            before,
            in_a_row=before.in_a_row + 1,
            at=at[-policy.exits_allowed - 1 :],
            failed=before.failed or permanent or len(at) > policy.exits_allowed,
        )

    def retry(self, policy: RestartPolicy, chance: float) -> Retry:
        """When to try again. `chance` is a random number from 0 to 1.

        The jitter takes away up to half of a wait, so that servers which fell together do
        not rise together, and waits still grow from one to the next.
        """
        if self.failed:
            return Retry(policy.slow_wait_s * (0.9 + chance / 10), failed=True)
        doublings = min(self.in_a_row - 1, 30)  # beyond, the power is only a large number
        wait_s = min(policy.first_wait_s * 2.0**doublings, policy.longest_wait_s)
        return Retry(wait_s * (0.5 + chance / 2), failed=False)
