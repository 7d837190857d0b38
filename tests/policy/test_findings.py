"""What is worth a look: each rule with its number, silence about what is fine, and never more than five."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensions.policy.bottleneck import Code
from extensions.policy.findings import MAX_TEXT, MOST, Facts, Finding, findings


@dataclass
class Row:
    name: str = "a.example"
    got: int = 1000
    dead: int = 0
    answers: int = 1000
    refused: int = 0
    note: str = ""
    last: tuple[int, int] = (50, 0)

    def recent(self) -> tuple[int, int]:
        return self.last


def one(facts: Facts | None = None, *rows: Row) -> Finding:
    (found,) = findings(facts or Facts(), rows)
    return found


def hours(**seconds: float) -> dict[str, Any]:
    return {"running_s": 36_000.0, "seconds": seconds}


def test_a_crawl_that_goes_well_has_none() -> None:
    """Some refusals, a lost page, a bottleneck that is the sites' own: nothing that somebody could act on."""
    facts = Facts(
        asked=2000, pages=1990, results=1990, gives_results=True, closed=True,
        skips={"robots.txt": 9, "offsite": 500}, **hours(sites_limit=30_000, writer_behind=100),
    )  # fmt: skip
    rows = [Row(refused=12, dead=1), Row("b.example", got=0, dead=2, answers=3)]
    assert findings(facts, rows) == ()


@pytest.mark.parametrize(
    ("code", "words", "facts", "row"),
    [
        ("account_off", "off by 3 requests", Facts(closed=True, difference=-3), Row()),
        ("callback_error", "11 callback errors are one bug: KeyError at spiders/pages.py:41",
         Facts(bugs={"KeyError at spiders/pages.py:41": 11}), Row()),
        ("too_late", "ends the crawl in 1 h, but it needs 2 h more",
         Facts(time_limit_s=7200, here_s=3600, needs_s=7200), Row()),
        ("no_page", "a.example gave no page: 118 requests lost (timeout)",
         Facts(), Row(got=0, dead=118, note="timeout")),
        ("refusals_rise", "18 of its last 50 answers, 4% in all",
         Facts(), Row(refused=40, last=(50, 18))),
        ("refuses", "refused 38% of its 1,000 answers", Facts(), Row(refused=380, last=(50, 19))),
        ("writer_slow", "PostgreSQL was behind for 1 h, 10% of the time",
         Facts(sink="PostgreSQL", **hours(writer_behind=1800, sink_down=1800)), Row()),
        ("items_lost", "7 items could not be taken", Facts(lost_items=7), Row()),
        ("no_results", "120 pages gave no result", Facts(gives_results=True, pages=120), Row()),
        ("robots", "forbids 1,188 of 2,000 requests (59%)",
         Facts(asked=2000, skips={"robots.txt": 1188}), Row()),
        ("slow_end", "The last few domains took 5 h, 50% of the time",
         Facts(closed=True, **hours(few_domains=18_000)), Row()),
        ("slow_end", "b.example decides the end: 98% is done in 1 h, it needs 4 h at 0.60 a second",
         Facts(running_s=3600, most_s=3600, needs_s=14_400, slowest="b.example", slowest_per_s=0.6),
         Row()),
        ("few_proxies", "Only 3 of 20 proxies work", Facts(proxies=20, healthy_proxies=3), Row()),
        ("parsing_behind", "for 2 h, 20% of the time", Facts(**hours(parsing_behind=7200)), Row()),
        ("slots_full", "CONCURRENT_REQUESTS of 16 was the limit for 75%",
         Facts(max_in_flight=16, **hours(slots_full=27_000)), Row()),
        ("seeds_slow", "during 30% of the time", Facts(**hours(seeds_slow=10_800)), Row()),
    ],
)  # fmt: skip
def test_each_rule_says_its_number(code: str, words: str, facts: Facts, row: Row) -> None:
    """One state, one finding, with the number that shows it."""
    found = one(facts, row)
    assert found.code == code
    assert words in found.text


def test_a_crawl_that_ends_in_time_is_not_called_late() -> None:
    """A tenth more than there is time for is within what an estimate can tell."""
    assert findings(Facts(time_limit_s=7200, here_s=3600, needs_s=3900), ()) == ()


def test_shares_of_the_first_minute_say_nothing() -> None:
    """Ten seconds of a slow start are no finding."""
    assert findings(Facts(running_s=20, seconds={"seeds_slow": 15, "slots_full": 15}), ()) == ()


def test_many_silent_domains_are_one_finding() -> None:
    """The number, and the one that lost most."""
    rows = [Row(f"{n}.example", got=0, dead=n, answers=9) for n in range(1, 40)]
    found = one(None, *rows)
    assert found.text.startswith("39 domains gave no page, the most lost on 39.example: 39")
    assert found.domains == ("39.example",)


counts = st.integers(0, 10**12)
names = st.sampled_from(["", "a.example", "b" * 300, "\x07<script>"])
rows = st.builds(
    Row, name=names, got=counts, dead=counts, answers=counts, refused=counts,
    note=names, last=st.tuples(st.integers(0, 50), st.integers(0, 50)),
)  # fmt: skip
any_facts = st.builds(
    Facts, difference=st.integers(), closed=st.booleans(), running_s=st.floats(0, 1e9),
    here_s=st.floats(0, 1e9), time_limit_s=st.floats(0, 1e9), needs_s=st.none() | st.floats(0, 1e9),
    most_s=st.none() | st.floats(0, 1e9), slowest=st.none() | names, asked=counts,
    slowest_per_s=st.none() | st.floats(0, 1e6), pages=counts, gives_results=st.booleans(),
    seconds=st.dictionaries(st.sampled_from([str(code) for code in Code]), st.floats(0, 1e9)),
    sink=names, lost_items=counts, results=counts, max_in_flight=counts,
    skips=st.dictionaries(st.sampled_from(["robots.txt", "offsite"]), counts),
    bugs=st.dictionaries(names, counts), proxies=counts, healthy_proxies=counts,
)  # fmt: skip


@given(any_facts, st.lists(rows, max_size=5))
def test_any_crawl_gives_at_most_five_short_findings(facts: Facts, domains: list[Row]) -> None:
    """Whatever its numbers and names are."""
    found = findings(facts, domains)
    assert len(found) <= MOST
    assert all(len(finding.text) <= MAX_TEXT for finding in found)
    assert len({finding.text for finding in found}) == len(found)
