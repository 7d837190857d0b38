"""What the sites, the proxies and the limits set for them hold back, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..bottleneck import HELD, Cause
from ..wording import clock, count, duration, host, middle, plural, rate, when
from .form import Sentence

if TYPE_CHECKING:
    from ..bottleneck import Readings


def slots(r: Readings) -> Sentence:
    """CONCURRENT_REQUESTS is the limit."""
    could = r.of(Cause.NONE)
    return Sentence(
        f"CONCURRENT_REQUESTS is the limit: {count(r.in_flight)} of {count(r.max_in_flight)} "
        f"places in use, {plural(could, 'domain')} could send.",
        "Raise CONCURRENT_REQUESTS to go faster, or leave it to stay gentle.",
    )


def proxy(r: Readings) -> Sentence:
    """No proxy is any good."""
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


def waiting(r: Readings) -> Sentence:
    """All domains left are held."""
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


def retries(r: Readings) -> Sentence:
    """Only retries are left."""
    first, last = when(r.next_due_at, now_at=r.now_at), clock(r.last_due_at, now_at=r.now_at)
    end = f", the last at {last}" if r.last_due_at is not None else ""
    return Sentence(
        f"Only retries are left: {count(r.delayed)}, the next {first}{end}.",
        until_at=r.last_due_at,
    )


def few(r: Readings) -> Sentence:
    """The last few domains decide the end."""
    has = "has" if r.working == 1 else "have"
    text = f"Only {count(r.working)} of {plural(r.domains, 'domain')} {has} work"
    hint = ""
    if r.slowest and r.slowest_left_s is not None:
        text += f": {host(r.slowest, 30)} at {rate(r.slowest_per_s)}"
        text += f" needs {duration(r.slowest_left_s)}"
        hint = "It decides the end: asked first the next time, it ends with the others."
    return Sentence(f"{text}.", hint, domains=(r.slowest,) if r.slowest else ())


def pool(r: Readings) -> Sentence:
    """The proxies carry all they may."""
    return Sentence(
        f"The proxies set the pace: {count(r.healthy_proxies)} of {count(r.proxies)} are healthy "
        f"and carry all they may.",
        "SLUICE_PROXY_CONCURRENCY and the limits in the list hold them; more proxies make it faster.",
    )


def _on(r: Readings, *causes: Cause) -> str:
    """On how many domains; nothing in the second in which none of them is kept so, as a code outlasts its cause a little."""
    some = r.of(*causes)
    return f" on {count(some)} of {plural(r.working, 'domain')}" if some else ""


def user(r: Readings) -> Sentence:
    """The user's own limits set the pace."""
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


def crawl_delay(r: Readings) -> Sentence:
    """robots.txt sets the pace."""
    text = f"robots.txt sets the pace: Crawl-delay{_on(r, Cause.CRAWL_DELAY)}"
    if r.crawl_delay_domain and r.crawl_delay_s:
        text += f", {r.crawl_delay_s:.4g} s on {host(r.crawl_delay_domain, 34)}"
    return Sentence(f"{text}.", domains=(r.crawl_delay_domain,) if r.crawl_delay_domain else ())


def limit(r: Readings) -> Sentence:
    """The sites' own limits set the pace."""
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


def speeding(r: Readings) -> Sentence:
    """Most domains have not met their limit."""
    return Sentence(
        f"Speeding up: {count(r.growing)} of {plural(r.working, 'domain')} "
        f"{'has not met its' if r.growing == 1 else 'have not met their'} limit.",
        "Each answer that comes well lets a domain take a little more.",
    )


def mixed(r: Readings) -> Sentence:
    """Nothing in particular."""
    if not r.working:
        return Sentence(
            f"Nothing holds it back: {plural(r.in_flight, 'request')} in flight, "
            f"{count(r.pending)} pending, {count(r.delayed)} delayed."
        )
    at_limit = r.of(
        Cause.PACE,
        Cause.CONCURRENCY,
        Cause.CRAWL_DELAY,
        Cause.USER_DELAY,
        Cause.USER_CEILING,
        Cause.POOL,
    )
    return Sentence(
        f"Nothing dominates: {plural(at_limit, 'domain')} at {'its' if at_limit == 1 else 'their'} limit, "
        f"{count(r.of(*HELD))} held, {count(r.of(Cause.NONE))} could send."
    )
