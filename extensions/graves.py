"""Where requests and items that came to nothing are written down, and how it is known that they did.

The rule it keeps: whatever is not a page in the end leaves a dead letter with its reason, or a counted reason why it needs
none. Scrapy's signals and the errback tell; nothing is guessed.
"""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING, Any

from scrapy import signals

from . import letters, names
from .codec import Unreadable, Unserialisable
from .leases import ErrbackRecorder
from .ledger import entry_of
from .letters import Letters
from .policy.redact import redact_url
from .stores.deadletter_rows import settled

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.signalmanager import SignalManager
    from twisted.python.failure import Failure

    from .control import Control
    from .domains import Trouble
    from .leases import Lease
    from .policy.frontier import Entry
    from .stores.base import DeadLetter, StoredRequest

logger = logging.getLogger(__name__)


class Graves:
    """Makes and counts the dead letters of one crawl."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._told_unstorable: set[str] = set()
        self.letters = Letters(spider=lambda: control.spider.name, now_at=control.now_at)

    def listen(self, manager: SignalManager) -> None:
        """Connect to what tells how requests and items end."""
        manager.connect(self.response_received, signals.response_received)
        manager.connect(self.spider_error, signals.spider_error)
        manager.connect(self.item_error, signals.item_error)
        manager.connect(self.item_dropped, signals.item_dropped)

    def letters_of(self, lease: Lease) -> list[DeadLetter]:
        """The dead letter of a request that ended without its page; none where the user wants none."""
        failure = (
            lease.failure or lease.error
        )  # an errback's own error comes after what it was called for
        if failure is None:
            reason, detail, status, exception = "vanished", "no middleware said why", None, None
        else:
            reason = "callback error" if lease.failure is None else letters.cause_of(failure)
            detail, exception = letters.detail_of(failure), letters.class_of(failure)
            status = getattr(getattr(failure.value, "response", None), "status", None)
            if lease.failure is not None and lease.error is not None:
                detail = f"{detail}\nThen its errback failed: {letters.detail_of(lease.error)}"
        if lease.handled and lease.error is None and not self._control.config.dead_letters_handled:
            self._control.stats.inc_value(names.STAT_SKIPPED % "handled by errback")
            self._control.book.left_out(lease.domain.name, "handled by errback")
            return []
        if lease.proxy is not None:
            detail = f"{detail}\nThrough the proxy {lease.proxy}"
        request = lease.request
        if isinstance(request.errback, ErrbackRecorder):
            request.errback = request.errback.inner
        letter = self.letters.of_request(
            request,
            payload=self._payload(request),
            key=self._key(request),
            domain=lease.domain.name,
            reason=reason,
            detail=detail,
            sent=1,
            status=status,
            exception=exception,
        )
        self.count_dead(reason, letter)
        return [letter]

    def _key(self, request: Request) -> str:
        try:
            return self._control.fingerprint(request).hex()
        except Exception:  # noqa: BLE001 - the last resort must not fail, whatever is in the request
            return hashlib.sha1(request.url.encode(), usedforsecurity=False).hexdigest()

    def _payload(self, request: Request) -> bytes:
        """What a dead letter keeps of *request*: all of it, or what can be kept."""
        try:
            return self._control.ledger.codec.encode(letters.without_credentials(request))
        except Exception:  # noqa: BLE001 - the last resort must not fail, whatever is in the request
            return json.dumps({"url": redact_url(request.url), "method": request.method}).encode()

    def unstorable(self, request: Request, error: Unserialisable) -> None:
        """*request* cannot be stored: say so once for each kind of reason."""
        self._control.stats.inc_value(names.STAT_MEMORY_ONLY)
        if error.field not in self._told_unstorable:
            self._told_unstorable.add(error.field)
            logger.warning(
                "%s cannot be stored (%s): it lives in memory only and is lost if the process dies."
                " Further ones like it are only counted",
                request,
                error,
                extra={"spider": self._control.spider},
            )

    def bury_entry(
        self, entry: Entry, reason: str, detail: str, *, trouble: Trouble | None = None
    ) -> None:
        """*entry* will not be sent: it becomes a dead letter. *trouble*: what its domain was given up for."""
        if trouble is not None:
            detail = f"{detail}; {trouble.detail}"
        request = entry.request
        if isinstance(request, bytes):
            try:
                request = self._control.ledger.codec.decode(request)
            except Unreadable as error:
                self.bury_unreadable(entry, error)
                return
        letter = self.letters.of_request(
            request,
            payload=self._payload(request),
            key=self._key(request),
            domain=entry.domain,
            reason=reason,
            detail=detail,
            status=trouble.status if trouble is not None else None,
            exception=trouble.exception if trouble is not None else None,
        )
        self.count_dead(reason, letter)
        self._control.ledger.bury(letter)
        self._control.ledger.drop(entry)
        self._control.flush_soon()

    def bury_crashed(self, row: StoredRequest) -> None:
        """*row* was in flight when too many processes died."""
        self.bury_entry(entry_of(row), "crashed the process", f"{row.crashes} processes died")

    def bury_unreadable(self, entry: Entry, error: Unreadable) -> None:
        """The payload of *entry* cannot be read back: keep its bytes and the reason."""
        letter = self.letters.of_payload(
            entry, bytes(entry.request), reason="unreadable", detail=str(error)
        )
        self._control.stats.inc_value(names.STAT_UNREADABLE)
        self.count_dead("unreadable", letter)
        self._control.ledger.bury(letter)
        self._control.ledger.drop(entry)
        self._control.flush_soon()

    def count_dead(self, reason: str, letter: DeadLetter) -> None:
        """One dead letter more; the first of a kind on a domain is said, further ones are counted."""
        self._control.stats.inc_value(names.STAT_DEAD_COUNT)
        self._control.stats.inc_value(names.STAT_DEAD % reason)
        bury = (
            self._control.book.buried
            if letter.kind == "request"
            else self._control.book.buried_item
        )
        if bury(letter.domain, reason, url=letter.url, now_at=letter.last_at):
            self._control.tell.first_letter(letter)
        self._control.tell.letter(letter)

    def settled_letter(self, lease: Lease) -> list[DeadLetter]:
        """The news for the dead-letter file that a replayed request has ended well."""
        row_id = lease.request.meta.get(names.DEAD_LETTER)
        return [] if row_id is None else [settled(row_id, spider=self._control.spider.name)]

    def bury_letter(self, letter: DeadLetter) -> None:
        """A dead letter that somebody else has made."""
        self.count_dead(letter.reason, letter)
        self._control.ledger.bury(letter)
        self._control.flush_soon()

    # -- what Scrapy's signals tell ----------------------------------------------------------------------

    def response_received(self, request: Request) -> None:
        """A response left the downloader middlewares."""
        lease = self._control.lease_of(request)
        if lease is not None:
            lease.responded = True

    def spider_error(self, failure: Failure) -> None:
        """A callback or an errback raised."""
        self._control.book.failed_in_spider(letters.place_of(failure))
        lease = self._control.lease_at_work()
        if lease is not None and lease.error is None:
            lease.error = failure

    def item_error(self, item: Any, failure: Failure) -> None:
        """A pipeline raised: the item is lost to the results, and becomes a dead letter."""
        self._bury_item(item, "item error", failure.value)

    def item_dropped(self, item: Any, exception: BaseException) -> None:
        """A pipeline dropped an item on purpose; one dropped as invalid is a dead letter all the same."""
        if getattr(exception, "sluice_dead_letter", False):
            self._bury_item(item, "item invalid", exception)

    def _bury_item(self, item: Any, reason: str, error: BaseException | None) -> None:
        if not self._control.is_open:
            return
        lease = self._control.lease_at_work()
        letter = self.letters.of_item(item, reason=reason, error=error, lease=lease)
        self.count_dead(reason, letter)
        if lease is None:
            self._control.ledger.bury(letter)
            self._control.flush_soon()
        else:
            lease.letters.append(letter)
