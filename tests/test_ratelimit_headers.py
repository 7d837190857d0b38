"""Quotas, as hosts write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_twisted import ensureDeferred
from scrapy.http.headers import Headers

from extensions.ratelimit_headers import Quota, quota_of
from tests.sites import Answer, Host, Route, Site
from tests.test_politeness import Seeds

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "quota"),
    [
        ({"RateLimit": '"default";r=50;t=30'}, Quota(50, 30.0)),
        ({"RateLimit": '"burst";r=5;t=1, "daily";r=100;t=1000'}, Quota(100, 1000.0)),
        ({"RateLimit": "limit=100, remaining=7, reset=5"}, Quota(7, 5.0)),
        ({"RateLimit-Remaining": "0", "RateLimit-Reset": "12"}, Quota(0, 12.0)),
        ({"X-RateLimit-Remaining": "3", "X-RateLimit-Reset": str(int(NOW) + 9)}, Quota(3, 9.0)),
        ({"X-RateLimit-Remaining": "3", "X-RateLimit-Reset": f"{int(NOW) + 9}000"}, Quota(3, 9.0)),
        ({"X-Rate-Limit-Remaining": "1", "X-Rate-Limit-Reset": "2.5"}, Quota(1, 2.5)),
        ({"X-RateLimit-Remaining": "3", "X-RateLimit-Reset": str(int(NOW) - 9)}, None),
        ({"X-RateLimit-Remaining": "-1", "X-RateLimit-Reset": "5"}, None),
        ({"X-RateLimit-Remaining": "1_0", "X-RateLimit-Reset": "5"}, None),
        ({"X-RateLimit-Remaining": "9" * 400, "X-RateLimit-Reset": "5"}, None),
        ({"RateLimit": "gibberish;;="}, None),
        ({"RateLimit": '"default";r=?1;t=30'}, None),
        ({"X-RateLimit-Remaining": "5"}, None),
        ({}, None),
    ],
)
def test_every_form_gives_the_same_two_numbers(headers, quota):
    assert quota_of(Headers(headers), now_at=NOW) == quota


@given(
    st.dictionaries(
        st.sampled_from(["RateLimit", "X-RateLimit-Reset", "X-RateLimit-Remaining"]), st.binary()
    )
)
def test_no_header_can_do_harm(headers):
    quota = quota_of(Headers(headers), now_at=NOW)
    assert quota is None or (quota.remaining >= 0 and quota.reset_s > 0)


@ensureDeferred
async def test_a_host_that_says_none_is_left_is_asked_nothing_until_its_reset(crawl):
    spent = Answer(headers=(("RateLimit-Remaining", "0"), ("RateLimit-Reset", "6")))
    with Site(Host(routes=(Route("/page/0", (spent,)),))) as site:
        settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "ROBOTSTXT_OBEY": False}
        done = await crawl(Seeds, settings, urls=site.urls(4))
        times = [r.at for r in site.log()]
        stats = site.stats()
    assert done.stats["sluice/parsed"] == 4
    assert stats.refused == 0
    assert times[1] - times[0] > 5.5
