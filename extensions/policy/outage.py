"""This machine's own network: when all hosts fail at once, it is not the hosts.

While it is out nothing but single probes should be sent and no request's attempts be spent. Only
hosts that answered before are witnesses: a list of dead names proves nothing about our network.
"""

from __future__ import annotations

import math

_WITNESSES = 2  # hosts that answered before and now fail, with no answer from any host between
_REMEMBERED = 1024  # hosts known to have answered; the oldest are forgotten
_BELIEVED_S = 900.0  # then it is taken for the hosts' own fault, until they answer again
_FIRST_PROBE_S = 0.25
_LAST_PROBE_S = 30.0


class OutageDetector:
    """Watches the answers of all domains together."""

    __slots__ = ("_answered", "_failed", "_probe_s", "next_probe_due", "out_since")

    def __init__(self) -> None:
        self._answered: dict[str, None] = {}
        self._failed: set[str] = set()
        self._probe_s = _FIRST_PROBE_S
        self.out_since: float | None = None
        self.next_probe_due = -math.inf

    def record(self, domain: str, *, ok: bool, network_failure: bool, now: float) -> None:
        """Note how a request ended.

        Args:
            domain: The governor's key.
            ok: Some answer came, whatever its status.
            network_failure: It failed below HTTP: no name, no route, refused, reset, timed out.
            now: Monotonic seconds.
        """
        if ok:
            self.out_since = None
            self._failed.clear()
            if domain not in self._answered:
                if len(self._answered) >= _REMEMBERED:
                    del self._answered[next(iter(self._answered))]
                self._answered[domain] = None
        elif network_failure and domain in self._answered:
            self._failed.add(domain)
            if self.out_since is None and len(self._failed) >= _WITNESSES:
                self.out_since = now
                self._probe_s = _FIRST_PROBE_S
                self.next_probe_due = now + self._probe_s

    def out(self, now: float) -> bool:
        """Whether this machine seems to be cut off.

        For a quarter of an hour at the most: a crawl whose last pages are dead on all hosts must end.
        """
        if self.out_since is not None and now - self.out_since > _BELIEVED_S:
            self.out_since = None
            self._failed.clear()
            self._answered.clear()
        return self.out_since is not None

    def probed(self, now: float) -> None:
        """A probe left at *now*; the next one waits longer, up to half a minute."""
        self._probe_s = min(2.0 * self._probe_s, _LAST_PROBE_S)
        self.next_probe_due = now + self._probe_s
