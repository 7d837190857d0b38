"""Models of who shares a limit: paths of one host, hosts behind one limit, hosts apart.

The crawl keeps one governor a host, or one for each `download_slot` that a spider names. These
models say what a slot makes of a limit that is not the host's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..outcome import Outcome
from .servers import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .servers import Server


class Paths:
    """A host whose paths have limits of their own, each with its part of the requests.

    The crawler knows nothing of it: the requests come in no order, in one queue.
    """

    def __init__(self, *limits: tuple[float, Server]) -> None:
        self._limits = limits

    def arrive(self, now: float, draw: Callable[[], float]) -> Reply:
        """Ask the limit of one of the paths."""
        at = draw()
        for part, server in self._limits[:-1]:
            at -= part
            if at < 0.0:
                return server.arrive(now, draw)
        return self._limits[-1][1].arrive(now, draw)

    def capacity(self, since: float, until: float) -> float:
        """What one queue can get: the path that is shortest of its part holds all others up."""
        return min(server.capacity(since, until) / part for part, server in self._limits)


class Hosts:
    """Hosts behind one limit, one of which takes `after_s` longer for its `part` of the requests."""

    def __init__(self, limit: Server, *, part: float, after_s: float) -> None:
        self._limit = limit
        self._part = part
        self._after_s = after_s

    def arrive(self, now: float, draw: Callable[[], float]) -> Reply:
        """The limit answers for all; an accepted request may be one for the slow host."""
        reply = self._limit.arrive(now, draw)
        if reply.outcome is Outcome.SUCCESS and draw() < self._part:
            return Reply(reply.outcome, self._after_s)
        return reply

    def capacity(self, since: float, until: float) -> float:
        """The limit's."""
        return self._limit.capacity(since, until)


class Several:
    """Hosts that have nothing in common but their crawler; only measured together."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self._servers = tuple(servers)

    def arrive(self, now: float, draw: Callable[[], float]) -> Reply:
        """Not asked: each host answers for itself."""
        raise NotImplementedError

    def capacity(self, since: float, until: float) -> float:
        """The sum of all."""
        return sum(server.capacity(since, until) for server in self._servers)
