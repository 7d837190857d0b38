"""Dead letters are made here: what was given up, why, and all that a replay needs.

The rule it keeps: no credentials. What identifies a person or a password (userinfo in URLs, Authorization, Cookie) is taken
out before a letter exists.
"""

from __future__ import annotations

import hashlib
import json
import traceback
import uuid
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter, is_item
from scrapy.spidermiddlewares.httperror import HttpError

from . import names
from .domains import Trouble
from .policy.redact import redact_url
from .proxymarks import strip
from .stores.base import DeadLetter

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from twisted.python.failure import Failure

    from .leases import Lease
    from .policy.frontier import Entry
    from .stores.deadletter_rows import Row

DETAIL_BYTES = 4000
"""Enough for the innermost frames of a traceback; a million letters must stay readable."""


def place_of(failure: Failure) -> str:
    """Exception and innermost place in the user's code, the same for every failure by one bug."""
    frames = traceback.extract_tb(failure.value.__traceback__) if failure.value else []
    own = [
        f for f in frames if "site-packages" not in f.filename and "/lib/python" not in f.filename
    ]
    last = (own or list(frames))[-1:]
    name = type(failure.value).__name__
    if not last:
        return name
    where = "/".join(last[0].filename.replace("\\", "/").split("/")[-2:])
    return f"{name} at {where}:{last[0].lineno}"


class Letters:
    """Makes dead letters for one spider."""

    def __init__(self, *, spider: Callable[[], str], now_at: Callable[[], float]) -> None:
        self._spider = spider
        self._now_at = now_at

    def _letter(self, **fields: Any) -> DeadLetter:
        now_at = self._now_at()
        known: dict[str, Any] = {
            "uid": uuid.uuid4().hex,
            "spider": self._spider(),
            "status": None,
            "exception": None,
            "attempts": 0,
            "first_at": now_at,
            "last_at": now_at,
        }
        return DeadLetter(**{**known, **fields, "detail": fields["detail"][:DETAIL_BYTES]})

    def of_request(
        self,
        request: Request,
        *,
        payload: bytes,
        key: str,
        domain: str,
        reason: str,
        detail: str,
        sent: int = 0,
        **fields: Any,
    ) -> DeadLetter:
        """A letter of a request that is at hand."""
        meta = request.meta
        return self._letter(
            kind="request",
            key=key,
            url=redact_url(request.url),
            domain=domain,
            reason=reason,
            detail=detail,
            attempts=sent + meta.get("retry_times", 0) + meta.get(names.REFUSALS, 0),
            first_at=meta.get(names.FIRST_AT, self._now_at()),
            payload=payload,
            dead_letter_id=meta.get(names.DEAD_LETTER),
            **fields,
        )

    def again(self, row: Row, *, detail: str) -> DeadLetter:
        """A letter that was brought back and cannot be read."""
        return self._letter(
            kind=row.kind,
            key=row.key,
            url=row.url,
            domain=row.domain,
            reason="unreadable",
            detail=detail,
            payload=row.payload,
            dead_letter_id=row.id,
        )

    def of_payload(self, entry: Entry, payload: bytes, *, reason: str, detail: str) -> DeadLetter:
        """A letter of a stored request that is not, or cannot be, read back."""
        return self._letter(
            kind="request",
            key=hashlib.sha1(payload, usedforsecurity=False).hexdigest(),
            url=_url_in(payload),
            domain=entry.domain,
            reason=reason,
            detail=detail,
            payload=payload,
        )

    def of_item(
        self, item: Any, *, reason: str, error: BaseException | None, lease: Lease | None
    ) -> DeadLetter:
        """A letter of an item that a pipeline refused or failed on."""
        fields = dict(ItemAdapter(item)) if is_item(item) else {"item": item}
        url = str(fields.get("url") or (lease.request.url if lease is not None else ""))
        return self._letter(
            kind="item",
            key=uuid.uuid4().hex,
            url=redact_url(url),
            domain=lease.domain.name if lease is not None else "",
            reason=reason,
            detail=f"{type(error).__name__}: {error}",
            exception=_class_name(error),
            payload=repr(fields).encode("utf-8", "backslashreplace"),
        )


SECRET_HEADERS = ("Authorization", "Proxy-Authorization", "Cookie")
SECRET_META = ("_auth_proxy", "http_user", "http_pass", "cookiejar")


def without_credentials(request: Request) -> Request:
    """A copy of *request* fit for a dead letter; a replay gets its cookies and passwords as the first time did."""
    plain = request.replace(url=redact_url(request.url), cookies={})
    for name in SECRET_HEADERS:
        plain.headers.pop(name, None)
    strip(plain)
    for name in SECRET_META:
        plain.meta.pop(name, None)
    if "proxy" in plain.meta:
        plain.meta["proxy"] = redact_url(str(plain.meta["proxy"]))
    return plain


def cause_of(failure: Failure) -> str:
    """Stable reason of a failed request, in a user's words."""
    return _cause(failure.value)


def _cause(value: BaseException | None) -> str:
    if isinstance(value, HttpError):
        return f"http {value.response.status}"
    name = type(value).__name__
    if name == "Banned":
        return "ban"
    if name == "IgnoreRequest":
        if "redirections" in str(value):
            return "redirects"
        return "too large" if "DOWNLOAD_" in str(value) else "ignored"
    return _NETWORK.get(name, name)


def trouble_of(exception: Exception) -> Trouble:
    """A failure to get any response, for the letters of a domain that is given up for it."""
    return Trouble(
        reason=_cause(exception), detail=f"last: {exception!r}", exception=_class_name(exception)
    )


def skipped_because(failure: Failure) -> str:
    """Stable reason of a request that was left out on purpose."""
    text = str(failure.value).lower()
    if "robots.txt" in text:
        return "robots.txt"
    if "offsite" in text or "filtered offsite" in text:
        return "offsite"
    return type(failure.value).__name__


def detail_of(failure: Failure) -> str:
    """The failure's class and message, with the innermost frames where there are any."""
    value = failure.value
    head = "; ".join([f"{_class_name(value)}: {value}", *getattr(value, "__notes__", ())])
    frames = traceback.extract_tb(value.__traceback__ if value is not None else None)[-4:]
    return head if not frames else head + "\n" + "".join(traceback.format_list(frames))


def _url_in(payload: bytes) -> str:
    """The URL that a stored request names, if it can be read at all."""
    try:
        url = json.loads(payload).get("url")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return redact_url(url) if isinstance(url, str) else ""


def _class_name(error: BaseException | None) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def class_of(failure: Failure) -> str:
    """Full name of the exception's class."""
    return _class_name(failure.value)


_NETWORK = {
    "TimeoutError": "timeout",
    "TCPTimedOutError": "timeout",
    "UserTimeoutError": "timeout",
    "DownloadTimeoutError": "timeout",
    "DNSLookupError": "dns",
    "CannotResolveHostError": "dns",
    "ConnectionRefusedError": "refused",
    "DownloadConnectionRefusedError": "refused",
    "ConnectError": "connection failed",
    "NoRouteError": "connection failed",
    "ConnectionLost": "connection lost",
    "ConnectionDone": "connection lost",
    "ResponseNeverReceived": "connection lost",
    "ResponseFailed": "connection lost",
    "DownloadFailedError": "connection lost",
    "DownloadCancelledError": "too large",
    "ResponseDataLossError": "data loss",
    "UnsupportedURLSchemeError": "scheme",
    "NotSupported": "scheme",
    "SSLError": "tls",
}
