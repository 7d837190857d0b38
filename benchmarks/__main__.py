"""``python -m benchmarks [NAME ...] [--rounds N]``: every scenario, or those that are named.

``peers`` takes a quarter of an hour a round and installs a peer from PyPI, as ``rotating`` does; what it costs to be seen
takes minutes, and tmux or valgrind: these run only if named.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version

from .counters import counters
from .display import display, display_instructions
from .governor import governor
from .peers import peers
from .polls import polls
from .profiled import seen_samples
from .proxies import choosing, rotating
from .scenarios import SCENARIOS as OF_CRAWLS
from .scenarios import Table
from .shared import memory, shared, workers
from .sight import seen, seen_instructions, sight
from .sinks import outage, sinks

SCENARIOS = {
    **OF_CRAWLS,
    "governor": governor,
    "choosing": choosing,
    "sinks": sinks,
    "outage": outage,
    "shared": shared,
    "workers": workers,
    "redis_memory": memory,
    "sight": sight,
    "polls": polls,
    "counters": counters,
}
IF_NAMED = {
    "peers": peers,
    "rotating": rotating,
    "seen": seen,
    "seen_samples": seen_samples,
    "seen_instructions": seen_instructions,
    "display": display,
    "display_instructions": display_instructions,
}


def main() -> None:
    """Run what was asked for and print a table for each."""
    known = {**SCENARIOS, **IF_NAMED}
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help=f"of {', '.join(known)} (default: all but {', '.join(IF_NAMED)})"
    )
    parser.add_argument("--rounds", type=int, default=3, help="runs of each client (median)")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(known):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    print(f"Scrapy {version('scrapy')}, medians of {arguments.rounds} alternated runs\n")
    for name in arguments.names or SCENARIOS:
        print(_markdown(known[name](arguments.rounds)), flush=True)


def _markdown(table: Table) -> str:
    lines = [f"### {table.title}", "", _line(table.columns), _line(["---"] * len(table.columns))]
    lines += [_line(row) for row in table.rows]
    return "\n".join([*lines, ""])


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
