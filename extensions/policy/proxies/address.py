"""Proxies as people write them, taken apart; credentials go one way and everything that is shown another.

The rule it keeps: what names a proxy (`Address.name`, a `BadProxy`) holds no credentials, so that nothing that logs, counts
or stores it has to think of them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMES = ("http", "https")
NEEDS_FAST_HANDLER = "https:// proxies need SLUICE_FAST_HANDLER=True"
_HOST_PORT_USER_PASSWORD = 4
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII | re.IGNORECASE)
_PORT = re.compile(r"0*[1-9][0-9]{0,4}", re.ASCII)
_MAX_PORT = 65_535
_MAX_NAME = 253


class BadProxy(ValueError):
    """A line that is no proxy; says why, without credentials."""


@dataclass(frozen=True, slots=True)
class Address:
    """One proxy.

    Attributes:
        url: Scheme, host and port; never credentials.
        user, password: As they are, percent signs undone; None: the proxy asks for none.
        cost: Cheaper proxies go first; a dearer one is asked only where every cheaper one is dead or banned.
        limit: Requests that it takes at once; None: the crawl's own setting.
        name: What it is called wherever it is shown: host and port, numbered where one gateway has many users.
    """

    url: str
    user: str | None = None
    password: str | None = None
    cost: float = 1.0
    limit: int | None = None
    name: str = ""

    @property
    def key(self) -> tuple[str, str | None, str | None]:
        """What makes it another proxy."""
        return self.url, self.user, self.password

    def __repr__(self) -> str:
        return f"<proxy {self.name or self.url}>"


def read_proxy(line: str) -> Address:
    """One proxy: `[scheme://][user:password@]host:port` or `host:port:user:password`, then `cost=` and `limit=`.

    The user and the password may hold any character, a space excepted: the last `@` ends them.

    Raises:
        BadProxy: it is none.
    """
    words = line.split()
    if not words:
        raise BadProxy("it is empty")
    scheme, separator, rest = words[0].partition("://")
    if not separator:
        scheme, rest = "http", words[0]
    if scheme.lower() not in SCHEMES:
        raise BadProxy(f"{_shown(scheme)}:// is not supported, give http:// or https://")
    userinfo, has_user, place = rest.rpartition("@")
    place = place.rstrip("/")
    parts = rest.rstrip("/").split(":")
    if len(parts) >= _HOST_PORT_USER_PASSWORD and not _fault(*parts[:2]):
        at_the_end = has_user and not _fault(*_halves(place))
        if not at_the_end:  # host:port:user:password, whose password may hold an @ too
            place, userinfo, has_user = ":".join(parts[:2]), ":".join(parts[2:]), ":"
    host, port = _halves(place)
    fault = _fault(host, port)
    if fault:
        raise BadProxy(fault)
    user, _, password = userinfo.partition(":")
    named = has_user == "@"
    cost, limit = _options(words[1:])
    host = host.lower()
    return Address(
        url=f"{scheme.lower()}://{host}:{int(port)}",
        user=(unquote(user) if named else user) if has_user else None,
        password=(unquote(password) if named else password) if has_user else None,
        cost=cost,
        limit=limit,
        name=f"{host}:{int(port)}",
    )


def _halves(place: str) -> tuple[str, str]:
    host, _, port = place.rpartition(":")
    return host, port


def _fault(host: str, port: str) -> str:
    """Why *host* and *port* name no place; never with what stands there, since it may be a part of a password."""
    if not host or not port:
        return "it has no host and port"
    if not _PORT.fullmatch(port) or int(port) > _MAX_PORT:
        return f"its port is no number from 1 to {_MAX_PORT}"
    return "" if _is_host(host) else "its host is no name or address"


def _is_host(text: str) -> bool:
    """Is *text* what a handler can connect to? One bad line would else fail each request that it is given."""
    if text[0] == "[":
        try:
            IPv6Address(text[1:-1])
        except AddressValueError:
            return False
        return text[-1] == "]" and "%" not in text
    name = text.removesuffix(".")
    return len(name) <= _MAX_NAME and all(_LABEL.fullmatch(label) for label in name.split("."))


def _options(words: Iterable[str]) -> tuple[float, int | None]:
    cost, limit = 1.0, None
    for word in words:
        name, _, value = word.partition("=")
        number = _number(value)
        if name not in {"cost", "limit"}:
            raise BadProxy("after it only cost=NUMBER and limit=NUMBER may stand")
        if name == "cost":
            if number is None:
                raise BadProxy("its cost is no number of at least 0")
            cost = number
        else:
            if number is None or number < 1 or number != int(number):
                raise BadProxy("its limit is no whole number of at least 1")
            limit = int(number)
    return cost, limit


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < math.inf else None


def _shown(scheme: str) -> str:
    return scheme if scheme.isascii() and scheme.isalnum() and len(scheme) < 12 else "its scheme"  # noqa: PLR2004


def read_proxies(lines: Iterable[str], *, tls: bool = True) -> tuple[list[Address], list[str]]:
    """All proxies of a list, and what is wrong with the lines that are none.

    Empty lines and those that begin with `#` are left out, a proxy that stands twice counts once. Without *tls* one that is
    spoken to by TLS is none: it would be spoken to plainly, and its credentials with it.
    """
    found: dict[tuple[str, str | None, str | None], Address] = {}
    wrong = []
    for number, line in enumerate(lines, 1):
        text = line.strip().lstrip("\ufeff")
        if not text or text.startswith("#"):
            continue
        try:
            address = read_proxy(text)
        except BadProxy as error:
            wrong.append(f"line {number}: {error}")
            continue
        if not tls and address.url.startswith("https:"):
            wrong.append(f"line {number}: {NEEDS_FAST_HANDLER}")
            continue
        found.setdefault(address.key, address)
    return _named(found.values()), wrong


def _named(addresses: Iterable[Address]) -> list[Address]:
    """Number those that share host and port, in their order."""
    seen: dict[str, int] = {}
    named = []
    for address in addresses:
        nth = seen[address.name] = seen.get(address.name, 0) + 1
        name = address.name if nth == 1 else f"{address.name}#{nth}"
        named.append(
            Address(
                url=address.url,
                user=address.user,
                password=address.password,
                cost=address.cost,
                limit=address.limit,
                name=name,
            )
        )
    return named
