"""Proxies that fell at the same time fell of one cause, so that one of them is tried for all.

The rule it keeps: the requests that find out whether dead proxies are back are few, however many are dead: a provider's
outage takes half of a pool at once. One after the other stands for its cohort; when it is back, all are tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .member import FIRST_REST_S, Health

if TYPE_CHECKING:
    from .member import Member

TOGETHER_S = 3.0
"""Longest time between the first and the last fall of one cohort."""
LAST_TRY_S = 4.0
"""Longest time between two tries for a cohort: a try costs one request, whoever is in it."""
ALONE_S = 4.0
"""A member is tried for itself after this, times the members: it may be back though the others are not."""


class Cohort:
    """Those that fell together.

    Attributes:
        members: In the order of their fall; some may be back.
        began_due: When the first of them fell.
    """

    __slots__ = ("_next", "_tries", "began_due", "members")

    def __init__(self, now: float) -> None:
        self.members: list[Member] = []
        self.began_due = now
        self._next = 0
        self._tries = 0

    def join(self, member: Member, now: float, *, u: float) -> None:
        """*member* fell too. It rests as it would alone if it is the first, else until its turn comes."""
        self.members.append(member)
        member.cohort = self
        if len(self.members) > 1:
            self._put_off(member, now, u)

    def tried(self, member: Member, now: float, *, u: float) -> Member | None:
        """*member* stood for all and is not back. Returns who is next, with its time set; None: it is alone."""
        if len(self.members) < 2:  # noqa: PLR2004 - two are company
            return None
        self._put_off(member, now, u)
        self._tries += 1
        for _ in self.members:
            self._next = (self._next + 1) % len(self.members)
            other = self.members[self._next]
            if other.health is Health.RESTING and other.cohort is self and not other.gone:
                other.rest_due = now + min(LAST_TRY_S, FIRST_REST_S * 2.0 ** min(self._tries, 10))
                return other
        return None

    def _put_off(self, member: Member, now: float, u: float) -> None:
        alone_s = ALONE_S * len(self.members) * (0.75 + 0.5 * u)
        member.rest_due = max(member.rest_due, now + alone_s)
