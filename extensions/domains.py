"""One record a domain: its governor, its retry budget, how long it has only refused.

The rule it keeps: what a crawl knows of a domain lives here and is freed when the domain has no work and nothing worth
remembering, so that a broad crawl's memory does not grow with every host it ever saw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .policy.governor import DomainGovernor
from .policy.retry import RetryBudget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .policy.handover import Kept
    from .politeness import Politeness

KEEP_IDLE_S = 60.0
"""A drained domain with nothing learned is freed after this: links to it often come in waves."""
KEEP_LEARNED_S = 900.0
"""One with a learned limit is kept this long: forgetting it costs the refusals of finding it again."""
SWEEP_SLICE = 256
"""Domains looked at in one sweep, so that a sweep costs the same however many there are."""


@dataclass(slots=True, frozen=True)
class Trouble:
    """The last failure of a domain, in the words of a dead letter."""

    reason: str
    detail: str
    status: int | None = None
    exception: str | None = None


class Domain:
    """What is known of one domain during a crawl."""

    __slots__ = (
        "budget",
        "given_up",
        "governor",
        "idle_due",
        "in_flight",
        "leaving",
        "name",
        "pages",
        "patience_due",
        "paused",
        "refused",
        "retries",
        "slot_set",
        "strays",
        "trouble",
    )

    def __init__(self, *, name: str, governor: DomainGovernor, budget: RetryBudget) -> None:
        self.name = name
        self.governor = governor
        self.budget = budget
        self.in_flight = 0
        self.idle_due = math.inf
        self.patience_due = math.inf  # when an unbroken row of refusals ends in giving up
        self.given_up: str | None = (
            None  # the reason, once the domain's requests go to the dead letters
        )
        self.trouble: Trouble | None = None
        self.slot_set = False
        self.strays = 0  # robots.txt and media that wait: they go before the domain's pages
        self.pages = 0
        self.refused = 0
        self.retries = 0
        self.leaving = False  # another worker gets it: nothing more is asked here
        self.paused = False  # by hand: asked nothing until it is resumed


class Domains:
    """All domains that have work, run, or are worth remembering.

    Args:
        politeness: What the user and robots.txt ask for.
        retry_ratio: Share of traffic that retries may be.
        recall: Of a domain's name: what an earlier run found, as `DomainGovernor.snapshot` gave it, or None.
        note: Told of each domain that is freed.
        u: Uniform draws from [0, 1).
    """

    def __init__(
        self,
        *,
        politeness: Politeness,
        retry_ratio: float,
        recall: Callable[[str], Mapping[str, Any] | None],
        note: Callable[[Domain], None],
        u: Callable[[], float],
    ) -> None:
        self._politeness = politeness
        self._retry_ratio = retry_ratio
        self._recall = recall
        self._note = note
        self._u = u
        self._known: dict[str, Domain] = {}
        self._sweep: list[str] = []

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Domain]:
        return iter(self._known.values())

    def find(self, name: str) -> Domain | None:
        """The record of *name*, if there is one."""
        return self._known.get(name)

    def get(self, name: str, now: float) -> Domain:
        """The record of *name*; a new one if there is none."""
        domain = self._known.get(name)
        if domain is None:
            governor = self._governor(name, self._recall(name) or {})
            domain = Domain(
                name=name, governor=governor, budget=RetryBudget(ratio=self._retry_ratio, now=now)
            )
            self._known[name] = domain
        return domain

    def inherit(self, name: str, kept: Kept, now: float, *, age_s: float, died: bool) -> None:
        """*name* came from another worker, which *kept* this of it, *age_s* seconds ago."""
        governor = self._governor(name, {})
        governor.take_over(kept, now, age_s=age_s, died=died)
        record = self.get(name, now)
        if not record.in_flight:  # else this worker was taken for dead, and knows better
            record.governor = governor

    def _governor(self, name: str, remembered: Mapping[str, float | int | None]) -> DomainGovernor:
        ceiling = self._politeness.ceiling(name)
        delay_s = self._politeness.min_delay_s(name)
        governor = DomainGovernor.restore(
            remembered, max_concurrency=ceiling, min_interval_s=delay_s, u=self._u
        )
        self._politeness.set_floors(name, governor)
        return governor

    def sweep(self, now: float, is_busy: Callable[[Domain], bool]) -> list[str]:
        """Free some drained domains. Returns the names of those that were freed."""
        if not self._sweep:
            self._sweep = list(self._known)
        freed = []
        for _ in range(min(SWEEP_SLICE, len(self._sweep))):
            name = self._sweep.pop()
            domain = self._known.get(name)
            if domain is None:
                continue
            if is_busy(domain):
                domain.idle_due = math.inf
                continue
            if domain.idle_due == math.inf:
                plain = domain.given_up is None and domain.governor.forgettable(now)
                domain.idle_due = now + (KEEP_IDLE_S if plain else KEEP_LEARNED_S)
            elif domain.idle_due <= now:
                self._note(domain)
                del self._known[name]
                freed.append(name)
        return freed
