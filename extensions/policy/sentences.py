"""The bottleneck in words: who or what does what, then the number that proves it.

The rule it keeps: the first clause is at most 60 characters (a terminal's title, systemd's status),
the sentence at most 110, whatever a host is called; no jargon, no number of the controller's own.
The second line says what follows, until when, and what can be done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .bottleneck import HELD, Cause, Code, Readings
from .wording import (
    clock,
    count,
    duration,
    fit,
    host,
    lost_of,
    mebibytes,
    middle,
    milliseconds,
    plural,
    rate,
    share,
    when,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_SENTENCE = 110
MAX_CLAUSE = 60


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is said, what follows from it, until when (wall-clock), and whom it names."""

    text: str
    hint: str = ""
    until_at: float | None = None
    domains: tuple[str, ...] = ()


def sentence(code: Code, readings: Readings) -> Sentence:
    """Say *code* with the numbers of *readings*.

    Returns:
        A text of at most 110 characters, of them at most 60 before the colon.
    """
    said = _SAY[code](readings)
    return replace(said, text=fit(said.text, MAX_SENTENCE))


def clause(text: str) -> str:
    """The first clause alone, in at most 60 characters."""
    return fit(text.partition(": ")[0].removesuffix("."), MAX_CLAUSE)


def _kept(r: Readings) -> str:
    fate = "are kept" if r.kept else "are forgotten (no JOBDIR)" if r.stopping else "wait"
    return f"{count(r.pending + r.delayed)} pending {fate}"


def _finished(r: Readings) -> Sentence:
    return Sentence(
        f"Complete: {plural(r.pages, 'page')} in {duration(r.running_s)}.",
        f"{count(r.skipped)} skipped as asked by robots.txt or a filter." if r.skipped else "",
    )


def _incomplete(r: Readings) -> Sentence:
    left = r.pending + r.delayed + r.in_flight
    if r.lost or r.lost_items:
        text = f"Incomplete: {lost_of(r.lost, r.lost_items, r.asked)} {_are(r.lost + r.lost_items)} lost"
        if r.lost and r.lost_domain and r.domains > 1:
            some = "all" if r.lost_there >= r.lost else count(r.lost_there)
            text += f", {some} on {host(r.lost_domain)}"
        return Sentence(f"{text}.", "What is lost is kept as dead letters and can be replayed.")
    if left:
        return Sentence(
            f"Stopped early: {count(left)} of {plural(r.asked, 'page')} {_are(left)} left, "
            f"{'kept' if r.kept else 'forgotten (no JOBDIR)'}.",
            "The same command with the same JOBDIR goes on from here." if r.kept else "",
        )
    return Sentence("Incomplete: the source of the seeds failed before its end.")


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _stopping(r: Readings) -> Sentence:
    return Sentence(
        f"Stopping: {plural(r.in_flight, 'request')} in flight, "
        f"at most {duration(r.stop_within_s)} more; {_kept(r)}.",
        until_at=r.now_at + r.stop_within_s,
    )


def _paused(r: Readings) -> Sentence:
    by = f" {middle(r.paused_by, 30)}" if r.paused_by else ""
    return Sentence(
        f"Paused since {clock(r.paused_since_at, now_at=r.now_at)}{by}: {_kept(r)}.",
        "No site is asked anything. Resume it on this page, or stop it and start it again later.",
    )


def _disk_full(r: Readings) -> Sentence:
    return Sentence(
        f"Disk full: {mebibytes(r.free_bytes)} left in {middle(r.disk, 30)}, fetching waits.",
        "It goes on by itself when there is room for the job's store again. Nothing is lost.",
    )


def _store(r: Readings) -> Sentence:
    return Sentence(
        f"{middle(r.store, 20)} not reachable for {duration(r.store_silent_s)}: "
        f"{plural(r.results_waiting, 'result')} wait, retrying.",
        "What is not written yet waits in memory; nothing new is asked until it answers.",
    )


def _network(r: Readings) -> Sentence:
    return Sentence(
        f"This machine's network is down: no domain answers; "
        f"one probe every {duration(r.probe_every_s)}, no attempt is spent.",
        "The crawl goes on by itself when a probe is answered.",
    )


def _sink_down(r: Readings) -> Sentence:
    return Sentence(
        f"{middle(r.sink, 24)} takes nothing for {duration(r.sink_down_s)}: "
        f"{count(r.results_waiting)} of {plural(r.results_bound, 'result')} wait.",
        "Results are kept in the job's store and written when it takes them again.",
    )


def _writer(r: Readings) -> Sentence:
    return Sentence(
        f"Writer behind: {middle(r.sink, 24)} takes {rate(r.results_per_s)}, "
        f"pages would bring {rate(r.pages_would_per_s)}.",
        f"{count(r.results_waiting)} of {plural(r.results_bound, 'result')} wait, so fetching "
        "waits. Nothing is lost; it goes on by itself.",
    )


def _parsing(r: Readings) -> Sentence:
    return Sentence(
        f"Callbacks behind: {mebibytes(r.backout_bytes)} of answers wait for the spider; "
        "downloads wait.",
        "Look at what the callback does with a page: heavy parsing, or waiting for something else.",
    )


def _machine(r: Readings) -> Sentence:
    return Sentence(
        f"One CPU core is full ({share(r.cpu_share)}, loop lag {milliseconds(r.lag_s)}): "
        "this is all that one process gives.",
        "A second process with the same JOBDIR is refused; split the seeds, or use a queue.",
    )


def _memory(r: Readings) -> Sentence:
    return Sentence(
        f"Memory near its limit: {mebibytes(r.rss_bytes)} of {mebibytes(r.rss_limit_bytes)}; "
        "the crawl closes at the limit.",
        "MEMUSAGE_LIMIT_MB sets it. With JOBDIR the next start goes on where this one ended.",
    )


def _slots(r: Readings) -> Sentence:
    could = r.of(Cause.NONE)
    return Sentence(
        f"CONCURRENT_REQUESTS is the limit: {count(r.in_flight)} of {count(r.max_in_flight)} "
        f"places in use, {plural(could, 'domain')} could send.",
        "Raise CONCURRENT_REQUESTS to go faster, or leave it to stay gentle.",
    )


def _proxy(r: Readings) -> Sentence:
    if r.healthy_proxies:
        return Sentence(
            f"Banned through every proxy: all {count(r.healthy_proxies)} healthy ones "
            f"rest for {'this domain' if r.working == 1 else 'these domains'}.",
            "They are tried again one request at a time; more proxies or SLUICE_PROXY_BAN_S change that.",
        )
    return Sentence(
        f"No healthy proxy: 0 of {count(r.proxies)}; "
        f"the next is tried {when(r.next_proxy_at, now_at=r.now_at)}.",
        "Nothing is sent, and no request loses an attempt; it goes on by itself when a proxy answers.",
        until_at=r.next_proxy_at,
    )


def _waiting(r: Readings) -> Sentence:
    if not r.of(*HELD):
        return Sentence("The hosts that were waited for may be asked again.")
    until = clock(r.held_until_at, now_at=r.now_at, seconds=True)
    some = (r.held,) if r.held else ()
    if r.of(*HELD) == 1 and r.held:
        name = host(r.held, 42)
        why = f"{middle(r.held_why, 26)}, " if r.held_why else ""
        end = f"until {until}" if r.held_until_at is not None else "until a probe is answered"
        return Sentence(f"Waiting for {name}: {why}{end}.", "", r.held_until_at, some)
    end = f"the next may be asked at {until}" if r.held_until_at is not None else "probes go out"
    return Sentence(
        f"All {count(r.of(*HELD))} domains left are held: {end}.",
        "They refused, failed or did not answer; each is asked again when its wait is over.",
        r.held_until_at,
        some,
    )


def _retries(r: Readings) -> Sentence:
    first, last = when(r.next_due_at, now_at=r.now_at), clock(r.last_due_at, now_at=r.now_at)
    end = f", the last at {last}" if r.last_due_at is not None else ""
    return Sentence(
        f"Only retries are left: {count(r.delayed)}, the next {first}{end}.",
        until_at=r.last_due_at,
    )


def _few(r: Readings) -> Sentence:
    has = "has" if r.working == 1 else "have"
    text = f"Only {count(r.working)} of {plural(r.domains, 'domain')} {has} work"
    if r.slowest and r.slowest_left_s is not None:
        text += f": {host(r.slowest, 30)} at {rate(r.slowest_per_s)}"
        text += f" needs {duration(r.slowest_left_s)}"
    hint = ""
    if r.slowest and r.slowest_per_s:
        hint = f"{host(r.slowest)} answers {rate(r.slowest_per_s)} and decides the end."
    return Sentence(f"{text}.", hint, domains=(r.slowest,) if r.slowest else ())


def _pool(r: Readings) -> Sentence:
    return Sentence(
        f"The proxies set the pace: {count(r.healthy_proxies)} of {count(r.proxies)} are healthy "
        f"and carry all they may.",
        "SLUICE_PROXY_CONCURRENCY and the limits in the list hold them; more proxies make it faster.",
    )


def _on(r: Readings, *causes: Cause) -> str:
    """On how many domains; nothing in the second in which none of them is kept so, as a code outlasts its cause a little."""
    some = r.of(*causes)
    return f" on {count(some)} of {plural(r.working, 'domain')}" if some else ""


def _user(r: Readings) -> Sentence:
    work = _on(r, Cause.USER_DELAY, Cause.USER_CEILING)
    if r.of(Cause.USER_DELAY) >= r.of(Cause.USER_CEILING):
        own = f" of {r.user_delay_s:.4g} s" if r.user_delay_s else ""
        return Sentence(
            f"Your DOWNLOAD_DELAY{own} sets the pace{work}.",
            "The sites may take more: with DOWNLOAD_DELAY = 0 each is asked as fast as it allows.",
        )
    return Sentence(
        f"Your limit for each domain sets the pace{work}.",
        "CONCURRENT_REQUESTS_PER_DOMAIN, or a ceiling set on the status page, holds them.",
    )


def _crawl_delay(r: Readings) -> Sentence:
    text = f"robots.txt sets the pace: Crawl-delay{_on(r, Cause.CRAWL_DELAY)}"
    if r.crawl_delay_domain and r.crawl_delay_s:
        text += f", {r.crawl_delay_s:.4g} s on {host(r.crawl_delay_domain, 34)}"
    return Sentence(f"{text}.", domains=(r.crawl_delay_domain,) if r.crawl_delay_domain else ())


def _sites(r: Readings) -> Sentence:
    at_limit = r.of(Cause.PACE, Cause.CONCURRENCY)
    hint = f"{count(r.in_flight)} of {count(r.max_in_flight)} places are in use."
    if r.slowest and r.slowest_left_s is not None:
        left = duration(r.slowest_left_s)
        hint += f" {host(r.slowest)} decides the end: {rate(r.slowest_per_s)}, {left} left."
    held = r.of(*HELD)
    if held:
        hint += f" {plural(held, 'domain gets', 'domains get')} nothing or single probes now."
    text = "Sites set the pace"
    if at_limit:
        text += f": {count(at_limit)} of {plural(r.working, 'domain')} with work "
        text += f"{'is at its' if at_limit == 1 else 'are at their'} own limit"
    return Sentence(
        f"{text}.",
        hint,
        domains=(r.slowest,) if r.slowest else (),
    )


def _seeds(r: Readings) -> Sentence:
    return Sentence(
        f"Waiting for seeds: the source gives {rate(r.seeds_per_s)}, each is asked at once.",
        "The spider's start() is the slowest stage: a file, a database or a feed that it reads.",
    )


def _starting(r: Readings) -> Sentence:
    if r.robots_domains and r.robots_domains < r.domains:
        return Sentence(
            f"Starting: robots.txt read for {count(r.robots_domains)} of "
            f"{plural(r.domains, 'domain')}, no page yet."
        )
    if r.domains:
        return Sentence(f"Starting: {plural(r.domains, 'domain')} known, no page yet.")
    return Sentence("Starting: no request yet.")


def _speeding(r: Readings) -> Sentence:
    return Sentence(
        f"Speeding up: {count(r.growing)} of {plural(r.working, 'domain')} "
        f"{'has' if r.growing == 1 else 'have'} not met their limit.".replace(
            "has not met their", "has not met its"
        ),
        "Each answer that comes well lets a domain take a little more.",
    )


def _idle(r: Readings) -> Sentence:
    text = "Idle"
    if r.idle_since_at is not None:
        text += f" for {duration(r.now_at - r.idle_since_at)}"
    text += ": no seed" + (f" in {middle(r.source, 36)}" if r.source else "")
    if r.idle_until_at is not None:
        text += f"; closes at {clock(r.idle_until_at, now_at=r.now_at)}"
    return Sentence(f"{text}.", until_at=r.idle_until_at)


def _mixed(r: Readings) -> Sentence:
    if not r.working:
        return Sentence(
            f"Nothing holds it back: {plural(r.in_flight, 'request')} in flight, "
            f"{count(r.pending)} pending, {count(r.delayed)} delayed."
        )
    limit = r.of(
        Cause.PACE,
        Cause.CONCURRENCY,
        Cause.CRAWL_DELAY,
        Cause.USER_DELAY,
        Cause.USER_CEILING,
        Cause.POOL,
    )
    return Sentence(
        f"Nothing dominates: {plural(limit, 'domain')} at their limit, "
        f"{count(r.of(*HELD))} held, {count(r.of(Cause.NONE))} could send."
    )


_SAY: dict[Code, Callable[[Readings], Sentence]] = {
    Code.FINISHED: _finished,
    Code.INCOMPLETE: _incomplete,
    Code.STOPPING: _stopping,
    Code.PAUSED: _paused,
    Code.DISK_FULL: _disk_full,
    Code.STORE_UNREACHABLE: _store,
    Code.NETWORK_DOWN: _network,
    Code.SINK_DOWN: _sink_down,
    Code.WRITER_BEHIND: _writer,
    Code.PARSING_BEHIND: _parsing,
    Code.MACHINE_BUSY: _machine,
    Code.MEMORY_NEAR: _memory,
    Code.SLOTS_FULL: _slots,
    Code.NO_PROXY: _proxy,
    Code.ONLY_WAITING: _waiting,
    Code.RETRIES_ONLY: _retries,
    Code.FEW_DOMAINS: _few,
    Code.POOL_LIMIT: _pool,
    Code.USER_LIMIT: _user,
    Code.CRAWL_DELAY: _crawl_delay,
    Code.SITES_LIMIT: _sites,
    Code.SEEDS_SLOW: _seeds,
    Code.STARTING: _starting,
    Code.SPEEDING_UP: _speeding,
    Code.IDLE: _idle,
    Code.MIXED: _mixed,
}

NAMES: dict[Code, str] = {
    Code.FINISHED: "finished",
    Code.INCOMPLETE: "ended incomplete",
    Code.STOPPING: "stopping",
    Code.PAUSED: "paused",
    Code.DISK_FULL: "disk full",
    Code.STORE_UNREACHABLE: "store not reachable",
    Code.NETWORK_DOWN: "network down",
    Code.SINK_DOWN: "results not taken",
    Code.WRITER_BEHIND: "writer behind",
    Code.PARSING_BEHIND: "callbacks behind",
    Code.MACHINE_BUSY: "CPU core full",
    Code.MEMORY_NEAR: "memory near limit",
    Code.SLOTS_FULL: "CONCURRENT_REQUESTS",
    Code.NO_PROXY: "no healthy proxy",
    Code.ONLY_WAITING: "all domains held",
    Code.RETRIES_ONLY: "retries only",
    Code.FEW_DOMAINS: "few domains left",
    Code.POOL_LIMIT: "proxies' limits",
    Code.USER_LIMIT: "your own limits",
    Code.CRAWL_DELAY: "Crawl-delay",
    Code.SITES_LIMIT: "sites' own limits",
    Code.SEEDS_SLOW: "waiting for seeds",
    Code.STARTING: "starting",
    Code.SPEEDING_UP: "speeding up",
    Code.IDLE: "idle",
    Code.MIXED: "nothing dominates",
}
