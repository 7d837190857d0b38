"""What is scraped: stable names, bounded labels, and boards and rules that name what exists."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from extensions.book import Book
from extensions.metrics import MAX_DOMAINS, CrawlMetrics
from extensions.policy.bottleneck import Cause
from extensions.policy.outcome import Outcome
from extensions.sampler import Sampler
from extensions.snapshot import DomainNow
from tests.needs import needs
from tests.test_sampler import PlainView

DEPLOY = Path(__file__).parents[1] / "deploy"


def metrics(domains: int = 3, **gauges: object) -> CrawlMetrics:
    book = Book()
    working = {f"{n}.example": DomainNow(cause=Cause.PACE, pending=5) for n in range(domains)}
    for name in working:
        book.taken(name)
        book.answered(name, Outcome.REFUSED, latency_s=0.3)
    book.buried("0.example", "timeout", url="http://0.example/", now_at=1.0)
    book.left_out("1.example", "robots.txt")
    sampler = Sampler(view=PlainView(working, **gauges), book=book, spider="pages", job="x")
    sampler.tick()
    sampler.tick()
    return CrawlMetrics(sampler=sampler)


def scraped(made: CrawlMetrics) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(made.scrape()[1].decode()):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_the_figures_are_there() -> None:
    """Depth and marks, refusals, retries, dead letters, latency, bottleneck."""
    found = scraped(metrics(pending_in_memory=7, pending_high=100, proxies=3, healthy_proxies=1))
    assert found["sluice_pending"][(("where", "memory"),)] == 7
    assert found["sluice_pending_high"][()] == 100
    assert found["sluice_responses_total"][(("outcome", "refused"),)] == 3
    assert found["sluice_dead_letters_total"] == {(("reason", "timeout"),): 1}
    assert found["sluice_skipped_total"] == {(("reason", "robots.txt"),): 1}
    assert found["sluice_latency_seconds_bucket"][(("le", "0.5"),)] == 3
    assert sum(found["sluice_bottleneck"].values()) == 1
    assert found["sluice_proxies"][(("state", "healthy"),)] == 1


def test_domains_are_bounded_and_a_scrape_is_short() -> None:
    """Twenty thousand domains are twenty and "other", in under a tenth of a second."""
    made = metrics(20_000)
    began = time.perf_counter()
    found = scraped(made)["sluice_domain_refused_total"]
    took_s = time.perf_counter() - began
    assert len(found) == MAX_DOMAINS + 1
    assert sum(found.values()) == 20_000
    assert took_s < 0.1


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\bsluice_[a-z_]+", expression))


def expressions() -> list[str]:
    board = json.loads((DEPLOY / "grafana/sluice.json").read_text())
    found = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    found += re.findall(
        r"expr: (.*?)\n\s+for:", (DEPLOY / "prometheus/alerts.yml").read_text(), re.DOTALL
    )
    return found


def test_boards_and_rules_name_metrics_that_exist() -> None:
    """A renamed metric must not leave an empty panel, or an alert that can never ring."""
    known = set(scraped(metrics(proxies=1)))
    found = expressions()
    assert len(found) > 20
    for expression in found:
        assert names_in(expression) <= known, expression


@needs("prometheus", found=shutil.which("promtool"))
def test_promtool_accepts_the_rules() -> None:
    """The rules are valid for the program that reads them."""
    done = subprocess.run(
        ["promtool", "check", "rules", str(DEPLOY / "prometheus/alerts.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
