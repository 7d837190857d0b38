"""``scrapy job``: where the job in a JOBDIR stands, what it still holds, and its end."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand

from .. import report
from ..jobreport import job_report
from ..overview import URL_FILE
from ..report import FILE
from ..reportmarkdown import markdown_report
from ..reporttext import text_report
from ..stores.base import State, StoreError
from ..stores.deadletters import DeadLetterError
from ..stores.joblock import JobLock
from ..stores.sqlite import LOCK_FILE, STORE_FILE
from ..stores.sqlitereader import STATE_NAMES, JobReader
from ..whereabouts import letter_files, places
from . import job_text as text
from .refusal import Refused, action_of, new_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

_ACTIONS = ("status", "report", "export", "clean")
_FILES_OF_A_JOB = (
    f"{STORE_FILE}-wal",
    f"{STORE_FILE}-shm",
    STORE_FILE,
    "spider.state",
    FILE,
    URL_FILE,
)


class Command(ScrapyCommand):
    """The command, as Scrapy finds it."""

    requires_project = True
    requires_crawler_process = False

    def syntax(self) -> str:
        """One line of usage."""
        return f"<{'|'.join(_ACTIONS)}> JOBDIR [options]"

    def short_desc(self) -> str:
        """What `scrapy -h` says."""
        return "Show, report, export or delete the job in a JOBDIR"

    def long_desc(self) -> str:
        """What `scrapy job -h` says."""
        return (
            "status: who works on it, what is pending, in flight, delayed, done, and what has not "
            "yet left it; with --url, where that URL is. report: verdict, account, what held it "
            "back, what is lost, what next. export: the requests it still holds, as "
            "JSON Lines. clean: delete the job; the next crawl begins anew. All but clean may "
            "be used while a crawl works on the job; clean refuses then."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Scrapy's global options and our own."""
        super().add_options(parser)
        group = parser.add_argument_group("Job")
        group.add_argument("--json", action="store_true", help="status, report: as a JSON object")
        group.add_argument("--url", metavar="URL", help="status: where this URL is")
        group.add_argument("--html", metavar="FILE", help="report: as one HTML file")
        group.add_argument("--markdown", action="store_true", help="report: as Markdown")
        group.add_argument(
            "--if-incomplete", action="store_true", help="report: nothing if nothing is missing"
        )
        group.add_argument("-o", "--output", metavar="FILE", help="export: to this new file")
        group.add_argument(
            "--force", action="store_true", help="clean: also what no sink or file has yet"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Do it; a refusal is one line and exit code 2."""
        try:
            self._run(args, opts)
        except (Refused, StoreError, DeadLetterError) as error:
            print(f"scrapy job: {error}", file=sys.stderr)
            self.exitcode = 2
        except BrokenPipeError:  # `| head` has seen enough
            sys.stderr.close()

    def _run(self, args: list[str], opts: argparse.Namespace) -> None:
        action, words = action_of(args, _ACTIONS)
        if len(words) != 1:
            raise Refused(f"{action} needs one folder, the crawl's JOBDIR")
        actions: dict[str, Callable[[Path, argparse.Namespace], None]] = {
            "status": self._status,
            "report": self._report,
            "export": self._export,
            "clean": self._clean,
        }
        actions[action](Path(words[0]), opts)

    # -- one method an action ----------------------------------------------------------------------

    def _status(self, folder: Path, opts: argparse.Namespace) -> None:
        with JobReader(folder) as job:
            if opts.url is None:
                summary = job.summary()
                print(text.as_json(summary) if opts.json else text.as_text(str(folder), summary))
                return
            found = self._where(job, opts.url)
        if opts.json:
            print(json.dumps({"url": opts.url, "places": found}))
        else:
            print(text.places(opts.url, found))

    def _report(self, folder: Path, opts: argparse.Namespace) -> None:
        try:
            data = job_report(folder)
            written = _written(data, opts)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a damaged file, or another version's, leads to
            why = error if isinstance(error, ValueError | OSError) else "its form is another"
            print(
                f"scrapy job: {folder / FILE} cannot be used ({why}): this is what the store alone knows",
                file=sys.stderr,
            )
            data = job_report(folder, kept=False)
            written = _written(data, opts)
        if opts.if_incomplete and report.is_complete(data):
            return
        if opts.html is None:
            print(written, end="")
            return
        try:
            Path(opts.html).write_text(written, encoding="utf-8")
        except OSError as error:
            raise Refused(f"{opts.html}: {error.strerror}") from None
        print(f"{report.verdict(data)} Written to {opts.html}")

    def _where(self, job: JobReader, url: str) -> list[dict[str, Any]]:
        assert self.settings is not None
        pattern = self.settings.get("SLUICE_DEAD_LETTERS", "deadletters/%(spider)s.sqlite")
        try:
            return places(job, url, letter_files(pattern))
        except ValueError as error:
            raise Refused(f"--url: {error}") from None

    def _export(self, folder: Path, opts: argparse.Namespace) -> None:
        with JobReader(folder) as job:
            if opts.output is None:
                text.print_requests(job.requests(), sys.stdout)
                return
            with new_file(opts.output) as out:
                count = text.print_requests(job.requests(), out)
        print(f"{count:,} requests written to {opts.output}")

    def _clean(self, folder: Path, opts: argparse.Namespace) -> None:
        if not (folder / STORE_FILE).exists():
            raise Refused(f"{folder}: holds no job (there is no {STORE_FILE})")
        lock = JobLock(path=folder / LOCK_FILE, spider="scrapy job clean")
        lock.acquire()
        try:
            left = "unread" if opts.force else _what_would_be_lost(folder)
            for name in _FILES_OF_A_JOB:
                (folder / name).unlink(missing_ok=True)
        finally:
            lock.release()
        if not any(folder.iterdir()):
            folder.rmdir()
        print(f"{folder}: deleted" if opts.force else f"{folder}: deleted ({left})")


def _written(data: dict[str, Any], opts: argparse.Namespace) -> str:
    """The report in the form that was asked for."""
    if opts.html is not None:
        from ..reporthtml import html  # noqa: PLC0415 - few ask for it

        return html(data)
    if opts.json:
        report.verdict(data)  # what cannot be told is not handed out either
        return json.dumps(data) + "\n"
    return markdown_report(data) if opts.markdown else text_report(data)


def _what_would_be_lost(folder: Path) -> str:
    """What a job holds, in words; refuses where that is more than requests to fetch.

    Raises:
        Refused: Results or dead letters have not left it yet.
    """
    with JobReader(folder) as job:
        summary = job.summary(busiest=0)
        tally = summary.tally
    if tally.outbox or tally.dead:
        raise Refused(
            f"{folder}: {tally.outbox:,} results and {tally.dead:,} dead letters have not left it "
            "yet. Let a crawl with this JOBDIR end, or say --force to lose them"
        )
    waiting = tally.pending + tally.window + tally.leased + tally.delayed + tally.held
    return f"{text.done(summary):,} done, {waiting:,} not fetched"


assert set(STATE_NAMES) == set(State)
