"""Redis is away, for a while: how long to wait before the next try, and what to say of it.

The rule it keeps: trouble is told once when it begins, once when it changes, and once when it ends.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .stores.base import StoreError

logger = logging.getLogger(__name__)

RETRY_BASE_S, RETRY_CAP_S = 0.1, 2.0


class Away:
    """One for each worker.

    Args:
        began: Called when trouble begins.

    Attributes:
        since_at: Wall-clock seconds of its beginning, while it lasts.
        failures: Tries that failed in a row.
    """

    def __init__(self, began: Callable[[], None]) -> None:
        self.since_at: float | None = None
        self.failures = 0
        self._began = began
        self._said = ""

    def wait_s(self, error: StoreError) -> float:
        """*error* came. Returns seconds to wait before the next try."""
        self.failures += 1
        if self.since_at is None:
            self.since_at = time.time()
            self._began()
        if str(error) != self._said:
            self._said = str(error)
            logger.warning("%s What is in hand goes on; it is tried again", error)
        return float(min(RETRY_CAP_S, RETRY_BASE_S * 2 ** min(self.failures, 10)))

    def over(self) -> None:
        """A try went well."""
        self.failures = 0
        if self.since_at is not None:
            logger.info("Redis works again after %.1f s", time.time() - self.since_at)
            self.since_at, self._said = None, ""
