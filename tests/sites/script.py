"""What a host of the site does, as plain values that travel as JSON to the site's process."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Attributes:
        status: HTTP status.
        headers: Sent verbatim, one line each, as Latin-1: so any bytes can be sent. In a value,
            ``{wait}`` becomes the whole seconds until the limiter would accept, rounded up.
        body: None for the built-in page of the path (see `pages`).
        delay_s: Seconds before the answer, after the host's own latency.
        fault: ``hang`` (never answers), ``reset`` (TCP reset), ``close`` (no answer at all),
            ``trickle`` (headers, then a byte every `every_s`), ``stall`` (90% of the body).
        every_s: Seconds between two bytes of a trickle.
    """

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    delay_s: float = 0.0
    fault: str | None = None
    every_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Route:
    """What happens at one path (query left out), or, with ``*`` at its end, below it.

    The answers are given in order, counted for each URL; the last one is given for ever.
    """

    path: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Bucket:
    """Token bucket: *burst* at once, *rate* a second."""

    rate: float
    burst: float


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """At most *count* accepted in any *per_s* seconds."""

    count: int
    per_s: float


@dataclass(frozen=True, slots=True)
class FixedWindow:
    """At most *count* accepted in each period of *per_s* seconds by the clock."""

    count: int
    per_s: float


@dataclass(frozen=True, slots=True)
class InFlight:
    """At most *count* at the same time; what is over it is refused."""

    count: int


Limit = Bucket | SlidingWindow | FixedWindow | InFlight
LIMITS: dict[str, type[Limit]] = {
    kind.__name__: kind for kind in (Bucket, SlidingWindow, FixedWindow, InFlight)
}


@dataclass(frozen=True, slots=True)
class Host:
    """One address.

    Attributes:
        latency_s: Seconds that every answer takes (refusals: `refusal_latency_s`).
        limit: Refuses what is over it with `refusal`; robots.txt is free of it.
        workers: So many requests are worked on at once, the others wait in line, also those whose
            client has gone. Then robots.txt comes at once, beside them.
        routes: First match wins; then the built-in pages.
        storm: Given to everything for `storm_s` seconds from the first request on.
        robots: Body of robots.txt.
    """

    latency_s: float = 0.0
    limit: Limit | None = None
    refusal: Answer = field(default_factory=lambda: Answer(status=429, body="slow down"))
    refusal_latency_s: float = 0.0
    workers: int | None = None
    routes: tuple[Route, ...] = ()
    storm: Answer | None = None
    storm_s: float = 0.0
    robots: str = "User-agent: *\nDisallow:\n"

    def to_json(self) -> dict[str, Any]:
        """All of it as values for JSON."""
        data = asdict(self)
        if self.limit is not None:
            data["limit"] = {"kind": type(self.limit).__name__, **asdict(self.limit)}
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Host:
        """The host that `to_json` wrote."""
        data = dict(data)
        if data["limit"] is not None:
            limit = dict(data["limit"])
            data["limit"] = LIMITS[limit.pop("kind")](**limit)
        data["refusal"] = _answer(data["refusal"])
        data["storm"] = None if data["storm"] is None else _answer(data["storm"])
        data["routes"] = tuple(
            Route(path=route["path"], answers=tuple(map(_answer, route["answers"])))
            for route in data["routes"]
        )
        return cls(**data)


def _answer(data: dict[str, Any]) -> Answer:
    headers = tuple((name, value) for name, value in data["headers"])
    return Answer(**{**data, "headers": headers})
