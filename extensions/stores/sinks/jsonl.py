"""Results as JSON Lines: one strict JSON text a line, appended, each once.

The rule it keeps: a line that was there before this job is never touched, and a line of this job is
there once. The mark is the byte offset after the last durable line. What lies behind the mark at a
start is a line that the job will bring again: it is cut, if this job was the last to write;
otherwise it is compared with what comes and not written twice. A torn last line of somebody else is
moved to ``NAME.torn``, not deleted.

Two small files stand beside the output: the lock names its holder and remembers who wrote last, and
where.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import socket
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from .base import PoisonRow, SinkDown, SinkGone, Written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .base import Row

logger = logging.getLogger(__name__)

_BLOCK_BYTES = 64 * 1024
_MAX_LINE_BYTES = 256 * 1024 * 1024  # a longer last "line" shows that the file is not JSON Lines
_MAX_TURNS = 50  # jobs whose last turn in a shared file is remembered
_DOWN = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.ESTALE,
    errno.EINTR,
    errno.EAGAIN,
    errno.ENOMEM,
}


class JsonLinesSink:
    """A file of JSON lines, opened for appending, with one writer at a time."""

    def __init__(self, *, path: Path, job: str) -> None:
        self.name = f"jsonl:{path}"
        self._path = path
        self._job = job
        self._fd = -1
        self._end = 0  # where the next line goes; all before it is durable
        self._there: deque[bytes] = (
            deque()
        )  # lines of this job behind its mark that could not be cut
        self._there_at = 0  # where the first of them begins

    def open(self, mark: str | None) -> None:
        """Take the lock, mend the end of the file, and stand behind the last line."""
        with self._failures("open"):
            if self._fd < 0:
                self._open_file()
            size = os.fstat(self._fd).st_size
            history = _History.read(self._beside("history"))
            start, again = _read_mark(mark)
            if start is None:
                start = history.start_of(self._job)
            if start is not None and not self._is_line_end(start, size):
                logger.warning(
                    "%s was moved or cut since this job wrote it: going on at its end", self._path
                )
                start, again = None, None
            if start is not None and history.last == self._job:
                os.ftruncate(self._fd, start)
                self._end = start
            else:
                self._end = self._mend_tail(size)
                if start is not None and again is None:
                    again = (start, history.end_of(self._job) or self._end)
                history.take_over(self._job, self._end)
                history.write()
            self._find_again(again)
            os.fsync(self._fd)

    def write(self, rows: Sequence[Row]) -> Written:
        """Append *rows*, all or none of them, and make them durable."""
        if self._fd < 0:
            raise SinkDown(f"{self._path} is not open")
        lines, poison = self._encode(rows)
        with self._failures("write to"):
            before = os.fstat(self._fd)
            if before.st_nlink == 0:
                self._reopen()
            elif before.st_size < self._end:
                logger.warning("%s was cut by somebody: going on at its end", self._path)
                self._go_on_at_its_end()
            self._append(lines)
            if os.fstat(self._fd).st_nlink == 0:
                raise SinkDown(f"{self._path} was deleted while it was written: writing it again")
        mark: dict[str, Any] = {"bytes": self._end}
        if self._there:
            mark["again"] = [self._there_at, self._there_at + sum(map(len, self._there))]
        return Written(json.dumps(mark), poison)

    def close(self) -> None:
        """Close the file, which releases the lock."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                self._note_holder(None)
            os.close(self._fd)
            self._fd = -1

    # -- the file

    def _open_file(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        created = not self._path.exists()
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in {errno.EAGAIN, errno.EACCES}:
                raise SinkGone(
                    f"{self._path} is being written by {self._holder()}: "
                    "wait for it, or give this crawl a file of its own in SLUICE_RESULTS"
                ) from None
            raise
        self._fd = fd
        self._note_holder({"pid": os.getpid(), "host": socket.gethostname(), "job": self._job})
        if created:
            self._sync_folder()

    def _reopen(self) -> None:
        """Somebody deleted the file: begin a new one."""
        logger.warning("%s was deleted: writing a new one", self._path)
        os.close(self._fd)
        self._fd = -1
        self._open_file()
        self._go_on_at_its_end()

    def _go_on_at_its_end(self) -> None:
        """The file is not what this job left: its next line comes after the last whole one."""
        self._end = self._mend_tail(os.fstat(self._fd).st_size)
        self._there.clear()
        history = _History.read(self._beside("history"))
        history.take_over(self._job, self._end)
        history.write()

    def _append(self, lines: list[bytes]) -> None:
        """Write and sync; on a failure the file is as long as before."""
        lines = lines[self._count_again(lines) :]
        if not lines:
            return
        view = memoryview(b"".join(lines))
        try:
            done = 0
            while done < len(view):
                done += os.write(self._fd, view[done:])
            os.fdatasync(self._fd)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._end)
            raise
        self._end += len(view)

    def _encode(self, rows: Sequence[Row]) -> tuple[list[bytes], list[PoisonRow]]:
        lines, poison = [], []
        for row, text in rows:
            try:
                line = text.encode()
            except UnicodeEncodeError:
                poison.append(
                    PoisonRow(row, "holds half a surrogate pair, which no UTF-8 file can hold")
                )
                continue
            if b"\n" in line or b"\r" in line:
                poison.append(PoisonRow(row, "holds a line break outside of a string"))
                continue
            lines.append(line + b"\n")
        return lines, poison

    def _is_line_end(self, offset: int, size: int) -> bool:
        return offset == 0 or (offset <= size and os.pread(self._fd, 1, offset - 1) == b"\n")

    def _mend_tail(self, size: int) -> int:
        """See that the file ends with a whole line; where it ends then."""
        start = self._last_line_start(size)
        if start == size:
            return size
        tail = os.pread(self._fd, size - start, start)
        if _is_json_object(tail):  # whole, only the line break is missing
            os.write(self._fd, b"\n")
            return size + 1
        torn = self._path.with_name(self._path.name + ".torn")
        with torn.open("ab") as file:
            file.write(tail + b"\n")
        os.ftruncate(self._fd, start)
        logger.warning(
            "%s ended in a torn line of %d bytes: moved to %s", self._path, len(tail), torn
        )
        return start

    def _last_line_start(self, size: int) -> int:
        position = size
        while position > 0:
            step = min(_BLOCK_BYTES, position)
            position -= step
            newline = os.pread(self._fd, step, position).rfind(b"\n")
            if newline >= 0:
                return position + newline + 1
            if size - position > _MAX_LINE_BYTES:
                raise SinkGone(f"{self._path} is not JSON Lines: give SLUICE_RESULTS another file")
        return 0

    def _find_again(self, again: tuple[int, int] | None) -> None:
        """Remember the lines that this job wrote behind its mark, where others wrote after them."""
        start, end = again or (0, 0)
        data = os.pread(self._fd, max(0, min(end - start, _MAX_LINE_BYTES)), start)
        self._there = deque(line + b"\n" for line in data.split(b"\n")[:-1])
        self._there_at = start

    def _count_again(self, lines: list[bytes]) -> int:
        """How many of the first *lines* are in the file already."""
        count = 0
        while self._there and count < len(lines):
            if lines[count] != self._there[0]:
                self._there.clear()
                break
            self._there_at += len(self._there.popleft())
            count += 1
        return count

    def _sync_folder(self) -> None:
        fd = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    # -- who writes, and who wrote last

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(f".{self._path.name}.{suffix}")

    def _note_holder(self, holder: dict[str, Any] | None) -> None:
        path = self._beside("writer")
        if holder is None:
            path.unlink(missing_ok=True)
        else:
            _replace(path, holder)

    def _holder(self) -> str:
        try:
            holder = json.loads(self._beside("writer").read_text())
            return f"process {holder['pid']} on {holder['host']} (job {holder['job']})"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"

    @contextlib.contextmanager
    def _failures(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            kind = SinkDown if error.errno in _DOWN else SinkGone
            raise kind(f"cannot {doing} {self._path}: {error.strerror or error}") from error


@dataclass
class _History:
    """Which jobs wrote to a file, each from where to where in its last turn."""

    path: Path
    last: str | None = None
    turns: dict[str, tuple[int, int | None]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            value = json.loads(path.read_text())
            turns = {str(job): (int(start), end) for job, (start, end) in value["turns"].items()}
            return cls(path, str(value["last"]), turns)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(path)

    def start_of(self, job: str) -> int | None:
        return self.turns[job][0] if job in self.turns else None

    def end_of(self, job: str) -> int | None:
        return self.turns[job][1] if job in self.turns else None

    def take_over(self, job: str, at: int) -> None:
        if self.last in self.turns:
            self.turns[self.last] = (self.turns.pop(self.last)[0], at)
        self.turns.pop(job, None)
        self.turns[job] = (at, None)
        self.last = job
        for old in list(self.turns)[:-_MAX_TURNS]:
            del self.turns[old]

    def write(self) -> None:
        _replace(self.path, {"last": self.last, "turns": self.turns})


def _read_mark(mark: str | None) -> tuple[int | None, tuple[int, int] | None]:
    """The offset in a mark, and where lines stand that come again."""
    if mark is None:
        return None, None
    try:
        value = json.loads(mark)
        again = value.get("again")
        return int(value["bytes"]), None if again is None else (int(again[0]), int(again[1]))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None, None


def _is_json_object(tail: bytes) -> bool:
    try:
        return isinstance(json.loads(tail), dict)
    except (ValueError, RecursionError):
        return False


def _replace(path: Path, value: dict[str, Any]) -> None:
    """Write a small file so that a reader sees the old or the new one, whole."""
    new = path.with_name(path.name + ".new")
    with new.open("w") as file:
        file.write(json.dumps(value))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
