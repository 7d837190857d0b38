"""Whether answers queue: a rise is told from the scatter, whatever the latencies look like."""

import random

import pytest

from extensions.policy.law import LAW
from extensions.policy.queueing import Queue


def fed(queue, draw, n, *, alone=False):
    """Show it *n* latencies in windows of ten; how many it took to be convinced, or None."""
    for i in range(n):
        if queue.slow(draw()):
            return i + 1
        if i % 10 == 9:
            queue.calm(alone=alone)
    return None


def tails(seed, median_s, sigma):
    rng = random.Random(seed)  # noqa: S311  a simulation, not a secret
    return lambda: median_s * rng.lognormvariate(0.0, sigma)


@pytest.mark.parametrize(("sigma", "alarms"), [(0.05, 0), (0.5, 3), (1.0, 4)])
def test_scatter_alone_is_hardly_ever_a_queue(sigma, alarms):
    """Ten hosts of a thousand answers each."""
    found = [fed(Queue(), tails(seed, 0.5, sigma), 1000) for seed in range(10)]
    assert sum(n is not None for n in found) <= alarms


@pytest.mark.parametrize(("sigma", "within"), [(0.05, 6), (0.5, 20), (1.0, 60)])
def test_a_threefold_rise_is_found(sigma, within):
    """The wider the scatter, the longer it takes."""
    for seed in range(10):
        queue = Queue()
        fed(queue, tails(seed, 0.5, sigma), 60)
        queue.restart()
        took = fed(queue, tails(100 + seed, 1.5, sigma), 200)
        assert took is not None
        assert took <= within


def test_two_hosts_behind_one_name_are_no_queue():
    """Half of the answers take eleven times longer: a median would jump, the mean does not."""
    rng = random.Random(3)  # noqa: S311  a simulation, not a secret
    assert fed(Queue(), lambda: rng.choice((0.05, 0.55)), 1000) is None


def test_what_is_calm_is_never_slow():
    """From 1 ms to a tenth of a second: a busy event loop does as much."""
    queue = Queue()
    fed(queue, lambda: 0.001, 20)
    assert fed(queue, lambda: 0.5 * LAW.calm_latency_s, 1000) is None
    assert fed(queue, lambda: 5.0 * LAW.calm_latency_s, 10) is not None


def test_alone_the_base_follows():
    """A request without company waits for nobody: the host itself became slower."""
    queue = Queue()
    fed(queue, lambda: 0.3, 20)
    assert fed(queue, lambda: 0.9, 10) is not None
    queue.restart()
    queue.slow(0.9)
    queue.slow(0.9)
    assert not queue.calm(alone=False)
    queue.slow(0.9)
    queue.slow(0.9)
    queue.calm(alone=True)
    assert fed(queue, lambda: 0.9, 50) is None
