"""The pool in the lab reaches its bars, whatever the way in which proxies die."""

from __future__ import annotations

import random

import pytest

from extensions.policy.lab.pool import POOLS, pool_line, run_pool


@pytest.mark.parametrize("seed", [3])
@pytest.mark.parametrize("scenario", POOLS, ids=lambda s: s.name)
def test_every_bar_is_reached(scenario, seed):
    result = run_pool(scenario, draw=random.Random(seed).random)  # noqa: S311
    assert result.misses() == [], pool_line(result)
