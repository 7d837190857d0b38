"""Where the list of proxies is, and whether it has changed.

The rule it keeps: a list that cannot be read is said once and changes nothing; the proxies known so far go on.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit

from .policy.proxies import Address, read_proxies
from .policy.redact import redact_url
from .worker import Worker

FILE_LOOK_S = 1.0
"""How often a file is looked at; it is read when its time or size has changed."""
MAX_BYTES = 5_000_000
TIMEOUT_S = 15.0
_PIECE_BYTES = 65_536
_TOO_SLOW = f"it was not there whole after {TIMEOUT_S:.0f} s"


class _NoList(OSError):
    """What is there is not a whole list, or too much for one."""


class BadProxyList(Exception):
    """The list cannot be read, or holds no proxy; the message names no credentials."""


@dataclass(frozen=True, slots=True)
class ListPlace:
    """What `SLUICE_PROXIES` says.

    Attributes:
        kind: ``lines``, ``file`` or ``url``.
        lines: The proxies themselves, of kind ``lines``.
        where: Path or address of the list.
        tls: Can the download handler speak TLS with a proxy?
    """

    kind: str
    lines: tuple[str, ...] = ()
    where: str = ""
    tls: bool = True

    def __repr__(self) -> str:
        return f"<proxies from {self.shown}>"

    @property
    def shown(self) -> str:
        """What it is called in a log: of an address only the host, for the rest may be a token."""
        if self.kind == "url":
            return f"{urlsplit(redact_url(self.where)).hostname}"
        return self.where if self.kind == "file" else "SLUICE_PROXIES"


def place_of(value: object) -> ListPlace | None:
    """Read the setting: a list of proxies (or one text with commas), a file's path, or a list's address with a path in it."""
    if isinstance(value, (list, tuple)):
        lines = tuple(str(line) for line in value if str(line).strip())
        return ListPlace("lines", lines) if lines else None
    text = "" if value is None else str(value).strip()
    if text.lower() in {"", "none", "off", "false", "0"}:
        return None
    if text.startswith(("http://", "https://")) and "," not in text:
        parts = urlsplit(text)
        if (parts.path not in {"", "/"} and "@" not in parts.path) or parts.query:
            return ListPlace("url", where=text)
    elif "://" not in text and "," not in text and _is_path(text):
        return ListPlace("file", where=text.removeprefix("file://"))
    if text.startswith("file://"):
        return ListPlace("file", where=text.removeprefix("file://"))
    return ListPlace("lines", tuple(part for part in text.split(",") if part.strip()))


def _is_path(text: str) -> bool:
    last = text.rpartition(":")[2]
    return "/" in text or "\\" in text or not last.isdigit() or Path(text).is_file()


def mark_of(place: ListPlace) -> object:
    """What changes when the file does; None where only reading can tell, or it is not there."""
    if place.kind != "file":
        return None
    try:
        found = Path(place.where).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


async def read_in_time(place: ListPlace) -> tuple[list[Address], list[str]]:
    """As `read`. A server that trickles, or a pipe that nobody writes to, holds up neither the crawl nor its end.

    Raises:
        BadProxyList: it cannot be read in time, or has no proxy.
    """
    worker = Worker("proxy list")
    reading = worker.call(read, place)
    worker.stop()
    await asyncio.wait({reading}, timeout=TIMEOUT_S + 1.0)
    if not reading.done():
        reading.cancel()
        raise BadProxyList(f"The proxy list {place.shown} cannot be read: {_TOO_SLOW}")
    return reading.result()


def read(place: ListPlace) -> tuple[list[Address], list[str]]:
    """The proxies of the list, and what is wrong with the lines that are none. Blocks: call it in a thread.

    Raises:
        BadProxyList: it cannot be read, or has none.
    """
    if place.kind == "lines":
        lines = list(place.lines)
    else:
        try:
            text = _fetch(place.where) if place.kind == "url" else _load(place.where)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise BadProxyList(
                f"The proxy list {place.shown} cannot be read: {_why(error)}"
            ) from None
        lines = text.splitlines()
    found, wrong = read_proxies(lines, tls=place.tls)
    if not found:
        first = f"; {wrong[0]}" if wrong else ""
        raise BadProxyList(f"The proxy list {place.shown} has no proxy in it{first}")
    return found, wrong


def _why(error: BaseException) -> str:
    """The reason without the address, in which a token may stand."""
    if isinstance(error, HTTPError):
        error.close()
        return f"it answers {error.code}"
    if isinstance(error, URLError) and isinstance(error.reason, BaseException):
        return _why(error.reason)
    if isinstance(error, _NoList):
        return str(error)
    return getattr(error, "strerror", None) or type(error).__name__


def _load(path: str) -> str:
    with Path(path).open("rb") as file:
        return _text(file.read(MAX_BYTES + 1))


def _fetch(url: str) -> str:
    parts = urlsplit(url)
    userinfo, has_user, place = parts.netloc.rpartition("@")
    plain = parts._replace(netloc=place, fragment="").geturl()
    address = quote(plain, safe="/:?#[]@!$&'()*+,;=%-._~")
    request = urllib.request.Request(address)  # noqa: S310 - `place_of` takes http and https only
    if has_user:
        pair = base64.b64encode(unquote(userinfo).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {pair}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    too_late_due = time.monotonic() + TIMEOUT_S
    body = bytearray()
    with opener.open(request, timeout=TIMEOUT_S) as answer:
        while len(body) <= MAX_BYTES and (piece := answer.read1(_PIECE_BYTES)):
            body += piece
            if time.monotonic() > too_late_due:
                raise _NoList(_TOO_SLOW)
        if answer.length and not piece:
            raise _NoList("it broke off")
    return _text(bytes(body))


def _text(content: bytes) -> str:
    """*content*, if it is all; the half of a list would be a list with half a line in it."""
    if len(content) > MAX_BYTES:
        raise _NoList(f"it is larger than {MAX_BYTES:,} bytes")
    return content.decode("utf-8", "replace")
