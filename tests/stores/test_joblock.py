"""One process works on a job, and a refused one learns who does."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from extensions.stores.base import JobLocked, StoreBroken
from extensions.stores.joblock import Holder, JobLock, holder_of

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import sys
from pathlib import Path
from extensions.stores.joblock import JobLock
JobLock(path=Path(sys.argv[1]), spider="shop").acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "job.lock"


def test_the_refusal_names_process_host_spider_and_time(path: Path) -> None:
    first = JobLock(path=path, spider="books")
    first.acquire()
    with pytest.raises(JobLocked) as refused:
        JobLock(path=path).acquire()
    text = str(refused.value)
    assert f"process {os.getpid()} on {socket.gethostname()} (spider books), since 20" in text
    first.release()


def test_a_released_lock_leaves_no_file_and_is_free(path: Path) -> None:
    lock = JobLock(path=path)
    lock.acquire()
    assert lock.held
    lock.release()
    lock.release()
    assert not path.exists()
    again = JobLock(path=path)
    again.acquire()
    again.release()


def test_another_process_is_refused_until_the_holder_is_killed(path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(JobLocked, match=f"process {holder.pid} .*spider shop"):
            JobLock(path=path).acquire()
        found = holder_of(path)
        assert found
        assert (found.pid, found.spider) == (holder.pid, "shop")
        holder.kill()
    assert path.exists()
    assert holder_of(path) is None
    lock = JobLock(path=path)
    lock.acquire()
    assert json.loads(path.read_text())["pid"] == os.getpid()
    lock.release()


@pytest.mark.parametrize(
    "content", ["", "{", '{"pid": 1}', '{"pid": 1, "host": "elsewhere", "since_at": 0}']
)
def test_content_alone_locks_nothing(path: Path, content: str) -> None:
    path.write_text(content)
    assert holder_of(path) is None
    lock = JobLock(path=path)
    lock.acquire()
    lock.release()


def test_looking_makes_no_file(path: Path) -> None:
    assert holder_of(path) is None
    assert not path.exists()


def test_a_reused_pid_is_told_from_the_holder() -> None:
    me = Holder.myself()
    assert me.may_live()
    assert not Holder(pid=me.pid, host=me.host, since_at=0.0, born="1").may_live()
    assert Holder(pid=me.pid, host="elsewhere", since_at=0.0).may_live()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreBroken, match="nowhere"):
        JobLock(path=tmp_path / "nowhere" / "job.lock").acquire()
