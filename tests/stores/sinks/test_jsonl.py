"""A JSON Lines file is appended to, each line once, whatever happened to the process before."""

import errno
import json
import os

import pytest

from extensions.stores.sinks import JsonLinesSink, SinkDown, SinkGone


def row(number, **fields):
    return number, json.dumps({"n": number, **fields}, ensure_ascii=False)


def rows(first, last, **fields):
    return [row(number, **fields) for number in range(first, last + 1)]


def numbers(path):
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    return [json.loads(line)["n"] for line in lines]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results" / "shop.jsonl"


@pytest.fixture
def open_sink(path):
    sinks = []

    def make(job="a", mark=None):
        sink = JsonLinesSink(path=path, job=job)
        sink.open(mark)
        sinks.append(sink)
        return sink

    yield make
    for sink in sinks:
        sink.close()


def die(sink):
    """What a kill leaves: no tidying, only the closed file."""
    os.close(sink._fd)
    sink._fd = -1


def test_rows_are_appended_as_lines(open_sink, path):
    sink = open_sink()
    mark = sink.write(rows(1, 2)).mark
    assert json.loads(mark) == {"bytes": path.stat().st_size}
    sink.write(rows(3, 3))
    assert numbers(path) == [1, 2, 3]


def test_a_crash_after_the_write_and_before_the_mark_repeats_nothing(open_sink, path):
    sink = open_sink()
    mark = sink.write(rows(1, 2)).mark
    sink.write(rows(3, 4))
    die(sink)
    open_sink(mark=mark).write(rows(3, 5))
    assert numbers(path) == [1, 2, 3, 4, 5]


def test_a_crash_before_the_first_mark_repeats_nothing(open_sink, path):
    path.parent.mkdir()
    path.write_text('{"n": 0}\n')
    sink = open_sink()
    sink.write(rows(1, 2))
    die(sink)
    open_sink(mark=None).write(rows(1, 3))
    assert numbers(path) == [0, 1, 2, 3]


def test_a_torn_line_of_the_same_job_is_cut(open_sink, path):
    sink = open_sink()
    mark = sink.write(rows(1, 2)).mark
    os.write(sink._fd, b'{"n": 3, "te')
    die(sink)
    open_sink(mark=mark).write(rows(3, 3))
    assert numbers(path) == [1, 2, 3]
    assert not path.with_name("shop.jsonl.torn").exists()


def test_a_torn_line_of_another_job_is_moved_aside(open_sink, path, caplog):
    path.parent.mkdir()
    path.write_bytes(b'{"n": 1}\n{"n": 2, "te')
    open_sink(job="b").write(rows(3, 3))
    assert numbers(path) == [1, 3]
    assert path.with_name("shop.jsonl.torn").read_bytes() == b'{"n": 2, "te\n'
    assert "torn line" in caplog.text


def test_a_whole_last_line_without_a_line_break_is_kept(open_sink, path):
    path.parent.mkdir()
    path.write_bytes(b'{"n": 1}\n{"n": 2}')
    open_sink().write(rows(3, 3))
    assert numbers(path) == [1, 2, 3]


def test_lines_of_another_job_behind_the_mark_are_never_cut(open_sink, path):
    """Job a dies, job b writes to the same file, job a goes on."""
    first = open_sink("a")
    mark = first.write(rows(1, 2)).mark
    first.write(rows(3, 5))
    die(first)
    other = open_sink("b")
    other.write(rows(100, 103))
    other.close()
    again = open_sink("a", mark)
    again.write(rows(3, 4))
    mark = again.write(rows(5, 7)).mark
    assert numbers(path) == [1, 2, 3, 4, 5, 100, 101, 102, 103, 6, 7]
    again.write(rows(8, 8))
    die(again)
    open_sink("a", mark).write(rows(8, 9))
    assert numbers(path) == [1, 2, 3, 4, 5, 100, 101, 102, 103, 6, 7, 8, 9]


def test_a_second_crash_in_the_middle_of_repeated_lines_repeats_nothing(open_sink, path):
    first = open_sink("a")
    mark = first.write(rows(1, 2)).mark
    first.write(rows(3, 6))
    die(first)
    other = open_sink("b")
    other.write(rows(100, 100))
    other.close()
    again = open_sink("a", mark)
    mark = again.write(rows(3, 4)).mark
    die(again)
    open_sink("a", mark).write(rows(5, 7))
    assert numbers(path) == [1, 2, 3, 4, 5, 6, 100, 7]


def test_a_file_moved_away_since_the_mark_is_begun_anew(open_sink, path, caplog):
    sink = open_sink()
    mark = sink.write(rows(1, 2)).mark
    sink.close()
    path.rename(path.with_name("kept.jsonl"))
    open_sink(mark=mark).write(rows(3, 3))
    assert numbers(path) == [3]
    assert "moved or cut" in caplog.text


def test_a_file_deleted_while_it_is_written_is_begun_anew(open_sink, path):
    sink = open_sink()
    sink.write(rows(1, 2))
    path.unlink()
    sink.write(rows(3, 3))
    assert numbers(path) == [3]


@pytest.mark.parametrize(
    ("left", "kept"), [("nothing", []), ("a part", []), ("a line", [1]), ("more", [1])]
)
def test_a_file_cut_while_it_is_written_gets_whole_lines_only(open_sink, path, left, kept):
    sink = open_sink()
    sink.write(rows(1, 2))
    line = len(path.read_bytes()) // 2
    os.truncate(path, {"nothing": 0, "a part": 5, "a line": line, "more": line + 4}[left])
    mark = sink.write(rows(3, 3)).mark
    assert numbers(path) == [*kept, 3]
    sink.close()
    open_sink(mark=mark).write(rows(4, 4))
    assert numbers(path) == [*kept, 3, 4]


def test_a_second_writer_is_refused_by_name(open_sink, path):
    open_sink("a")
    with pytest.raises(SinkGone, match=rf"process {os.getpid()} on .* \(job a\)"):
        open_sink("b")


def test_the_lock_ends_with_its_holder(open_sink, path):
    die(open_sink("a"))
    open_sink("b").write(rows(1, 1))
    assert numbers(path) == [1]


def test_a_full_disk_leaves_no_partial_bytes(open_sink, path, monkeypatch):
    sink = open_sink()
    sink.write(rows(1, 1))
    real = os.write

    def write(fd, data):
        if len(data) > 10:
            return real(fd, data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(SinkDown, match="No space left"):
        sink.write(rows(2, 2, text="0123"))
    monkeypatch.undo()
    assert numbers(path) == [1]
    sink.write(rows(2, 3))
    assert numbers(path) == [1, 2, 3]


def test_a_really_full_device_is_a_sink_that_is_down():
    """/dev/full answers every write with "no space left"."""
    fd = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(OSError, match="No space left") as caught:
            os.write(fd, b"x")
    finally:
        os.close(fd)
    assert caught.value.errno == errno.ENOSPC


def test_a_row_that_utf8_cannot_hold_is_poison_and_the_others_are_stored(open_sink, path):
    written = open_sink().write([row(1), (2, '{"n": "\ud800"}'), row(3)])
    assert [p.row for p in written.poison] == [2]
    assert numbers(path) == [1, 3]


def test_a_row_with_a_line_break_is_poison(open_sink, path):
    written = open_sink().write([(1, '{"n":\n1}'), row(2)])
    assert [p.row for p in written.poison] == [1]
    assert numbers(path) == [2]


def test_an_unwritable_folder_is_refused_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    sink = JsonLinesSink(path=tmp_path / "file" / "x.jsonl", job="a")
    with pytest.raises(SinkGone, match=r"^cannot open .*x\.jsonl: "):
        sink.open(None)


def test_a_broken_mark_and_a_broken_history_lose_nothing(open_sink, path):
    sink = open_sink()
    sink.write(rows(1, 2))
    sink.close()
    (path.parent / ".shop.jsonl.history").write_text("{")
    open_sink(mark="{").write(rows(3, 3))
    assert numbers(path) == [1, 2, 3]


def test_without_its_history_a_job_still_knows_its_lines(open_sink, path):
    sink = open_sink()
    mark = sink.write(rows(1, 2)).mark
    sink.write(rows(3, 4))
    die(sink)
    (path.parent / ".shop.jsonl.history").unlink()
    open_sink(mark=mark).write(rows(3, 5))
    assert numbers(path) == [1, 2, 3, 4, 5]
