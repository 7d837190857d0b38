"""What of a crawl is worth a look: at most five findings, each with the number that shows it.

The rule it keeps: a finding is something that somebody can act on. Each rule says one thing, with its number and its
place; what the account, the bottleneck and the tables say anyway is not said again. Worst first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .bottleneck import Code
from .wording import count, duration, fit, host, middle, plural, rate, share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

MOST = 5
MAX_TEXT = 140
NEVER_ANSWERS = 5
"""Answers and failures without one page after which a domain is said to have none."""
REFUSED_SHARE, REFUSALS = 0.05, 20
RISING_SHARE, RISING_RATIO, RISING_REFUSALS = 0.2, 2.0, 10
ALONE_SHARE = 0.25
BEHIND_SHARE = 0.05
MACHINE_SHARE = 0.1
ROBOTS_SHARE, ROBOTS_SKIPS = 0.1, 10
SLOTS_SHARE = 0.5
SEEDS_SHARE = 0.25
SILENT_PAGES = 50
EARLY_S = 60.0
"""Shares of a crawl's time say nothing before this."""


class Finding(NamedTuple):
    """One thing worth a look.

    Attributes:
        code: Its stable name.
        kind: Whom it concerns: site, code, writer, robots, settings, machine, source, proxies, time.
        text: A sentence of at most `MAX_TEXT` characters.
        domains: Whom it names.
    """

    code: str
    kind: str
    text: str
    domains: tuple[str, ...] = ()


class DomainFigures(Protocol):
    """What has to be known of a domain; plain counters."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def got(self) -> int:
        """Pages."""

    @property
    def dead(self) -> int:
        """Dead letters."""

    @property
    def answers(self) -> int:
        """Answers and failures."""

    @property
    def refused(self) -> int:
        """Refusals among them."""

    @property
    def note(self) -> str:
        """What its last refusal or failure said."""

    def recent(self) -> tuple[int, int]:
        """How many of its last outcomes are kept, and how many of them are refusals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of the crawl as a whole.

    Attributes:
        difference: Requests that the account misses.
        here_s: Of its running time: in this process.
        time_limit_s: CLOSESPIDER_TIMEOUT; 0: none.
        needs_s: Until all is done, None if unknown; likewise *most_s* for 98% of it.
        slowest, slowest_per_s: The domain that ends last, and its pages a second.
        seconds: How long each bottleneck was shown.
        gives_results: Whether the crawl has somewhere to write results.
        results: How many there are.
        bugs: Callback errors by exception and place.
        lost_items: Items that could not be taken.
    """

    difference: int = 0
    closed: bool = False
    running_s: float = 0.0
    here_s: float = 0.0
    time_limit_s: float = 0.0
    needs_s: float | None = None
    most_s: float | None = None
    slowest: str | None = None
    slowest_per_s: float | None = None
    asked: int = 0
    pages: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    sink: str = "results"
    gives_results: bool = False
    results: int = 0
    lost_items: int = 0
    skips: Mapping[str, int] = field(default_factory=dict)
    bugs: Mapping[str, int] = field(default_factory=dict)
    max_in_flight: int = 0
    proxies: int = 0
    healthy_proxies: int = 0

    def share_of(self, *codes: Code) -> float:
        """Which part of the time was spent in *codes*."""
        return self.spent_s(*codes) / self.running_s if self.running_s >= EARLY_S else 0.0

    def spent_s(self, *codes: Code) -> float:
        """Seconds spent in *codes*."""
        return sum(self.seconds.get(str(code), 0.0) for code in codes)


class Suspects:
    """The domains that a rule may name, found in one pass over all of them."""

    def __init__(self, rows: Iterable[DomainFigures]) -> None:
        self.silent: DomainFigures | None = None  # the one without a page that lost most
        self.silent_domains = 0
        self.refusing: DomainFigures | None = None
        self.rising: DomainFigures | None = None
        self.rising_share = 0.0
        for row in rows:
            if row.refused >= RISING_REFUSALS:
                self._refuses(row)
            if row.got == 0 and row.dead and row.answers >= NEVER_ANSWERS:
                self.silent_domains += 1
                if self.silent is None or row.dead > self.silent.dead:
                    self.silent = row

    def _refuses(self, row: DomainFigures) -> None:
        kept, refused = row.recent()
        earlier, before = row.answers - kept, row.refused - refused
        recent_share = refused / kept if kept else 0.0
        if (
            refused >= RISING_REFUSALS
            and recent_share >= max(RISING_SHARE, self.rising_share)
            and earlier >= max(kept, 1)
            and recent_share >= RISING_RATIO * before / earlier
        ):
            self.rising, self.rising_share = row, recent_share
        if row.answers >= row.refused >= max(REFUSALS, REFUSED_SHARE * row.answers) and (
            self.refusing is None or row.refused > self.refusing.refused
        ):
            self.refusing = row


def findings(facts: Facts, rows: Iterable[DomainFigures]) -> tuple[Finding, ...]:
    """What is worth a look, worst first, at most `MOST`.

    Args:
        facts: The crawl.
        rows: Its domains; each is looked at once.
    """
    suspects, found = Suspects(rows), []
    for rule in RULES:
        for finding in rule(facts, suspects):
            found.append(finding._replace(text=fit(finding.text, MAX_TEXT)))
            if len(found) == MOST:
                return tuple(found)
    return tuple(found)


def _account(f: Facts, _: Suspects) -> Iterator[Finding]:
    if f.closed and f.difference:
        missing = plural(abs(f.difference), "request")
        yield Finding(
            "account_off", "code", f"The account is off by {missing}: please report this."
        )


def _bugs(f: Facts, _: Suspects) -> Iterator[Finding]:
    for place, number in sorted(f.bugs.items(), key=lambda item: -item[1])[:2]:
        many = "1 callback error" if number == 1 else f"{count(number)} callback errors are one bug"
        yield Finding("callback_error", "code", f"{many}: {middle(place, 90)}.")


def _late(f: Facts, _: Suspects) -> Iterator[Finding]:
    if f.closed or not f.time_limit_s or f.needs_s is None:
        return
    left_s = f.time_limit_s - f.here_s
    if f.needs_s > 1.1 * left_s:
        text = (
            f"CLOSESPIDER_TIMEOUT ends the crawl in {duration(left_s)}, "
            f"but it needs {duration(f.needs_s)} more."
        )
        yield Finding("too_late", "time", text, (f.slowest,) if f.slowest else ())


def _silent(_: Facts, s: Suspects) -> Iterator[Finding]:
    if s.silent is None:
        return
    name, why = s.silent.name, f" ({middle(s.silent.note, 30)})" if s.silent.note else ""
    lost = plural(s.silent.dead, "request")
    if s.silent_domains == 1:
        text = f"{host(name)} gave no page: {lost} lost{why}. Is it still there?"
    else:
        text = (
            f"{count(s.silent_domains)} domains gave no page, the most lost on "
            f"{host(name, 30)}: {lost}{why}."
        )
    yield Finding("no_page", "site", text, (name,))


def _refusals(_: Facts, s: Suspects) -> Iterator[Finding]:
    if s.rising is not None:
        kept, refused = s.rising.recent()
        text = (
            f"{host(s.rising.name)} refuses more and more: {count(refused)} of its last "
            f"{count(kept)} answers, {share(s.rising.refused / s.rising.answers)} in all."
        )
        yield Finding("refusals_rise", "site", text, (s.rising.name,))
    row = s.refusing
    if row is not None and row is not s.rising:
        part = share(row.refused / row.answers)
        text = f"{host(row.name)} refused {part} of its {count(row.answers)} answers."
        yield Finding("refuses", "site", text, (row.name,))


def _writer(f: Facts, _: Suspects) -> Iterator[Finding]:
    codes = (Code.WRITER_BEHIND, Code.SINK_DOWN)
    if f.share_of(*codes) > BEHIND_SHARE:
        spent = duration(f.spent_s(*codes))
        text = f"{middle(f.sink, 30)} was behind for {spent}, {share(f.share_of(*codes))} of the time; fetching waited."
        yield Finding("writer_slow", "writer", text)


def _items(f: Facts, _: Suspects) -> Iterator[Finding]:
    if f.lost_items:
        what = f"{plural(f.lost_items, 'item')} could not be taken; their pages count as got"
        yield Finding("items_lost", "code", f"{what}. scrapy deadletters list names each.")
    elif f.gives_results and not f.results and f.pages >= SILENT_PAGES:
        text = f"{count(f.pages)} pages gave no result: does the spider yield items?"
        yield Finding("no_results", "code", text)


def _robots(f: Facts, _: Suspects) -> Iterator[Finding]:
    skipped = sum(number for reason, number in f.skips.items() if "robots" in reason)
    if skipped >= ROBOTS_SKIPS and skipped > ROBOTS_SHARE * f.asked > 0:
        text = f"robots.txt forbids {count(skipped)} of {plural(f.asked, 'request')} ({share(skipped / f.asked)})."
        yield Finding("robots", "robots", text)


def _alone(f: Facts, _: Suspects) -> Iterator[Finding]:
    """One domain decides the end: it did, or it will."""
    alone_s = f.spent_s(Code.FEW_DOMAINS)
    if f.closed and f.share_of(Code.FEW_DOMAINS) > ALONE_SHARE:
        text = (
            f"The last few domains took {duration(alone_s)}, "
            f"{share(f.share_of(Code.FEW_DOMAINS))} of the time: start them first next time."
        )
        yield Finding("slow_end", "site", text)
    elif f.needs_s is not None and f.most_s is not None and f.slowest and not f.closed:
        whole_s = f.running_s + f.needs_s
        if f.running_s >= EARLY_S and f.needs_s - f.most_s > ALONE_SHARE * whole_s:
            text = (
                f"{host(f.slowest)} decides the end: 98% is done in {duration(f.most_s)}, "
                f"it needs {duration(f.needs_s)} at {rate(f.slowest_per_s)}."
            )
            yield Finding("slow_end", "site", text, (f.slowest,))


def _proxies(f: Facts, _: Suspects) -> Iterator[Finding]:
    if f.proxies and 2 * f.healthy_proxies < f.proxies:
        text = f"Only {count(f.healthy_proxies)} of {plural(f.proxies, 'proxy', 'proxies')} work."
        yield Finding("few_proxies", "proxies", text)


def _machine(f: Facts, _: Suspects) -> Iterator[Finding]:
    for code, what in (
        (Code.PARSING_BEHIND, "Answers waited for callbacks"),
        (Code.MACHINE_BUSY, "One CPU core was full"),
    ):
        if f.share_of(code) > MACHINE_SHARE:
            text = f"{what} for {duration(f.spent_s(code))}, {share(f.share_of(code))} of the time."
            yield Finding(str(code), "machine", text)


def _settings(f: Facts, _: Suspects) -> Iterator[Finding]:
    if f.share_of(Code.SLOTS_FULL) > SLOTS_SHARE:
        text = (
            f"CONCURRENT_REQUESTS of {count(f.max_in_flight)} was the limit for "
            f"{share(f.share_of(Code.SLOTS_FULL))} of the time: more would be faster."
        )
        yield Finding("slots_full", "settings", text)
    if f.share_of(Code.SEEDS_SLOW) > SEEDS_SHARE:
        text = f"start() was waited for during {share(f.share_of(Code.SEEDS_SLOW))} of the time."
        yield Finding("seeds_slow", "source", text)


RULES: tuple[Callable[[Facts, Suspects], Iterator[Finding]], ...] = (
    _account, _bugs, _late, _silent, _refusals, _writer, _items, _robots, _alone, _proxies,
    _machine, _settings,
)  # fmt: skip
