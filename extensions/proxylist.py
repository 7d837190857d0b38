"""Where the list of proxies is, and whether it has changed.

The rule it keeps: a list that cannot be read is said once and changes nothing; the proxies known so far go on.
"""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from .policy.proxies import Address, read_proxies
from .policy.redact import redact_url

FILE_LOOK_S = 1.0
"""How often a file is looked at; it is read when its time or size has changed."""
MAX_BYTES = 5_000_000
TIMEOUT_S = 15.0


class BadProxyList(Exception):
    """The list cannot be read, or holds no proxy; the message names no credentials."""


@dataclass(frozen=True, slots=True)
class ListPlace:
    """What `SLUICE_PROXIES` says.

    Attributes:
        kind: ``lines``, ``file`` or ``url``.
        lines: The proxies themselves, of kind ``lines``.
        where: Path or address of the list.
    """

    kind: str
    lines: tuple[str, ...] = ()
    where: str = ""

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


def read(place: ListPlace) -> tuple[list[Address], list[str]]:
    """The proxies of the list, and what is wrong with the lines that are none. Blocks: call it in a thread.

    Raises:
        BadProxyList: it cannot be read, or has none.
    """
    if place.kind == "lines":
        lines = list(place.lines)
    else:
        try:
            lines = (
                _fetch(place.where) if place.kind == "url" else _load(place.where)
            ).splitlines()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise BadProxyList(f"The proxy list {place.shown} cannot be read: {why}") from None
    found, wrong = read_proxies(lines)
    if not found:
        first = f"; {wrong[0]}" if wrong else ""
        raise BadProxyList(f"The proxy list {place.shown} has no proxy in it{first}")
    return found, wrong


def _load(path: str) -> str:
    with Path(path).open("rb") as file:
        return file.read(MAX_BYTES).decode("utf-8", "replace")


def _fetch(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=TIMEOUT_S) as answer:
        body: bytes = answer.read(MAX_BYTES)
    return body.decode("utf-8", "replace")
