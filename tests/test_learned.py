"""What was found of domains is kept from run to run, as a hint."""

from __future__ import annotations

import json

from pytest_twisted import ensureDeferred

from extensions.learned import KEEP_S, MAX_DOMAINS, Learned
from tests.sites import Bucket, Host, Site
from tests.test_strays import Files

NOW = 1_800_000_000.0


def test_the_fresher_of_two_memories_wins_and_an_old_one_is_forgotten(tmp_path):
    file = tmp_path / "learned.json"
    file.write_text(
        json.dumps({"a": {"mark": 1.0, "at": NOW - 10}, "b": {"mark": 2.0, "at": NOW - KEEP_S - 1}})
    )
    learned = Learned(file=str(file))
    learned.load(json.dumps({"a": {"mark": 3.0, "at": NOW - 5}}), NOW)
    assert learned.recall("a") == {"mark": 3.0, "at": NOW - 5}
    assert learned.recall("b") is None


def test_a_memory_from_the_future_is_not_believed(tmp_path):
    learned = Learned(file=None)
    learned.load(json.dumps({"a": {"mark": 1.0, "at": NOW + 86_400}}), NOW)
    assert learned.recall("a") is None


def test_an_unreadable_memory_costs_a_warning(tmp_path, caplog):
    file = tmp_path / "learned.json"
    file.write_text("{torn")
    learned = Learned(file=str(file))
    learned.load('["no dict"]', NOW)
    assert learned.recall("a") is None
    assert "unreadable" in caplog.text


def test_two_crawls_keep_both_their_news(tmp_path):
    file = tmp_path / "deep" / "learned.json"
    for domain in ("a", "b"):
        learned = Learned(file=str(file))
        learned.load(json.dumps({domain: {"mark": 1.0, "at": NOW}}), NOW)
        learned.save(NOW)
    assert set(json.loads(file.read_text())) == {"a", "b"}


def test_memory_is_bounded():
    learned = Learned(file=None)
    many = {str(n): {"mark": 1.0, "at": NOW} for n in range(MAX_DOMAINS + 5)}
    learned.load(json.dumps(many), NOW)
    assert len(json.loads(learned.text())) == MAX_DOMAINS


@ensureDeferred
async def test_a_second_run_starts_from_what_the_first_found(crawl, tmp_path):
    settings = {"SLUICE_LEARNED": str(tmp_path / "learned.json"), "ITEM_PIPELINES": {}}
    with Site(Host(limit=Bucket(rate=30, burst=5), latency_s=0.01)) as site:
        refused = []
        for run in range(2):
            before = site.stats().refused
            urls = [f"{url}?run={run}" for url in site.urls(120)]
            done = await crawl(Seeds, settings, urls=urls)
            assert done.stats["sluice/parsed"] == 120
            refused.append(site.stats().refused - before)
    assert refused[1] < refused[0]


class Seeds(Files):
    name = "seeds"

    def __init__(self, urls, **kwargs):
        super().__init__(urls, **kwargs)
        self.pages = urls

    def parse(self, response):
        return None
