"""Spider arguments are checked before anything is sent, and refused in one line that says what would do.

`BadArgument` carries the whole message for the user: the `crawl` command prints it without a traceback and exits with 2.
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


class BadArgument(ValueError):
    """An argument that cannot work. Its text is one line and names the argument, its value and what would do."""


def require(spidercls: type[Spider], given: Mapping[str, Any]) -> None:
    """Refuse a crawl without the arguments that `spidercls.required_arguments` names.

    Not part of a spider's construction: `scrapy parse`, `fetch` and `shell` make spiders without arguments.

    Raises:
        BadArgument: One of them is missing or empty.
    """
    required: Mapping[str, str] = getattr(spidercls, "required_arguments", {})
    for name, form in required.items():
        if not given.get(name):
            raise BadArgument(f"{spidercls.name}: an argument is missing; add -a {name}={form}")


def refuse_unknown(spider: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse arguments that *spider* does not read, with the nearest name that it does.

    Names with a leading underscore pass: Scrapyd adds `_job`.

    Raises:
        BadArgument: An argument is not among *known*.
    """
    names = sorted(known)
    for name in given:
        if name.startswith("_"):
            continue
        near = difflib.get_close_matches(name, names, n=1)
        meant = f"did you mean {near[0]}?" if near else f"it knows {', '.join(names) or 'none'}"
        raise BadArgument(f"{spider}: unknown argument {name}; {meant}")


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
