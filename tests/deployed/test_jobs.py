"""Jobs of a real Scrapyd: side by side, cancelled, killed, and going on under newer code."""

from __future__ import annotations

import json
import os
import signal

from tests.deployed.conftest import JOB_S, wait_for
from tests.sites import Answer, Bucket, Host, Route, Site

PAGES = 240
JOBS = ("cancelled", "killed", "left-alone")


def urls(lines: list[str]) -> list[str]:
    return sorted(json.loads(line)["url"] for line in lines)


def test_jobs_of_one_spider_resume_after_cancel_and_kill_under_newer_code(scrapyd, checkout):
    """Three at once; one cancelled, one killed; a new version meanwhile; all complete, all once."""
    first = checkout.deployed()
    bad = Route("/page/7", (Answer(404),))
    hosts = [Host(latency_s=0.02, limit=Bucket(rate=60, burst=10), routes=(bad,)) for _ in JOBS]
    with Site(*hosts) as site:
        meant = {}
        settings = ("SLUICE_STATUS_PORT=18931", "USER_AGENT=test")
        for number, job in enumerate(JOBS):
            pages = site.urls(PAGES, host=number)
            seeds = scrapyd.folder / f"{job}.txt"
            seeds.write_text("\n".join(pages))
            meant[job] = sorted(page for page in pages if not page.endswith("/page/7"))
            scrapyd.schedule(job, settings=settings, seeds=seeds)

        def told() -> str:
            return "\n".join(scrapyd.log(job) for job in JOBS)

        wait_for(lambda: all(len(scrapyd.results(job)) > 20 for job in JOBS), JOB_S, told)
        assert {scrapyd.state(job) for job in JOBS} == {"running"}
        pages = {job: (scrapyd.folder / "jobs/sluice/pages" / job / "status.url") for job in JOBS}
        assert len({path.read_text() for path in pages.values()}) == len(JOBS)
        assert scrapyd.post("cancel", project="sluice", job="cancelled")["prevstate"] == "running"
        os.kill(scrapyd.pid("killed"), signal.SIGKILL)
        second = checkout.deployed()
        assert int(second) > int(first)
        for job in JOBS:
            wait_for(lambda job=job: scrapyd.state(job) == "finished", JOB_S, told)
        had = {job: scrapyd.results(job) for job in JOBS}
        assert max(len(had["cancelled"]), len(had["killed"])) < PAGES - 1
        assert urls(had["left-alone"]) == meant["left-alone"]
        for job in JOBS[:2]:
            assert f"code {first}, Sluice" in scrapyd.log(job)
            scrapyd.schedule(job, settings=settings, seeds=scrapyd.folder / f"{job}.txt")
        for job in JOBS[:2]:
            wait_for(lambda job=job: f"code {second}, Sluice" in scrapyd.log(job), JOB_S, told)
            wait_for(lambda job=job: "Exit code 3: " in scrapyd.log(job), JOB_S, told)
            assert f"'sluice/code_version': '{second}'" in scrapyd.log(job)
            lines = scrapyd.results(job)
            assert urls(lines) == meant[job], told()
            assert lines[: len(had[job])] == had[job]
        again = [site.stats(host).statuses["200"] - len(meant["killed"]) for host in range(3)]
    # robots.txt is asked for at each start. Of a killed job, what was in flight and what was not yet committed is fetched
    # again, and nothing else.
    assert again[0] == 2
    assert again[1] <= 2 + 32
    assert again[2] == 1
