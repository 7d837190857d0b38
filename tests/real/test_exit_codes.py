"""The exit code of a real `scrapy crawl`, for each way to end, and the account that goes with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from extensions.stores.joblock import JobLock
from tests.conftest import scrapy_environment
from tests.sites import Answer, Bucket, Host, Route, Site

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import ScrapyProcess

QUICK = ("-s", "ROBOTSTXT_OBEY=False", "-s", "RETRY_TIMES=1", "-s", "SLUICE_RETRY_BASE_S=0.1")
LOST = Route("/lost/*", (Answer(status=404),))


def seeds(folder: Path, site: Site, *, pages: int = 10, lost: int = 0, host: int = 0) -> str:
    base = site.url("/", host)
    urls = [f"{base}page/{n}" for n in range(pages)] + [f"{base}lost/{n}" for n in range(lost)]
    (folder / "seeds.txt").write_text("\n".join(urls))
    return "seeds=seeds.txt"


def crawl(scrapy_cli: Callable[..., ScrapyProcess], seed: str, *more: str) -> ScrapyProcess:
    return scrapy_cli("crawl", "pages", "-a", seed, "-s", "JOBDIR=job", *QUICK, *more)


def wait_until_asked(site: Site, number: int) -> None:
    deadline = time.monotonic() + 60
    while site.stats().received < number and time.monotonic() < deadline:
        time.sleep(0.1)


def report_of(folder: Path) -> dict[str, object]:
    status = json.loads((folder / "job/report.json").read_text())["status"]
    assert status["account"]["difference"] == 0
    return status


@pytest.mark.parametrize(
    ("lost", "more", "code"),
    [
        (0, (), 0),
        (2, (), 3),
        (2, ("-s", "SLUICE_FAIL_ON=never"), 0),
        (2, ("-s", "SLUICE_FAIL_ON=lost>50%,pages<100"), 3),
        (0, ("-s", "CLOSESPIDER_PAGECOUNT=1", "-s", "CONCURRENT_REQUESTS=1"), 4),
        (0, ("-s", "SLUICE_FAIL_ON=lots"), 2),
    ],
)
def test_the_code_says_how_it_ended(
    tmp_path: Path,
    scrapy_cli: Callable[..., ScrapyProcess],
    lost: int,
    more: tuple[str, ...],
    code: int,
) -> None:
    """Complete, lossy, lossy but allowed, stopped early, impossible setting."""
    with Site(Host(routes=(LOST,))) as site:
        done = crawl(scrapy_cli, seeds(tmp_path, site, lost=lost), *more)
    assert done.code == code, done.err
    if code != 2:
        status = report_of(tmp_path)
        assert status["exit_code"] == code
        verdict = done.err.strip().splitlines()[-1]
        assert f"Exit code {code}: " in verdict
        assert "sluice.report" in verdict


def test_a_stopped_crawl_returns_4_and_the_next_one_ends_it(tmp_path: Path) -> None:
    """SIGINT keeps the rest; the account goes on over both runs."""
    with Site(Host(limit=Bucket(rate=10, burst=5))) as site:
        seed = seeds(tmp_path, site, pages=100)
        command = [sys.executable, "-m", "scrapy", "crawl", "pages", "-a", seed, *QUICK]
        command += ["-s", "JOBDIR=job", "-L", "INFO"]
        with subprocess.Popen(
            command, cwd=tmp_path, env=scrapy_environment(), stderr=subprocess.PIPE, text=True
        ) as running:
            wait_until_asked(site, 15)
            os.kill(running.pid, signal.SIGINT)
            _, err = running.communicate(timeout=60)
        assert running.returncode == 4, err
        first = report_of(tmp_path)
        assert first["finish_reason"] == "shutdown"
        left = first["account"]["pending"] + first["account"]["delayed"]  # type: ignore[index]
        assert left > 0
        again = subprocess.run(
            command, cwd=tmp_path, env=scrapy_environment(), capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
    assert again.returncode == 0, again.stderr
    account = report_of(tmp_path)["account"]
    assert account["asked"] == account["got"] == 100  # type: ignore[index]


@pytest.mark.parametrize("signals", [1, 2])
def test_a_crawl_cut_short_by_signals_is_never_complete(tmp_path: Path, signals: int) -> None:
    """One in the middle of the start, or a second one: nobody gets to the report, and the code is not 0."""
    with Site(Host(latency_s=0.5, limit=Bucket(rate=10, burst=5))) as site:
        seed = seeds(tmp_path, site, pages=50)
        command = [sys.executable, "-m", "scrapy", "crawl", "pages", "-a", seed, *QUICK]
        command += ["-s", "JOBDIR=job", "-L", "INFO"]
        log = tmp_path / "log"
        with (
            log.open("w") as err,
            subprocess.Popen(
                command, cwd=tmp_path, env=scrapy_environment(), stderr=err
            ) as running,
        ):
            deadline = time.monotonic() + 60
            while "Spider opened" not in log.read_text() and time.monotonic() < deadline:
                time.sleep(0.02)
            for _ in range(signals):
                os.kill(running.pid, signal.SIGINT)
                time.sleep(0.05)
            running.wait(timeout=60)
    assert running.returncode in {4, -signal.SIGINT}, log.read_text()


def test_a_killed_crawl_is_reported_by_what_the_store_has(
    tmp_path: Path, scrapy_cli: Callable[..., ScrapyProcess]
) -> None:
    """Nobody closed it: the report says so, and its sum comes out all the same."""
    with Site(Host(limit=Bucket(rate=10, burst=5))) as site:
        seed = seeds(tmp_path, site, pages=100)
        command = [sys.executable, "-m", "scrapy", "crawl", "pages", "-a", seed, *QUICK]
        command += ["-s", "JOBDIR=job"]
        with subprocess.Popen(
            command, cwd=tmp_path, env=scrapy_environment(), stderr=subprocess.DEVNULL
        ) as running:
            wait_until_asked(site, 35)
            alive = scrapy_cli("job", "report", "job")
            running.kill()
        assert "RUNNING: " in alive.out
        assert "in jsonl:results/pages.jsonl" in alive.out, "its first look was not kept"
    shown = scrapy_cli("job", "report", "job", "--json")
    status = json.loads(shown.out)["status"]
    assert status["finish_reason"] == "killed"
    assert status["account"]["asked"] == 100
    assert status["account"]["difference"] == 0
    assert "STOPPED (killed)" in scrapy_cli("job", "report", "job", "--if-incomplete").out


def test_cron_hears_nothing_of_a_complete_crawl(
    tmp_path: Path, scrapy_cli: Callable[..., ScrapyProcess]
) -> None:
    """No line is printed where nothing is missing."""
    with Site() as site:
        done = crawl(scrapy_cli, seeds(tmp_path, site), "-L", "ERROR")
    assert (done.code, done.out, done.err) == (0, "", "")
    quiet = scrapy_cli("job", "report", "job", "--if-incomplete")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    full = scrapy_cli("job", "report", "job")
    assert "COMPLETE: 10 pages" in full.out


def test_a_process_that_is_refused_leaves_the_others_report_and_ends_with_a_verdict(
    tmp_path: Path, scrapy_cli: Callable[..., ScrapyProcess]
) -> None:
    """Another one works on the job: its report is its own."""
    with Site() as site:
        seed = seeds(tmp_path, site)
        assert crawl(scrapy_cli, seed).code == 0
        before = (tmp_path / "job/report.json").read_bytes()
        lock = JobLock(path=tmp_path / "job/job.lock", spider="other")
        lock.acquire()
        done = crawl(scrapy_cli, seed)
        lock.release()
    assert done.code == 75
    assert "works on this job" in done.err
    assert "Exit code 75: closed with 'store_failed'" in done.err.strip().splitlines()[-1]
    assert (tmp_path / "job/report.json").read_bytes() == before
