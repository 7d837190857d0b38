"""Keys of Redis that somebody waits for: a queue of seeds, dead letters that are to be replayed.

The rule it keeps: whoever waits asks nothing himself. The worker speaks to Redis once a second as it is; the keys are looked
at on that way, and whoever waits for one is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .stores.redis import RedisJobStore


class Watches:
    """One for each worker."""

    def __init__(self, store: RedisJobStore) -> None:
        self._keys = store.wishes.watch
        self._looks: dict[str, Callable[[], None]] = {}
        self._requests: dict[str, int] = {}  # of dead letters
        store.events.watched = self._watched

    def queue(self, key: str, taker: str, look: Callable[[], None]) -> None:
        """Call *look* while there are seeds under *key*, from which *taker* takes; the look costs no command of its own."""
        self._looks[key], self._keys[key] = look, taker

    def letters(self, key: str, look: Callable[[], None]) -> None:
        """Call *look* when somebody wants dead letters under *key* replayed."""
        self._looks[key], self._keys[key] = look, ""

    def no_more(self, key: str) -> None:
        """Whoever watched *key* is gone."""
        self._looks.pop(key, None)
        self._keys.pop(key, None)

    def _watched(self, key: str, number: int) -> None:
        look = self._looks.get(key)
        if look is None:
            return
        if self._keys[key]:
            if number:
                look()
        elif number != self._requests.get(key, number):
            look()
        self._requests[key] = number
