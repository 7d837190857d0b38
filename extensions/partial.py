"""How much of an answer had come when its time was up: the difference between a dead host and a slow one.

The rule it keeps: a crawl without timeouts pays nothing. Scrapy tells of each chunk only to those who listen, so the listening
begins with the first timeout; a page that is given up has been tried after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.exceptions import DownloadTimeoutError

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.signalmanager import SignalManager


class PartialAnswers:
    """Counts what came of answers that are still coming."""

    def __init__(self, manager: SignalManager) -> None:
        self._manager = manager
        self._received: WeakKeyDictionary[Request, int] | None = None

    def explain(self, request: Request, exception: Exception) -> None:
        """Note on a timeout how many bytes had come."""
        if not isinstance(exception, DownloadTimeoutError):
            return
        if self._received is None:
            self._received = WeakKeyDictionary()
            self._manager.connect(self._note, signals.bytes_received)
        elif "bytes of the body" not in str(exception):  # the fast handler says so itself
            count = self._received.pop(request, 0)
            exception.add_note(f"{count:,} bytes of the body had come")

    def _note(self, data: bytes, request: Request) -> None:
        if self._received is not None:
            self._received[request] = self._received.get(request, 0) + len(data)
