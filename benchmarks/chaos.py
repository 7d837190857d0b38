"""Kill a crawl of 1,000 linked pages many times, let it end, and account for every page.

    python -m benchmarks.chaos [--kills 20] [--pages 1000] [--seed 1] [--loops 1] [--flaky] [--postgres]

Each loop is one job: a process that crawls, `kill -9` at a random moment, the next process on the
same JOBDIR, and so on; the last one is left alone. With --flaky, a tenth of the pages answer 503
once; with --postgres, results go to a PostgreSQL too. Prints a line for each loop; exit code 1 if a
page was lost or a result doubled.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.lives import IN_FLIGHT, Lives, Outcome, check, moments
from tests.databases import running_postgres
from tests.sites import Answer, Host, Route, Site

if TYPE_CHECKING:
    from tests.databases import Postgres


def host(pages: int, *, flaky: bool) -> Host:
    """A site that answers in 20 ms; every tenth page fails once, if it is *flaky*."""
    routes = [
        Route(f"/graph/{pages}/{i}", (Answer(status=503), Answer()))
        for i in range(5, pages if flaky else 0, 10)
    ]
    return Host(latency_s=0.02, routes=tuple(routes))


def one_job(
    pages: int, kills: int, seed: int, *, flaky: bool, database: str | None = None
) -> Outcome:
    """Run one job over *kills* deaths."""
    with (
        tempfile.TemporaryDirectory(prefix="sluice-chaos-") as folder,
        Site(host(pages, flaky=flaky)) as site,
    ):
        lives = Lives(site, Path(folder), pages=pages, settings={"SLUICE_RETRY_BASE_S": 0.2})
        if database is not None:
            lives.settings["SLUICE_RESULTS"].append(database)
        for seconds in moments(seed, kills, longest_s=1.5):
            lives.die_after(seconds)
        return lives.finish()


def main() -> int:
    """Run the loops and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--loops", type=int, default=1)
    parser.add_argument("--flaky", action="store_true")
    parser.add_argument("--postgres", action="store_true")
    args = parser.parse_args()
    with running_postgres() if args.postgres else nullcontext() as postgres:
        return run(args, postgres)


def run(args: argparse.Namespace, postgres: Postgres | None) -> int:
    """All loops; 1 if one went wrong."""
    failed = 0
    print("seed kills  pages  jsonl    sql  fetched again (allowed)")
    for seed in range(args.seed, args.seed + args.loops):
        database = None if postgres is None else postgres.url()
        outcome = one_job(args.pages, args.kills, seed, flaky=args.flaky, database=database)
        planned = args.pages // 10 if args.flaky else 0
        again, allowed = outcome.fetched_again - planned, outcome.kills * 2 * IN_FLIGHT
        print(
            f"{seed:4} {outcome.kills:5} {len(outcome.fetched):6} {outcome.jsonl.total():6} "
            f"{outcome.sql.total():6}  {again} ({allowed})",
            flush=True,
        )
        try:
            check(outcome, args.pages)
            if postgres is not None:
                counts = "SELECT count(*), count(DISTINCT url) FROM results"
                assert postgres.ask(counts) == [(args.pages, args.pages)]
                print(f"     PostgreSQL: {args.pages} rows, none twice")
                postgres.ask("DROP TABLE results")
            assert again <= allowed, "more pages were fetched again than were in flight"
        except AssertionError as error:
            failed += 1
            print(f"     {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
