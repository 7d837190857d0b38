"""What stands in a queue of seeds, as requests: plain URLs, or JSON as scrapy-redis takes it.

The rule it keeps: an entry is a request or it is refused with a reason. Nothing is guessed, and one bad entry is no other's
trouble.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import FormRequest

from . import names

if TYPE_CHECKING:
    from scrapy import Request

MAX_BYTES = 1_000_000
MAX_URL = 65_536
_FIELDS = ("headers", "cookies", "body", "priority")
_SCHEMES = frozenset({"http", "https"})


class BadEntry(ValueError):
    """An entry that is no request; the message says why."""


def request_of(data: bytes, *, encoding: str = "utf-8") -> Request:
    """The request that *data* asks for: never filtered as a duplicate, as in scrapy-redis.

    JSON objects have `url`, and may have `method`, `meta`, `headers`, `cookies`, `body` and `priority`; their other members
    are the fields of a form.

    Raises:
        BadEntry: it is none.
    """
    if len(data) > MAX_BYTES:
        raise BadEntry(f"{len(data)} bytes; at most {MAX_BYTES} are taken")
    try:
        text = data.decode(encoding).strip()
    except UnicodeDecodeError as error:
        raise BadEntry(f"not {encoding}: {error.reason} at byte {error.start}") from None
    if not text:
        raise BadEntry("empty")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text[0] in "{[":
            raise BadEntry(f"begins like JSON and is none: {error}") from None
        return _made(text, {})
    if not isinstance(value, dict):
        raise BadEntry(f"JSON, but no object: {type(value).__name__}")
    return _of_object(value)


def _of_object(value: dict[str, Any]) -> Request:
    form = dict(value)
    url = form.pop("url", None)
    if not isinstance(url, str):
        raise BadEntry("an object without a url")
    options: dict[str, Any] = {
        "method": str(form.pop("method", None) or "GET").upper(),
        "meta": form.pop("meta", None) or {},
    }
    for name in _FIELDS:
        if name in form:
            options[name] = form.pop(name)
    if form:
        if "body" in options:
            raise BadEntry(f"both a body and form fields ({', '.join(sorted(form))})")
        options["formdata"] = form
    return _made(url.strip(), options)


def _made(url: str, options: dict[str, Any]) -> Request:
    if len(url) > MAX_URL:
        raise BadEntry(f"a URL of {len(url)} characters")
    if any(ord(character) < 32 for character in url):  # noqa: PLR2004 - the control characters
        raise BadEntry("a line break or another control character in the URL")
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        raise BadEntry(f"no URL: {error}") from None
    if parts.scheme.lower() not in _SCHEMES or not host:
        raise BadEntry("no http or https URL")
    try:
        return FormRequest(url, dont_filter=True, **options)
    except (TypeError, ValueError, AttributeError) as error:
        raise BadEntry(f"no request can be made of it: {error}") from None


def poison(data: bytes, reason: str, *, at: float) -> str:
    """What goes to the poison list: JSON with the entry, the reason and the time."""
    try:
        entry: dict[str, Any] = {"entry": data.decode()}
    except UnicodeDecodeError:
        entry = {"entry_base64": base64.b64encode(data).decode()}
    return json.dumps({**entry, "reason": reason, "at": round(at, 3)}, ensure_ascii=False)


def mark(request: Request, entry: int) -> Request:
    """Have the scheduler tell when *request* is stored."""
    request.meta[names.ENTRY] = entry
    return request
