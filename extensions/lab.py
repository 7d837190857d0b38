"""``scrapy sluice-lab``: the control law against models of servers, in virtual time.

Prints one line a server: what the law reached, and which bars it missed. No request is sent.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from .policy.lab.pool import POOL_HEADER, POOLS, pool_line, run_pool
from .policy.lab.scenarios import SCENARIOS, Scenario
from .policy.lab.sensitivity import TELLING, effects
from .policy.lab.table import HEADER, Result, line, run

if TYPE_CHECKING:
    import argparse

_PLOTS_A_ROW = 2


def try_law(args: list[str], opts: argparse.Namespace) -> int:
    """Print the table. Returns an exit code: 1 only for a wrong wish, never for a missed bar."""
    if args:
        raise UsageError(f"unexpected argument {args[0]!r}: see scrapy sluice-lab -h")
    if not opts.scale > 0.0:
        raise UsageError(f"--scale is {opts.scale}: more than 0")
    if opts.plot and not _can_plot():
        print("--plot needs matplotlib: pip install -r requirements-lab.txt", file=sys.stderr)
        return 1
    chosen = [s for s in SCENARIOS if opts.model.lower() in s.name.lower()]
    if opts.model in {"", "pool"} and not opts.sensitivity:
        _pools(opts.seed)
        if opts.model:
            return 0
    if not chosen:
        names = "; ".join(s.name for s in SCENARIOS)
        raise UsageError(f"no model is named like {opts.model!r}. There are: {names}")
    if opts.sensitivity:
        _sensitivity(chosen if opts.model else [], seed=opts.seed)
        return 0
    print(HEADER)
    results = []
    for scenario in chosen:
        draw = random.Random(opts.seed).random  # noqa: S311  a simulation, not a secret
        results.append(run(scenario, draw=draw, scale=opts.scale))
        print(line(results[-1]), flush=True)
    missed = sum(bool(r.misses()) for r in results)
    print(f"{len(results) - missed} of {len(results)} servers: every bar reached")
    if opts.plot:
        _plot(results, opts.plot)
        print(f"drawn: {opts.plot}")
    return 0


def _pools(seed: int) -> None:
    """Pools of proxies that die and come back."""
    print(POOL_HEADER)
    for scenario in POOLS:
        draw = random.Random(seed).random  # noqa: S311  as above
        print(pool_line(run_pool(scenario, draw=draw)), flush=True)
    print()


def _sensitivity(chosen: list[Scenario], *, seed: int) -> None:
    scenarios = chosen or [s for s in SCENARIOS if s.name in TELLING]
    print(f"{len(scenarios)} servers; means after the start; bars missed")
    print(f"{'constant':<26}{'value':>10}{'goodput':>9}{'lost':>8}{'missed':>8}")
    draws = [lambda: random.Random(seed).random]  # noqa: S311  a simulation, not a secret
    for effect in effects(scenarios, draws=draws):
        print(
            f"{effect.constant:<26}{effect.value:>10.4g}{effect.goodput:>9.1%}{effect.lost:>8.2%}"
            f"{effect.missed:>8}",
            flush=True,
        )


def _can_plot() -> bool:
    try:
        import matplotlib as mpl  # noqa: PLC0415  an optional extra
    except ImportError:
        return False
    mpl.use("Agg")
    return True


def _plot(results: list[Result], path: str) -> None:
    """Pace as found, truth and what was accepted, a panel for each server."""
    from matplotlib import pyplot as plt  # noqa: PLC0415  an optional extra

    rows = -(-len(results) // _PLOTS_A_ROW)
    figure, panels = plt.subplots(
        rows, _PLOTS_A_ROW, figsize=(14, 2.6 * rows), squeeze=False, layout="constrained"
    )
    for panel in panels.flat:
        panel.set_visible(False)
    for panel, result in zip(panels.flat, results, strict=False):
        panel.set_visible(True)
        _panel(panel, result)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _panel(panel: object, result: Result) -> None:
    """One server: accepted a second, the truth, and the pace."""
    until = result.scenario.until_s
    width = max(1.0, until / 200.0)
    steps = [i * width for i in range(int(until / width))]
    axes: object = panel
    draw = getattr(axes, "plot")  # noqa: B009  matplotlib is not typed where it is not installed
    accepted = [0] * (len(steps) + 1)
    for moment in result.trace.accepted:
        accepted[min(len(steps), int(moment / width))] += 1
    draw(steps, [n / width for n in accepted[: len(steps)]], lw=0.8, label="accepted/s")
    truth = [min(result.best, result.server.capacity(s, s + width) / width) for s in steps]
    draw(steps, truth, "k--", lw=0.8, label="limit")
    paced = [(t, min(p, 2.0 * max(truth))) for t, p, _ in result.trace.states if p is not None]
    if paced:
        draw([t for t, _ in paced], [p for _, p in paced], lw=0.6, label="pace")
    else:
        draw(
            [t for t, _, _ in result.trace.states],
            [c for _, _, c in result.trace.states],
            lw=0.6,
            label="concurrency",
        )
    getattr(axes, "set_title")(result.scenario.name, fontsize=9)  # noqa: B009
    getattr(axes, "set_ylim")(bottom=0)  # noqa: B009
    getattr(axes, "legend")(fontsize=7, loc="lower right")  # noqa: B009
