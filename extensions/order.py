"""In which order requests of equal priority go, as Scrapy's queue settings say.

The rule it keeps: a queue that was chosen for its order keeps its order, though no queue of Scrapy's is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

SEED_RANK = 1 << 48
"""Added to a seed's rank, so that at the same priority links go before seeds, as in Scrapy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Ranks: the smallest goes first.

    Attributes:
        links_first_in_first_out: Otherwise the newest link goes first.
        seeds_first_in_first_out: The same for seeds; None: seeds stand among the links.
    """

    links_first_in_first_out: bool = False
    seeds_first_in_first_out: bool | None = True

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read SCHEDULER_MEMORY_QUEUE and SCHEDULER_START_MEMORY_QUEUE: Fifo or Lifo is in the name of each of Scrapy's."""
        links, seeds = (
            settings["SCHEDULER_MEMORY_QUEUE"],
            settings["SCHEDULER_START_MEMORY_QUEUE"],
        )
        return cls(
            links_first_in_first_out="Fifo" in str(links),
            seeds_first_in_first_out="Lifo" not in str(seeds) if seeds else None,
        )

    def rank(self, number: int, *, seed: bool) -> int:
        """Of the *number*-th request of the job."""
        if seed and self.seeds_first_in_first_out is not None:
            return SEED_RANK + (number if self.seeds_first_in_first_out else -number)
        return number if self.links_first_in_first_out else -number
