"""What the owner of a shared store asks of it, beside what every job store promises.

The rule it keeps: what is said of the whole job is as of the last answer from Redis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Batch, State

if TYPE_CHECKING:
    from .redisbuffer import Outgoing
    from .redisexchange import Exchange
    from .redishand import Hand
    from .redisvalues import Events, Memory, Totals, Wishes


class OwnersSide:
    """The upper half of `RedisJobStore`.

    Args:
        out: What there is to tell Redis.
        hand: What this worker has.
        exchange: The talk with Redis.
    """

    def __init__(self, *, out: Outgoing, hand: Hand, exchange: Exchange) -> None:
        self._out = out
        self._hand = hand
        self._exchange = exchange

    @property
    def events(self) -> Events:
        """What the owner wants to hear."""
        return self._exchange.events

    @property
    def wishes(self) -> Wishes:
        """What the owner wants of the next exchange."""
        return self._exchange.wishes

    @property
    def totals(self) -> Totals:
        """The whole job, as of the last answer."""
        return self._exchange.totals

    @property
    def memory(self) -> Memory:
        """How full Redis is."""
        return self._exchange.memory

    @property
    def number(self) -> int:
        """Of this worker, in the job; 0 before it has entered."""
        return self._exchange.number

    @property
    def job(self) -> str:
        """Name of the job."""
        return self._exchange.job

    @property
    def full(self) -> bool:
        """Does Redis take nothing but ends?"""
        return self._exchange.full

    def in_hand(self, id_: int) -> bool:
        """Is row *id_* this worker's?"""
        return self._hand.rows.get(id_, State.HELD) is not State.HELD

    def hand_back(self, domain: str) -> int:
        """Give back all rows of *domain* that this worker has and has not sent. Returns how many."""
        rows = self._hand.shelf.clear(domain)
        self._out.take(Batch(moved=[(State.PENDING, row.id) for row in rows]))
        return len(rows)

    @property
    def domains(self) -> set[str]:
        """This worker's domains, as far as is known."""
        return self._hand.own

    def line(self, domain: str) -> int:
        """Rows of *domain* that are left in Redis, as of the last answer."""
        return self._hand.shelf.left(domain)

    def fetched_of(self, domain: str) -> int:
        """Rows of *domain* that were fetched and not given out."""
        return len(self._hand.shelf.peek(domain))

    @property
    def rows_each(self) -> int | None:
        """Rows of one domain that this worker may have ahead where others share it; None: it has its domains alone."""
        return None if self.workers_per_domain == 1 else self._hand.shelf.most

    @property
    def fetched(self) -> int:
        """Rows that were fetched and not given out."""
        return len(self._hand.shelf)

    @property
    def waiting(self) -> int:
        """Rows and ends that Redis does not have yet."""
        return len(self._out)

    @property
    def sends(self) -> bool:
        """Is there something that may go to Redis now?"""
        return not self._out.is_empty

    @property
    def has_news(self) -> bool:
        """Is there something for an exchange to do at once?"""
        hand = self._hand
        return (self.sends and not self.full) or bool(
            self.wishes.release or next(hand.shelf.wants(len(hand.own)), None)
        )

    @property
    def late_ends(self) -> int:
        """Ends that were refused, since their rows were others' by then."""
        return self._exchange.refused

    def lost_ends(self, count: int) -> None:
        """So many more."""
        self._exchange.refused += count

    @property
    def silent_s(self) -> float:
        """Seconds since Redis's last answer."""
        return self._exchange.silent_s

    @property
    def lease_s(self) -> float:
        """How long a silent worker is taken for alive."""
        return self._exchange.terms.lease_s

    @property
    def workers_per_domain(self) -> int:
        """How many may share one."""
        return self._exchange.terms.workers_per_domain
