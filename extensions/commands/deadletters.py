"""``scrapy deadletters``: see, replay, export and purge what crawls gave up."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand
from scrapy.utils.conf import arglist_to_dict

from ..config import REDIS_SCHEMES, BadSetting, Config
from ..letterplaces import places
from ..policy.redact import redact_url
from ..stores.deadletter_db import DeadLetterError
from ..stores.deadletter_filters import LetterFilter, age_s
from . import deadletter_text as text
from .refusal import Refused, action_of, new_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from ..stores.deadletter_store import DeadLetters

_ACTIONS = ("list", "show", "replay", "export", "purge")
_CMDLINE_PRIORITY = 40


class Command(ScrapyCommand):
    """The command, as Scrapy finds it."""

    requires_project = True
    requires_crawler_process = False

    def syntax(self) -> str:
        """One line of usage."""
        return f"<{'|'.join(_ACTIONS)}> [ID ...] [options]"

    def short_desc(self) -> str:
        """What `scrapy -h` says."""
        return "List, show, replay, export or purge what crawls gave up"

    def long_desc(self) -> str:
        """What `scrapy deadletters -h` says."""
        return (
            "list: one line each, newest first. show: all of some. replay: fetch them again, with "
            "their attempts reset; the crawl of that spider takes them if one is running, else one "
            "is started for them alone. export: JSON Lines. purge: delete. Filters that are given "
            "must all agree; without any, all are meant (purge then wants --all)."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Scrapy's global options and our own."""
        super().add_options(parser)
        group = parser.add_argument_group("Filters")
        group.add_argument("--spider", metavar="NAME", help="given up by this spider")
        group.add_argument("--domain", metavar="HOST", help="of this host or a host under it")
        group.add_argument("--reason", metavar="TEXT", help="with this in the reason")
        group.add_argument("--url", metavar="TEXT", help="with this in the URL")
        group.add_argument("--older-than", metavar="AGE", help="failed last before 2h, 3d ...")
        group.add_argument("--newer-than", metavar="AGE", help="failed last within 2h, 3d ...")
        group = parser.add_argument_group("Output and effect")
        group.add_argument(
            "--redis", metavar="URL", nargs="?", const="redis",
            help="those that workers share in Redis: at this URL, or where REDIS_URL says; "
            "this needs not be said where the settings say it",
        )  # fmt: skip
        group.add_argument("--json", action="store_true", help="list, show: a JSON array")
        group.add_argument("--limit", type=int, help="list: at most so many lines (default 50)")
        group.add_argument("--offset", type=int, default=0, help="list: leave out the first")
        group.add_argument("-o", "--output", metavar="FILE", help="export: to this new file")
        group.add_argument("--all", action="store_true", help="purge: without any filter")
        group.add_argument("--later", action="store_true", help="replay: only mark them")
        group.add_argument(
            "-a", dest="spargs", action="append", default=[], metavar="NAME=VALUE",
            help="replay: a spider argument beside the stored ones (passwords are not stored)",
        )  # fmt: skip

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Do it; a refusal is one line and exit code 2."""
        try:
            self._run(args, opts)
        except (Refused, DeadLetterError) as error:
            print(f"scrapy deadletters: {error}", file=sys.stderr)
            self.exitcode = 2
        except BrokenPipeError:  # `| head` has seen enough
            sys.stderr.close()

    def _run(self, args: list[str], opts: argparse.Namespace) -> None:
        action, words = action_of(args, _ACTIONS)
        where = _filter_of(words, opts)
        if action == "show" and not words:
            raise Refused("show needs the number of a dead letter; list gives them")
        if action == "purge" and where == LetterFilter() and not opts.all:
            raise Refused("purge without a filter deletes everything: say --all if that is meant")
        files = self._places(where.spider, opts.redis)
        if where.ids and len(files) > 1:
            files = _the_one(files, where)
        getattr(self, f"_{action}")(files, where, opts)

    def _places(self, spider: str | None, redis: str | None) -> list[DeadLetters]:
        assert self.settings is not None
        if redis is not None and redis != "redis" and not redis.startswith(REDIS_SCHEMES):
            raise Refused("--redis wants a redis:// URL as its value (or stands at the end)")
        try:
            config = Config.from_settings(self.settings)
            return places(self.settings, config, spider=spider, redis=redis)
        except BadSetting as error:
            raise Refused(str(error)) from None

    # -- one method an action

    def _list(
        self, files: list[DeadLetters], where: LetterFilter, opts: argparse.Namespace
    ) -> None:
        limit = opts.limit if opts.limit is not None else None if opts.json else 50
        total = 0
        lines: list[Any] = []
        for file in files:
            with file:
                total += file.count(where)
                want = None if limit is None else limit + opts.offset
                lines += file.rows(where, limit=want)
        lines.sort(key=lambda row: row.last_at, reverse=True)
        end = None if limit is None else opts.offset + limit
        shown = lines[opts.offset : end]
        if opts.json:
            text.print_array(text.summary(row) for row in shown)
            return
        text.print_table(shown)
        left = total - opts.offset - len(shown)
        if left > 0:
            print(f"... and {left:,} more (--limit, --offset)")

    def _show(
        self, files: list[DeadLetters], where: LetterFilter, opts: argparse.Namespace
    ) -> None:
        rows = [row for file in files for row in _all(file, where)]
        if missing := set(where.ids) - {row.id for row in rows}:
            raise Refused(f"there is no dead letter {', '.join(map(str, sorted(missing)))}")
        if opts.json:
            text.print_array(text.everything(row) for row in rows)
        else:
            for row in rows:
                text.print_record(row)

    def _export(
        self, files: list[DeadLetters], where: LetterFilter, opts: argparse.Namespace
    ) -> None:
        rows = (row for file in files for row in _all(file, where))
        if opts.output is None:
            text.print_lines(map(text.everything, rows), sys.stdout)
            return
        with new_file(opts.output) as out:
            count = text.print_lines(map(text.everything, rows), out)
        print(f"{count:,} dead letters written to {opts.output}")

    def _purge(self, files: list[DeadLetters], where: LetterFilter, _: argparse.Namespace) -> None:
        count = 0
        for file in files:
            with file:
                count += file.purge(where)
        print(f"{count:,} dead letters deleted")

    def _replay(
        self, files: list[DeadLetters], where: LetterFilter, opts: argparse.Namespace
    ) -> None:
        extra = _arguments(opts.spargs)
        requested = 0
        to_run: list[tuple[str, str]] = []
        for file in files:
            with file:
                done = file.request_replay(where)
                if done.not_replayable:
                    print(f"{done.not_replayable:,} are items, not requests: see them with export")
                if done.busy:
                    print(f"{done.busy:,} are being replayed already")
                for (spider, arguments), count in done.groups.items():
                    requested += count
                    if file.running(spider, arguments):
                        print(f"{count:,} go to the running crawl of {spider}")
                    elif opts.later:
                        print(f"{count:,} wait for the next crawl of {spider}")
                    else:
                        to_run.append((spider, arguments))
        if not requested:
            print("nothing to replay")
        for spider, arguments in to_run:
            code = self._crawl(spider, {**text.arguments(arguments), **extra}, opts.redis)
            self.exitcode = self.exitcode or code

    def _crawl(self, spider: str, arguments: dict[str, str], redis: str | None) -> int:
        """Run *spider* for its requested rows alone, as anybody could on a command line."""
        assert self.settings is not None
        given = {
            name: self.settings[name]
            for name in self.settings
            if self.settings.getpriority(name) == _CMDLINE_PRIORITY
        }
        # A job of its own: the project's JOBDIR may hold other work that is not meant now.
        given = {"JOBDIR": "", **given, "SLUICE_REPLAY_ONLY": "True"}
        if redis is not None:
            given["SLUICE_DEAD_LETTERS"] = redis
        words = ["crawl", spider]
        for name, value in arguments.items():
            words += ["-a", f"{name}={value}"]
        for name, value in given.items():
            words += ["-s", f"{name}={value}"]
        print("scrapy", shlex.join(map(_shown, words)), flush=True)
        process = subprocess.Popen([sys.executable, "-m", "scrapy", *words])  # noqa: S603
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue  # the crawl got it too, and ends in its own way


def _shown(word: str) -> str:
    """*word* of a command line, without credentials."""
    name, sign, _ = word.partition("=")
    return f"{name}=..." if sign and name == "REDIS_PARAMS" else redact_url(word)


def _filter_of(words: list[str], opts: argparse.Namespace) -> LetterFilter:
    ids = []
    for word in words:
        if not (word.isascii() and word.isdigit()):
            raise Refused(f"{word!r} is neither an option nor the number of a dead letter")
        ids.append(int(word))
    try:
        older, newer = (
            None if given is None else age_s(given) for given in (opts.older_than, opts.newer_than)
        )
    except ValueError as error:
        raise Refused(str(error)) from None
    return LetterFilter(
        ids=tuple(ids),
        spider=opts.spider,
        domain=opts.domain,
        reason=opts.reason,
        url=opts.url,
        older_than_s=older,
        newer_than_s=newer,
    )


def _the_one(files: list[DeadLetters], where: LetterFilter) -> list[DeadLetters]:
    """The file that the numbers are of; numbers count in each file."""
    holding = []
    for file in files:
        with file:
            if file.count(LetterFilter(ids=where.ids)):
                holding.append(file)
    if len(holding) > 1:
        names = ", ".join(file.place for file in holding)
        raise Refused(f"the numbers are in several places ({names}): add --spider")
    return holding


def _all(file: DeadLetters, where: LetterFilter) -> Iterator[Any]:
    with file:
        yield from file.rows(where, newest_first=False)


def _arguments(given: list[str]) -> dict[str, str]:
    try:
        return arglist_to_dict(given)
    except ValueError:
        raise Refused("-a wants NAME=VALUE") from None
