"""The end of a crawl: what is missing, with which code the process ends, and the stats that say so.

The rule it keeps: the snapshot that is shown last is taken when the verdict is known, and says the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import names
from .policy.bottleneck import Code
from .policy.ending import Ending, exit_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .control import Control
    from .policy.ending import Condition
    from .sampler import Sampler


def take_stock(
    sampler: Sampler,
    control: Control,
    reason: str,
    *,
    kept: bool,
    conditions: Sequence[Condition],
) -> tuple[int, str]:
    """Close the books.

    Args:
        sampler: Makes its last snapshots.
        control: The crawl.
        reason: Why it has ended, as Scrapy says it.
        kept: What is left goes on at the next start.
        conditions: What counts as a failure: `SLUICE_FAIL_ON`.

    Returns:
        The exit code, and the rule that chose it.
    """
    book, stats = control.book, control.stats
    sampler.finish = (reason, False)
    snapshot = sampler.tick()
    ending = Ending(
        reason=reason,
        account=snapshot.account,
        answers=book.answers,
        refused=book.refused,
        lost_items=book.dead_items,
        unwritten=snapshot.gauges.results_waiting,
        source_failed=control.source_failed,
        kept=kept,
    )
    code, rule = exit_code(ending, conditions)
    sampler.finish = (reason, ending.complete)
    sampler.exit = (int(code), rule)
    sampler.tick()
    stats.set_value(names.STAT_COMPLETE, ending.complete)
    stats.set_value(names.STAT_EXIT_CODE, int(code))
    stats.set_value(names.STAT_ACCOUNT_OFF, snapshot.account.difference)
    for name, spent in sampler.bottleneck.snapshot().items():
        if name not in {Code.FINISHED, Code.INCOMPLETE}:
            stats.set_value(names.STAT_BOTTLENECK % name, spent)
    return int(code), rule
