"""What the dead-letter file keeps and hands out, as plain values."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..policy.redact import redact_url
from .base import DeadLetter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SETTLED = "settled"
"""Kind of a letter that says: the replayed request has ended well, its row can go."""
REPLAYABLE = ("request", "seed")
"""Kinds whose payload is a request. An item cannot be made again without its page."""

_LEFT_OUT = re.compile(r"^_|passw|secret|token|api_?key|auth|credential|cookie", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Row:
    """A dead letter as it is stored."""

    id: int
    spider: str
    kind: str
    key: str
    url: str
    domain: str
    reason: str
    detail: str
    attempts: int
    status: int | None
    exception: str | None
    first_at: float
    last_at: float
    replays: int
    state: str
    arguments: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Claim:
    """Rows that this job replays now. Commit `number` with the requests made of them."""

    number: int
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Requested:
    """What `request_replay` did.

    Attributes:
        groups: Rows requested, by the spider and the arguments that they need.
        not_replayable: Rows left out since they are items.
        busy: Rows that are being replayed already.
    """

    groups: Mapping[tuple[str, str], int]
    not_replayable: int
    busy: int


def path_for(target: str, spider: str) -> Path:
    """The dead-letter file of *spider*: its name, as one path component, for ``%(spider)s``."""
    return Path(target.replace("%(spider)s", re.sub(r"[/\\\0]", "_", spider)))


def settled(row_id: int, *, spider: str) -> DeadLetter:
    """The news that replayed row *row_id* has ended well; it travels as the letters do."""
    return DeadLetter(
        uid=f"{SETTLED}:{uuid.uuid4().hex}",
        kind=SETTLED,
        key=str(row_id),
        spider=spider,
        url="",
        domain="",
        reason=SETTLED,
        detail="",
        attempts=0,
        status=None,
        exception=None,
        first_at=0.0,
        last_at=0.0,
        payload=b"",
        dead_letter_id=row_id,
    )


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Spider arguments in one form, without secrets, Scrapyd's own, and what is no text."""
    plain = {
        str(name): redact_url(str(value))
        for name, value in arguments.items()
        if isinstance(value, (str, int, float, bool)) and not _LEFT_OUT.search(str(name))
    }
    return json.dumps(plain, sort_keys=True, ensure_ascii=False)
