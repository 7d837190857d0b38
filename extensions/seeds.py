"""Seeds are read as they are needed: one block at a time, in a thread, however long the file.

A line that is no URL never ends a crawl: it is counted, the first ones are named with their line
number, and the rest is read on. What makes the whole file useless (missing, unreadable, empty, no
`url` column) is refused before anything is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import gzip
import io
import itertools
import json
import os
import stat
import sys
import threading
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .arguments import BadArgument, url_fault
from .policy.wording import plural

if TYPE_CHECKING:
    import logging
    from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator

_T = TypeVar("_T")

MAX_LINE_BYTES = 65_536
CHUNK_BYTES = 65_536
BLOCK_RECORDS = 500
NAMED_BAD_LINES = 10
STDIN = "-"
_USUAL_RECORD_BYTES = 50
COLUMN = "url"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UTF8_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True, frozen=True)
class Seed:
    """One URL, and the line that it stood in (the first line is 1)."""

    url: str
    line: int


@dataclass(slots=True, frozen=True)
class BadLine:
    """One line that is skipped, and why."""

    line: int
    why: str
    text: str = ""


@dataclass(slots=True, frozen=True)
class _Pause:
    """Standard input has nothing more at the moment: hand out what there is."""


Record = Seed | BadLine | _Pause


class SeedFile:
    """A file of URLs (or standard input), read block by block.

    `.csv` and `.jsonl` need a column `url`; every other name is one URL a line, blank lines and
    lines that begin with # are skipped. Each may be compressed (`.gz`). Text is UTF-8, with or
    without BOM; a line that is not is read as Latin-1.

    Attributes:
        name: As the user wrote it.
        bytes_total: Size of the file as stored; None for standard input and pipes.
        bytes_read: How far it was read, in the same count.
        records: Lines that were handed out, bad ones included.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.bytes_total: int | None = None
        self.bytes_read = 0
        self.records = 0
        stem, self._gzip = (name[:-3], True) if name.endswith(".gz") else (name, False)
        self._kind = Path(stem).suffix.lower()
        self._stdin = name == STDIN

    def check(self) -> None:
        """Refuse what can be seen to be useless without reading it all. Pipes are left untouched.

        Raises:
            BadArgument: Not there, no file, unreadable, empty, not text, or without a column `url`.
        """
        if self._stdin:
            return
        try:
            status = os.stat(self.name)  # noqa: PTH116 - the name may be a /dev/fd/N
            if stat.S_ISDIR(status.st_mode):
                raise BadArgument(f"seeds={self.name}: a folder; give a file")
            if not stat.S_ISREG(status.st_mode):
                return
            self.bytes_total = status.st_size
            with contextlib.closing(self._chunks()) as chunks:
                self._check_beginning(next((chunk for chunk in chunks if chunk), b""))
        except FileNotFoundError:
            raise BadArgument(f"seeds={self.name}: no such file") from None
        except (OSError, EOFError, zlib.error) as error:
            raise BadArgument(f"seeds={self.name}: {_reason(error)}") from None

    def _check_beginning(self, beginning: bytes) -> None:
        if not beginning:
            raise BadArgument(f"seeds={self.name}: the file is empty")
        if beginning.startswith(_UTF16):
            raise BadArgument(f"seeds={self.name}: UTF-16 text; save it as UTF-8")
        if self._kind == ".csv":
            _csv_columns(self.name, _text(beginning.removeprefix(_UTF8_BOM).splitlines()[0]))

    async def blocks(self) -> AsyncIterator[list[Seed | BadLine]]:
        """All records in order, some hundreds at a time, read when they are asked for.

        Raises:
            BadArgument: The file cannot be read on; what came before stands.
        """
        records = self._records()
        while block := await _in_daemon_thread(lambda: self._take(records)):
            self.records += len(block)
            yield block
        self.bytes_read = self.bytes_total or self.bytes_read

    @property
    def left(self) -> int | None:
        """About how many lines are not handed out yet, by the bytes; None if nothing tells."""
        if self.bytes_total is None:
            return None
        a_record = self.bytes_read / self.records if self.records else _USUAL_RECORD_BYTES
        return max(0, round((self.bytes_total - self.bytes_read) / a_record))

    def _take(self, records: Iterator[Record]) -> list[Seed | BadLine]:
        block: list[Seed | BadLine] = []
        try:
            for record in records:
                if not isinstance(record, _Pause):
                    block.append(record)
                if len(block) >= BLOCK_RECORDS or (block and isinstance(record, _Pause)):
                    break
        except (OSError, EOFError, zlib.error) as error:
            raise BadArgument(f"seeds={self.name}: cannot be read on: {_reason(error)}") from None
        return block

    def _records(self) -> Iterator[Record]:
        lines = self._counted(_lines(self._chunks()))
        if self._kind == ".csv":
            return _csv_records(self.name, lines)
        if self._kind in {".jsonl", ".ndjson"}:
            return _records_of(lines, _jsonl_url)
        return _records_of(lines, _plain_url)

    def _chunks(self) -> Generator[bytes]:
        """The bytes as they come; b"" after each when reading on could wait for somebody."""
        if self._stdin:
            descriptor = sys.stdin.fileno()
            while chunk := os.read(descriptor, CHUNK_BYTES):  # no lock, unlike sys.stdin.buffer
                yield from (chunk, b"")
            return
        with Path(self.name).open("rb", buffering=0) as raw:
            if self._gzip:
                with gzip.GzipFile(fileobj=io.BufferedReader(raw)) as unzipped:
                    while chunk := unzipped.read1(CHUNK_BYTES):
                        self.bytes_read = raw.tell()
                        yield chunk
                return
            while chunk := raw.read(CHUNK_BYTES):
                yield chunk

    def _counted(self, lines: Iterator[bytes | _Pause | None]) -> Iterator[bytes | _Pause | None]:
        """The same lines; what they take in a plain file is what was read of it."""
        for line in lines:
            if isinstance(line, bytes) and not self._gzip:
                self.bytes_read += len(line) + 1
            yield line


class BadLines:
    """Counts what is skipped: the first ones are logged one by one, the rest is summed up."""

    def __init__(self, *, source: str, log: logging.Logger | logging.LoggerAdapter[Any]) -> None:
        self._source = source
        self._log = log
        self._reasons: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """How many lines were skipped."""
        return self._reasons.total()

    @property
    def skipped(self) -> str:
        """Their number in words."""
        return f"{plural(self.count, 'line')} skipped"

    def add(self, bad: BadLine) -> None:
        """Count *bad*, and name it if it is among the first."""
        self._reasons[bad.why] += 1
        if self.count <= NAMED_BAD_LINES:
            self._log.warning("%s line %d skipped: %s", self._source, bad.line, _shown(bad))

    def sum_up(self, good: int) -> None:
        """Log one line for all of them; *good* is the number of URLs read."""
        if self._reasons:
            reasons = ", ".join(f"{n} {why}" for why, n in self._reasons.most_common(5))
            self._log.warning(
                "%s: %s, %s read (%s)",
                self._source,
                self.skipped,
                plural(good, "URL"),
                reasons,
            )


def _shown(bad: BadLine) -> str:
    text = ascii(bad.text[:80]) if bad.text else ""
    return f"{bad.why}: {text}" if text else bad.why


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes | _Pause | None]:
    """Lines without their ends; None for one over the bound, which is never held whole."""
    rest, cut, first = b"", False, True
    for chunk in chunks:
        if not chunk:
            yield _Pause()
            continue
        if first:
            chunk = chunk.removeprefix(_UTF8_BOM)  # noqa: PLW2901
            first = False
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield None if cut or len(line) > MAX_LINE_BYTES else line.removesuffix(b"\r")
            cut = False
        if cut or len(rest) > MAX_LINE_BYTES:
            rest, cut = b"", True
    if cut or rest:
        yield None if cut else rest.removesuffix(b"\r")


def _records_of(
    lines: Iterable[bytes | _Pause | None], url_of: Callable[[str], str | BadLine | None]
) -> Iterator[Record]:
    number = 0
    for line in lines:
        if isinstance(line, _Pause):
            yield line
            continue
        number += 1
        if line is None:
            yield BadLine(number, f"longer than {MAX_LINE_BYTES} bytes")
            continue
        found = url_of(_text(line).strip())
        if isinstance(found, BadLine):
            yield BadLine(number, found.why, found.text)
        elif found is not None:
            yield _seed(found, number)


def _seed(url: str, line: int) -> Record:
    fault = url_fault(url)
    return BadLine(line, fault, url) if fault else Seed(url, line)


def _plain_url(text: str) -> str | BadLine | None:
    return text if text and not text.startswith("#") else None


def _jsonl_url(text: str) -> str | BadLine | None:
    if not text:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return BadLine(0, "no JSON", text)
    url = value.get(COLUMN) if isinstance(value, dict) else None
    return url.strip() if isinstance(url, str) else BadLine(0, f'no text "{COLUMN}" in it', text)


def _csv_columns(name: str, header: str) -> tuple[str, int]:
    """The delimiter that the header line is written with, and the place of the column `url`."""
    columns: list[str] = []
    for delimiter in ",;\t":
        columns = [c.strip().lower() for c in next(csv.reader([header], delimiter=delimiter), [])]
        if COLUMN in columns:
            return delimiter, columns.index(COLUMN)
    shown = ascii(header[:80])[1:-1]
    raise BadArgument(f'seeds={name}: no column "{COLUMN}"; its first line is: {shown}')


def _csv_records(name: str, lines: Iterable[bytes | _Pause | None]) -> Iterator[Record]:
    too_long: list[int] = []
    number = itertools.count(1)

    def texts() -> Iterator[str]:
        for line in lines:
            if isinstance(line, _Pause):
                continue
            at = next(number)
            if line is None:
                too_long.append(at)
            yield "\n" if line is None else _text(line).replace("\0", "\ufffd") + "\n"

    rows_text = texts()
    delimiter, column = _csv_columns(name, next(rows_text, ""))
    reader = csv.reader(rows_text, delimiter=delimiter)
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            yield BadLine(reader.line_num + 1, f"no CSV: {error}")
            continue
        while too_long:
            yield BadLine(too_long.pop(0), f"longer than {MAX_LINE_BYTES} bytes")
        if row is None:
            return
        if len(row) > column:
            yield _seed(row[column].strip(), reader.line_num + 1)
        elif row:
            yield BadLine(reader.line_num + 1, f'no column "{COLUMN}"', ",".join(row))


def _in_daemon_thread(call: Callable[[], _T]) -> asyncio.Future[_T]:
    """Run *call* in a thread that cannot keep the process alive: standard input may stay silent."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def settle(result: _T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        try:
            outcome: tuple[_T | None, BaseException | None] = (call(), None)
        except BaseException as error:  # noqa: BLE001 - it is raised where the future is awaited
            outcome = (None, error)
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name="sluice-seeds", daemon=True).start()
    return future
