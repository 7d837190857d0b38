"""This machine's own network: when all hosts fail at once, it is not the hosts.

While it is out nothing but single probes should be sent and no request's attempts be spent. Only
hosts that answered before are witnesses: a list of dead names proves nothing about our network. A
crawl whose last pages are dead on several hosts looks the same, so witnesses are asked again.
"""

from __future__ import annotations

import itertools
import math

_WITNESSES = 2  # hosts that answered before and now fail, with no answer from any host between
_REMEMBERED = 1024  # hosts known to have answered; the oldest are forgotten
_BELIEVED_S = 900.0  # for each silent witness but one; then it is taken for the hosts' own fault
_SURE = 2  # probes that go out before it is said: one had its time to be answered
_FIRST_PROBE_S = 0.25
_LAST_PROBE_S = 30.0


class OutageDetector:
    """Watches the answers of all domains together.

    Attributes:
        out_since: When the network was first suspected; None while it works.
        next_probe_due: When the next probe may go, while out.
    """

    __slots__ = ("_answered", "_failed", "_probe_s", "_probes", "next_probe_due", "out_since")

    def __init__(self) -> None:
        self._answered: dict[str, str] = {}
        self._failed: set[str] = set()
        self._probe_s = _FIRST_PROBE_S
        self._probes = 0
        self.out_since: float | None = None
        self.next_probe_due = -math.inf

    def answered(self, domain: str, url: str) -> None:
        """Some answer came, whatever its status: the network works.

        Args:
            domain: The governor's key.
            url: What answered, by which `next_witness` finds its host.
        """
        self.out_since = None
        self._failed.clear()
        if domain not in self._answered:
            if len(self._answered) >= _REMEMBERED:
                del self._answered[next(iter(self._answered))]
            self._answered[domain] = url

    def failed(self, domain: str, now: float) -> None:
        """A request failed below HTTP: no name, no route, refused, reset, timed out.

        Args:
            domain: The governor's key.
            now: Monotonic seconds.
        """
        if domain not in self._answered:
            return
        self._failed.add(domain)
        if self.out_since is None and len(self._failed) >= _WITNESSES:
            self.out_since = now
            self._probes = 0
            self._probe_s = _FIRST_PROBE_S
            self.next_probe_due = now + self._probe_s

    def out(self, now: float) -> bool:
        """Whether this machine seems to be cut off.

        For a quarter of an hour with two silent witnesses, and as much again for each further one: a crawl
        whose hosts have all died must end, one that has lost its network for a night must not.
        """
        if self.out_since is not None:
            believed_s = _BELIEVED_S * (len(self._failed) - 1)
            if now - self.out_since > believed_s:
                self.out_since = None
                self._failed.clear()
                self._answered.clear()
        return self.out_since is not None

    def sure(self, now: float) -> bool:
        """Whether it is out and a probe has had its time to tell that it is not."""
        return self.out(now) and self._probes >= _SURE

    def probed(self, now: float) -> None:
        """Probes left at *now*; the next ones wait longer, up to half a minute."""
        self._probes += 1
        self._probe_s = min(2.0 * self._probe_s, _LAST_PROBE_S)
        self.next_probe_due = now + self._probe_s

    def knows(self, domain: str) -> bool:
        """Whether *domain* answered before, as far as is remembered."""
        return domain in self._answered

    def witnesses(self, most: int) -> dict[str, str]:
        """Up to *most* domains that answered before, the newest first, each with its URL."""
        return dict(itertools.islice(reversed(self._answered.items()), most))

    def next_witness(self) -> str | None:
        """A URL of a host that answered before: of one that has not failed since, else of each in turn."""
        domain = next((name for name in self._answered if name not in self._failed), None)
        if domain is None:
            domain = next(iter(self._answered), None)
        if domain is None:
            return None
        url = self._answered.pop(domain)
        self._answered[domain] = url
        return url
