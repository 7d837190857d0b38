"""One process works on a job: a lock file that names its holder.

The rule it keeps: the kernel's lock (`flock`) decides, never the file's content, so a killed
holder's lock is free at once and a reused pid or a new host name (a restarted container) cannot
keep a job locked. The content only tells a person who holds it. Where the file system has no locks,
the content decides as well as it can.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Self

from .base import JobLocked, StoreBroken

if TYPE_CHECKING:
    from pathlib import Path

_PROBE_TRIES = 5
_PROBE_PAUSE_S = 0.02
_NO_LOCKS_HERE = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS})


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a job's lock.

    Attributes:
        since_at: Wall-clock seconds at which it took the lock.
        born: When the kernel started the process, in its own ticks; tells a reused pid. Empty where
            unknown.
    """

    pid: int
    host: str
    since_at: float
    spider: str = ""
    born: str = ""

    @classmethod
    def myself(cls, spider: str = "") -> Self:
        """This process, as of now."""
        pid = os.getpid()
        host = socket.gethostname()
        return cls(pid=pid, host=host, since_at=time.time(), spider=spider, born=_born(pid))

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since_at))
        spider = f" (spider {self.spider})" if self.spider else ""
        return f"process {self.pid} on {self.host}{spider}, since {since}"

    def may_live(self) -> bool:
        """Could this holder still be running? Another host's cannot be asked, so it could."""
        if self.host != socket.gethostname():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return not self.born or self.born == _born(self.pid)


class JobLock:
    """The lock of one job folder: one live `JobLock` at most holds it, over all processes."""

    def __init__(self, *, path: Path, spider: str = "") -> None:
        self._path = path
        self._spider = spider
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        """Does this object hold the lock?"""
        return self._fd is not None

    def acquire(self) -> None:
        """Take the lock, over a dead holder if need be.

        Raises:
            JobLocked: A living process has it; the message names it.
            StoreBroken: The lock file cannot be made.
        """
        while self._fd is None:
            fd = self._opened()
            try:
                self._lock(fd)
                if not _is_at(
                    fd, self._path
                ):  # its last holder unlinked it between our open and our lock
                    os.close(fd)
                    continue
            except BaseException:
                os.close(fd)
                raise
            self._fd = fd
        self._sign(self._fd)

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        fd, self._fd = self._fd, None
        if fd is None:
            return
        if _is_at(fd, self._path):
            with contextlib.suppress(OSError):
                self._path.unlink()
        os.close(fd)

    def _opened(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as e:
            raise StoreBroken(
                f"{self._path}: cannot be opened to lock the job: {e.strerror}"
            ) from e

    def _lock(self, fd: int) -> None:
        for tries_left in reversed(range(_PROBE_TRIES)):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as e:
                holder = _read(fd)
                lives = holder is not None and holder.may_live()
                if e.errno in _NO_LOCKS_HERE:
                    if not lives:
                        return
                elif e.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
                    raise StoreBroken(f"{self._path}: cannot be locked: {e.strerror}") from e
                elif (
                    not lives and tries_left
                ):  # `holder_of` looks from another process: gone at once
                    time.sleep(_PROBE_PAUSE_S)
                    continue
                raise JobLocked(
                    f"{self._path.parent}: {holder or 'another process'} works on this job. "
                    "Wait for it, stop it, or choose another JOBDIR."
                ) from e
            else:
                return

    def _sign(self, fd: int) -> None:
        text = json.dumps(asdict(Holder.myself(self._spider)))
        with contextlib.suppress(OSError):  # a full disk: the lock holds without a name
            os.ftruncate(fd, 0)
            os.pwrite(fd, text.encode(), 0)


def holder_of(path: Path) -> Holder | None:
    """Who holds the lock file *path* now? None: nobody. Changes nothing, makes no file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _read(fd) or Holder(pid=0, host="unknown", since_at=0.0)
        return None
    finally:
        os.close(fd)


def _read(fd: int) -> Holder | None:
    try:
        return Holder(**json.loads(os.pread(fd, 4096, 0)))
    except (OSError, ValueError, TypeError):
        return None


def _is_at(fd: int, path: Path) -> bool:
    try:
        there = path.stat()
    except OSError:
        return False
    here = os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _born(pid: int) -> str:
    """Start time of process *pid* in kernel ticks since boot, "" where it cannot be known."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:  # noqa: PTH123 (no Path for /proc)
            return f.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
