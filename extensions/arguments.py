"""Spider arguments are checked before anything is sent, and refused in one line.

`BadArgument` carries the whole message for the user: the `crawl` command prints it without a
traceback and exits with 2.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scrapy import Spider

_NOT_IN_A_URL = re.compile(r"[\s\x00-\x1f\x7f]")


REASON = "bad_argument"  # finish reason of a crawl whose arguments turn out useless once it runs


class BadArgument(ValueError):
    """An argument that cannot work. The text names it, its value, and what would do."""


def require(spidercls: type[Spider], given: Mapping[str, Any]) -> None:
    """Refuse a crawl without the arguments that `spidercls.required_arguments` names.

    Not part of a spider's construction: `scrapy parse`, `fetch` and `shell` make spiders without
    arguments.

    Raises:
        BadArgument: One of them is missing or empty.
    """
    required: Mapping[str, str] = getattr(spidercls, "required_arguments", {})
    for name, form in required.items():
        if not given.get(name):
            raise BadArgument(f"{spidercls.name}: an argument is missing; add -a {name}={form}")


def refuse_unknown(spidercls: type[Spider], given: Iterable[str]) -> None:
    """Refuse arguments that neither `required_arguments` nor `optional_arguments` names.

    A spider that has none of the two takes any. Names with a leading underscore pass: Scrapyd
    adds `_job`.

    Raises:
        BadArgument: An argument that would be ignored; the message gives the nearest known name.
    """
    dicts = [getattr(spidercls, f"{kind}_arguments", None) for kind in ("required", "optional")]
    if dicts == [None, None]:
        return
    known = [name for names in dicts if names for name in names]
    for name in given:
        if name in known or name.startswith("_"):
            continue
        near = difflib.get_close_matches(name, known, n=1)
        meant = f"did you mean {near[0]}?" if near else f"it knows {', '.join(known) or 'none'}"
        raise BadArgument(f"{spidercls.name}: unknown argument {name}; {meant}")


def whole_number(name: str, text: str) -> int:
    """*text* as a whole number, 0 or more.

    Raises:
        BadArgument: It is anything else.
    """
    if not re.fullmatch(r"[0-9]{1,9}", str(text).strip()):
        raise BadArgument(f"{name}={text}: give a whole number, 0 or more")
    return int(text)


def pattern(name: str, text: str) -> re.Pattern[str]:
    """*text* as a compiled regular expression.

    Raises:
        BadArgument: It is no regular expression; the message says where it breaks.
    """
    try:
        return re.compile(text)
    except re.error as error:
        raise BadArgument(f"{name}={text}: broken regular expression: {error}") from None


def web_url(name: str, text: str) -> str:
    """*text* as an absolute http or https URL.

    Raises:
        BadArgument: It is none.
    """
    url = str(text).strip()
    if fault := url_fault(url):
        raise BadArgument(f"{name}={url}: {fault}")
    return url


def url_fault(url: str) -> str | None:
    """Why *url* cannot be fetched, or None if it is an absolute http or https URL with a host."""
    if _NOT_IN_A_URL.search(url):
        return "no URL: it holds a space or a control character"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"no URL: {error}"
    if parts.scheme not in {"http", "https"}:
        if parts.scheme and "://" in url:
            return f"{parts.scheme}:// is not crawled, only http:// and https://"
        return "no URL: it does not begin with http:// or https://"
    if not parts.hostname:
        return "no URL: the host is missing"
    return "no URL: port 0" if port == 0 else None
