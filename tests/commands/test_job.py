"""`scrapy job`: what a person asks about a job, beside a crawl and after one."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.settings import Settings
from scrapy.utils.request import fingerprint

from extensions.commands.job import Command
from extensions.stores.base import Batch, StagedItem, State
from extensions.stores.sqlite import SqliteJobStore
from tests.stores.test_job_store_contract import letter, request_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

URLS = {n: f"http://a.example/{n}" for n in range(1, 9)}


def payload(url: str) -> bytes:
    return json.dumps({"url": url}, separators=(",", ":")).encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "job"


@pytest.fixture
def store(folder: Path) -> Iterator[SqliteJobStore]:
    store = SqliteJobStore(path=folder / "job.sqlite", spider="books")
    store.open()
    rows = [request_row(n, payload=payload(url)) for n, url in URLS.items()]
    rows[1].state = State.LEASED
    rows[2].state, rows[2].due_at = State.DELAYED, time.time() + 60
    rows[3].payload = b"\xff torn"
    seen = [fingerprint(Request(url)) for url in URLS.values()]
    store.commit(Batch(inserts=rows, seen=seen))
    item = json.dumps({"url": URLS[6]})
    dead = letter("1", url=URLS[7])
    store.commit(
        Batch(
            done=[5, 6, 7],
            items=[StagedItem(item, 6)],
            dead=[dead],
            facts={"finish_reason": '"shutdown"'},
        )
    )
    yield store
    store.close()


@pytest.fixture
def job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*args: str, **options: Any) -> tuple[int, str, str]:
        command = Command()
        command.settings = Settings({"SLUICE_DEAD_LETTERS": str(tmp_path / "%(spider)s.sqlite")})
        defaults = {
            "json": False, "url": None, "output": None, "force": False, "html": None, "markdown": False,
            "if_incomplete": False,
        }  # fmt: skip
        command.run(list(args), Namespace(**(defaults | options)))
        out, err = capsys.readouterr()
        return command.exitcode, out, err

    return run


def test_status_of_a_running_job_names_who_works_on_it(
    store: SqliteJobStore, folder: Path, job: Any
) -> None:
    code, out, _ = job("status", str(folder))
    assert code == 0
    assert "(spider books)" in out
    values = json.loads(job("status", str(folder), json=True)[1])
    expected = {
        "running": True,
        "spider": "books",
        "pending": 3,
        "leased": 1,
        "delayed": 1,
        "done": 3,
        "seen": 8,
        "results": 1,
        "written": 0,
        "staged": 1,
        "dead": 1,
        "dead_staged": 1,
        "busiest": [{"domain": "a.example", "pending": 3}],
    }
    assert {name: values[name] for name in expected} == expected
    store.refill("a.example", 2)
    assert json.loads(job("status", str(folder), json=True)[1])["pending"] == 3


def test_status_of_a_job_at_rest_changes_no_file(
    store: SqliteJobStore, folder: Path, job: Any
) -> None:
    store.close()
    before = {p.name: p.stat().st_mtime_ns for p in folder.iterdir()}
    code, out, _ = job("status", str(folder))
    assert code == 0
    assert "nobody works on it, last ended as 'shutdown'" in out
    assert "left by a process that died" in out
    assert {p.name: p.stat().st_mtime_ns for p in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("n", "place"),
    [
        (1, "pending"),
        (2, "in flight"),
        (3, "delayed until "),
        (5, "done"),
        (6, "1 results wait for a sink"),
        (7, "its dead letter is on the way"),
        (99, "nobody asked for it"),
    ],
)
def test_status_tells_where_a_url_is(
    store: SqliteJobStore, folder: Path, job: Any, n: int, place: str
) -> None:
    url = f"http://a.example/{n}"
    code, out, _ = job("status", str(folder), url=url)
    assert code == 0
    assert place in out
    assert json.loads(job("status", str(folder), url=url, json=True)[1])["url"] == url


def test_export_gives_every_request_also_the_unreadable(
    store: SqliteJobStore, folder: Path, job: Any, tmp_path: Path
) -> None:
    _, out, _ = job("export", str(folder))
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["id"] for line in lines] == [1, 2, 3, 4, 8]
    assert lines[0]["request"] == {"url": URLS[1]}
    assert lines[1]["state"] == "in flight"
    assert lines[3]["raw_base64"]
    target = tmp_path / "out.jsonl"
    assert job("export", str(folder), output=str(target))[0] == 0
    assert target.read_text() == out
    code, _, err = job("export", str(folder), output=str(target))
    assert code == 2
    assert "exists" in err


def test_clean_refuses_while_a_crawl_works_on_the_job(
    store: SqliteJobStore, folder: Path, job: Any
) -> None:
    code, _, err = job("clean", str(folder), force=True)
    assert code == 2
    assert "works on this job" in err
    assert (folder / "job.sqlite").exists()


def test_clean_refuses_to_lose_results_unless_forced(
    store: SqliteJobStore, folder: Path, job: Any
) -> None:
    store.close()
    code, _, err = job("clean", str(folder))
    assert code == 2
    assert "1 results and 1 dead letters have not left it" in err
    assert job("clean", str(folder), force=True)[0] == 0
    assert not folder.exists()


def test_clean_leaves_what_is_not_the_jobs(store: SqliteJobStore, folder: Path, job: Any) -> None:
    store.forget_items(1)
    store.forget_dead([1])
    store.close()
    (folder / "notes.txt").write_text("mine")
    code, out, _ = job("clean", str(folder))
    assert (code, "3 done, 5 not fetched" in out) == (0, True)
    assert [p.name for p in folder.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ((), "give one of status, report, export, clean"),
        (("stat", "x"), "not 'stat'"),
        (("status",), "needs one folder"),
        (("status", "nowhere"), "nowhere: holds no job"),
        (("report", "nowhere"), "nowhere: holds no job"),
        (("export", "nowhere"), "nowhere: holds no job"),
        (("clean", "nowhere"), "nowhere: holds no job"),
    ],
)
def test_a_wrong_word_is_one_clear_line(
    job: Any, args: tuple[str, ...], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = job(*args)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert why in err
    assert not (tmp_path / "nowhere").exists()


DAMAGED = {
    "cut short": b'{"ver',
    "no object": b"[]",
    "no text": b"\xff\xfe\x00",
    "nothing but a version": b'{"version": 1}',
    "a later version's": b'{"version": 99, "status": {}}',
    "other values": b'{"version": 1, "status": {"account": "x", "finish_reason": null}}',
}


@pytest.mark.parametrize("form", [{}, {"json": True}, {"markdown": True}, {"if_incomplete": True}])
@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_report_is_said_in_one_line_and_the_store_tells_the_rest(
    store: SqliteJobStore, folder: Path, job: Any, how: str, form: dict[str, bool]
) -> None:
    """The report that the crawl kept is a help; the store is the truth."""
    store.close()
    (folder / "report.json").write_bytes(DAMAGED[how])
    code, out, err = job("report", str(folder), **form)
    assert code == 0
    assert err.count("\n") == 1
    assert f"{folder}/report.json cannot be used" in err
    assert "killed" in out


def test_a_report_of_a_job_that_has_kept_none_yet_tells_only_what_the_store_knows(
    store: SqliteJobStore, folder: Path, job: Any
) -> None:
    """Times and rates are the job's, not the reporter's own; nothing is said of what it cannot see."""
    store.commit(Batch(facts={"account": json.dumps({"asked": 8, "got": 3, "results": 2})}))
    status = json.loads(job("report", str(folder), json=True)[1])["status"]
    assert status["finish_reason"] is None
    assert status["pages_per_s_mean"] * (status["at"] - status["started_at"]) == pytest.approx(3)
    shown = job("report", str(folder))[1]
    assert "RUNNING: what holds it back is not kept yet." in shown
    assert "1   1 wait\n" in shown


def test_a_damaged_report_spoils_no_page_to_be_written(
    store: SqliteJobStore, folder: Path, job: Any, tmp_path: Path
) -> None:
    store.close()
    (folder / "report.json").mkdir()
    code, out, err = job("report", str(folder), html=str(tmp_path / "report.html"))
    assert (code, err.count("\n")) == (0, 1)
    assert "Written to" in out
    assert "<html" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("content", [b"", b"no database " * 500])
def test_a_damaged_store_has_no_report(
    store: SqliteJobStore, folder: Path, job: Any, content: bytes
) -> None:
    """One line, and the code of a refusal."""
    store.close()
    (folder / "job.sqlite").write_bytes(content)
    code, out, err = job("report", str(folder))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert str(folder) in err


def test_scrapy_finds_the_command(scrapy_cli: Any) -> None:
    done = scrapy_cli("job", "status", "nowhere")
    assert (done.code, done.out) == (2, "")
    assert done.err == "scrapy job: nowhere: holds no job (there is no job.sqlite)\n"
