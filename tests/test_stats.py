"""The direct collector does what Scrapy's own does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Spider
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from extensions.stats import DirectStatsCollector

KEYS = st.sampled_from(["a", "b"])
NUMBERS = st.integers(-9, 9)
CALLS = st.one_of(
    st.tuples(st.just("inc_value"), KEYS, NUMBERS, NUMBERS),
    st.tuples(st.sampled_from(["set_value", "max_value", "min_value"]), KEYS, NUMBERS),
    st.tuples(st.just("set_stats"), st.dictionaries(KEYS, NUMBERS)),
    st.tuples(st.just("clear_stats")),
)


@given(st.lists(CALLS))
def test_every_sequence_of_calls_ends_in_the_same_stats(calls: list[tuple[Any, ...]]):
    """Scrapy's collector is the reference."""
    crawler = get_crawler(Spider)
    ours, theirs = DirectStatsCollector(crawler), MemoryStatsCollector(crawler)
    for name, *arguments in calls:
        for collector in (ours, theirs):
            copies = [dict(a) if isinstance(a, dict) else a for a in arguments]
            getattr(collector, name)(*copies)
        assert ours.get_stats() == theirs.get_stats()
        assert ours.get_value("a", 7) == theirs.get_value("a", 7)


def test_the_deprecated_spider_argument_is_still_taken():
    """Old extensions pass it."""
    stats = DirectStatsCollector(get_crawler(Spider))
    stats.inc_value("a", spider=Spider("s"))
    stats.set_value("b", 2, spider=Spider("s"))
    assert stats.get_stats(spider=Spider("s")) == {"a": 1, "b": 2}


def test_it_is_the_collector_that_scrapy_looks_for():
    """Extensions that ask for the base class, or for a spider's stats at the end, find both."""
    crawler = get_crawler(Spider, {"STATS_CLASS": DirectStatsCollector, "STATS_DUMP": False})
    assert type(crawler.stats) is DirectStatsCollector
    assert isinstance(crawler.stats, MemoryStatsCollector)


@pytest.mark.parametrize("name", ["inc_value", "set_value", "get_value"])
def test_methods_are_found_without_a_detour(name: str):
    """The reason for the class: what is looked up is the method itself."""
    stats = DirectStatsCollector(get_crawler(Spider))
    assert getattr(stats, name).__func__ is getattr(type(stats), name)
