"""What a crawl measures, for Prometheus: the names are stable, since boards and alerts are made of them.

The rule it keeps: a scrape costs the same however many domains there are. Labels come from bounded
lists; of the domains the busiest few have their own, and all others are "other".
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from .book import LATENCY_BOUNDS_S, OTHER
from .policy.bottleneck import Code
from .version import versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client.metrics_core import Metric

    from .book import Book
    from .sampler import Sampler
    from .snapshot import Snapshot

MAX_DOMAINS = 20


class CrawlMetrics(Collector):
    """Reads the newest snapshot at each scrape; keeps nothing of its own.

    Args:
        sampler: Where the numbers come from.
    """

    def __init__(self, *, sampler: Sampler) -> None:
        self._sampler = sampler
        # A registry of its own: two crawls in one process do not meet.
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def scrape(self) -> tuple[str, bytes]:
        """Content type and body of an answer."""
        return CONTENT_TYPE_LATEST, generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing is described before the first scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics of this moment."""
        snapshot, book = self._sampler.snapshot, self._sampler.book
        if snapshot is None:
            return
        yield _info(snapshot)
        yield from _totals(snapshot, book)
        yield from _gauges(snapshot)
        yield from _bottleneck(snapshot)
        yield from _by_domain(book)
        yield _latency(book)


def _info(s: Snapshot) -> Metric:
    family = InfoMetricFamily("sluice", "What crawls here; always 1.")
    family.add_metric([], {"spider": s.spider, "job": s.job, "versions": versions()})
    return family


def _counter(name: str, doc: str, value: float) -> Metric:
    return CounterMetricFamily(f"sluice_{name}", doc, value=value)


def _labelled(name: str, doc: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(f"sluice_{name}", doc, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _totals(s: Snapshot, book: Book) -> Iterator[Metric]:
    yield _counter("requests", "Distinct requests taken on.", s.account.asked)
    yield _counter("pages", "Answers that were parsed.", s.account.got)
    yield _counter(
        "results_written", "Results that the slowest sink has.", s.gauges.results_written
    )
    yield _counter("callback_errors", "Exceptions that callbacks raised.", book.errors)
    answered = {
        "refused": book.refused,
        "overloaded": book.overloaded,
        "other": book.answers - book.refused - book.overloaded,
    }
    yield _labelled(
        "responses", "Answers and failures, by what they say of the host.", "outcome", answered
    )
    retries = {"scheduled": book.retries_out, "sent": book.retries_in}
    yield _labelled(
        "retries", "Retries: put off (scheduled), and come back (sent).", "step", retries
    )
    dead = {reason: kept.count for reason, kept in book.reasons.items()}
    yield _labelled(
        "dead_letters",
        "Requests and items given up, lost unless replayed, by reason.",
        "reason",
        dead,
    )
    skipped = dict(book.skips)
    yield _labelled(
        "skipped",
        "Requests left out on purpose (robots.txt, another site ...), by reason.",
        "reason",
        skipped,
    )


def _gauge(name: str, doc: str, value: float | None) -> Metric:
    return GaugeMetricFamily(f"sluice_{name}", doc, value=float("nan") if value is None else value)


def _gauges(s: Snapshot) -> Iterator[Metric]:
    g = s.gauges
    pending = GaugeMetricFamily(
        "sluice_pending",
        "Requests that are known and not handed out, by where they are kept.",
        labels=["where"],
    )
    pending.add_metric(["memory"], g.pending_in_memory)
    pending.add_metric(["disk"], g.pending_on_disk)
    yield pending
    yield _gauge("pending_high", "Pending in memory at which seeds wait.", g.pending_high)
    yield _gauge("pending_low", "Pending in memory at which seeds go on.", g.pending_low)
    yield _gauge("gate_open", "1 while seeds are let in, 0 while they wait.", g.gate_open)
    yield _gauge(
        "delayed", "Requests that are due later: retries, and what waits on purpose.", g.delayed
    )
    yield _gauge("in_flight", "Requests that are at a site now.", g.in_flight)
    yield _gauge("max_in_flight", "The most that may be: CONCURRENT_REQUESTS.", g.max_in_flight)
    yield _gauge(
        "results_waiting", "Results that are kept and not in every sink yet.", g.results_waiting
    )
    yield _gauge("results_bound", "Results waiting at which fetching pauses.", g.results_bound)
    yield _gauge("oldest_result_seconds", "Age of the oldest result that waits.", g.oldest_result_s)
    yield _gauge(
        "account_difference",
        "Requests unaccounted for; anything but 0 is a bug.",
        s.account.difference,
    )
    yield _gauge(
        "loop_lag_seconds",
        "Lateness of the event loop, 99th percentile of the last 10 s.",
        s.loop_lag_s,
    )
    yield _gauge(
        "cpu_share",
        "Processor time of the process in parts of one core, mean of the last 10 s.",
        s.cpu_share,
    )
    yield _gauge("resident_memory_bytes", "Memory of the process (resident set).", s.rss_bytes)
    yield _gauge(
        "running_seconds", "How long the job has run, over all its processes.", s.running_s
    )
    yield _gauge("finished", "1 when the crawl has ended, else 0.", s.finish_reason is not None)
    left = s.times.all_s if s.times_known else None
    yield _gauge("time_left_seconds", "Seconds until the last domain is done.", left)
    states = GaugeMetricFamily("sluice_domains", "Domains ever seen, by state.", labels=["state"])
    for state, number in s.states.items():
        states.add_metric([state], number)
    yield states
    if g.proxies:
        proxies = GaugeMetricFamily(
            "sluice_proxies", "Proxies in the list, by health; only with a list.", labels=["state"]
        )
        proxies.add_metric(["healthy"], g.healthy_proxies)
        proxies.add_metric(["resting"], g.proxies - g.healthy_proxies)
        yield proxies


def _bottleneck(s: Snapshot) -> Iterator[Metric]:
    now = GaugeMetricFamily(
        "sluice_bottleneck",
        "1 for the code of what holds the crawl back now, 0 for all others.",
        labels=["code"],
    )
    for code in Code:
        now.add_metric([str(code)], 1.0 if code == s.code else 0.0)
    yield now
    yield _labelled(
        "bottleneck_seconds",
        "Seconds for which each code held the crawl back.",
        "code",
        dict(s.seconds),
    )


_BY_DOMAIN = {
    "pages": ("Pages, of the busiest domains.", "got"),
    "responses": ("Answers and failures, of the busiest domains.", "answers"),
    "refused": ("Refusals, of the busiest domains.", "refused"),
    "dead_letters": ("Dead letters, of the busiest domains.", "dead"),
}


def _by_domain(book: Book) -> Iterator[Metric]:
    top = heapq.nlargest(MAX_DOMAINS, book.rows.values(), key=lambda row: row.asked)
    whole = {
        "got": book.got, "answers": book.answers, "refused": book.refused, "dead": book.dead
    }  # fmt: skip
    for name, (doc, attribute) in _BY_DOMAIN.items():
        values: dict[str, Any] = {row.name: getattr(row, attribute) for row in top}
        if book.domains > len(top):
            values[OTHER] = max(0, whole[attribute] - sum(values.values()))
        yield _labelled(f"domain_{name}", doc, "domain", values)


def _latency(book: Book) -> Metric:
    counted, buckets = 0, []
    for bound_s, number in zip((*LATENCY_BOUNDS_S, None), book.latency_buckets, strict=True):
        counted += number
        buckets.append(("+Inf" if bound_s is None else str(bound_s), counted))
    return HistogramMetricFamily(
        "sluice_latency_seconds",
        "Time from the sending of a request to its answer or failure.",
        buckets=buckets,
        sum_value=book.latency_sum_s,
    )
