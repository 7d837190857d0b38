"""Seeds files of every shape: read block by block, bad lines named, useless files refused."""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
import tracemalloc

import pytest
from scrapy.utils.defer import deferred_f_from_coro_f

from extensions.arguments import BadArgument
from extensions.seeds import MAX_LINE_BYTES, BadLine, BadLines, Seed, SeedFile


async def read(path) -> list:
    file = SeedFile(str(path))
    file.check()
    return [record async for block in file.blocks() for record in block]


def written(tmp_path, name: str, data: bytes):
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


GOOD = [Seed("http://a/1", 2), Seed("http://a/2", 3)]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("s.txt", b"# comment\nhttp://a/1\nhttp://a/2\n"),
        ("s.txt", b"\xef\xbb\xbf\r\nhttp://a/1\r\n  http://a/2  "),
        ("s", b"\nhttp://a/1\nhttp://a/2"),
        ("s.txt.gz", b"\nhttp://a/1\nhttp://a/2\n"),
        ("s.csv", b"name,URL\nx,http://a/1\ny,http://a/2\n"),
        ("s.csv", b'\xef\xbb\xbf"url";name\r\nhttp://a/1;x\r\n"http://a/2";"y"\r\n'),
        ("s.csv", b"url\nhttp://a/1\nhttp://a/2"),
        ("s.CSV.gz", b"n\turl\nx\thttp://a/1\ny\thttp://a/2\n"),
        ("s.jsonl", b'\n{"url": "http://a/1"}\n{"n": 1, "url": " http://a/2"}\n'),
        ("s.jsonl.gz", b'\n{"url": "http://a/1"}\n{"url": "http://a/2"}\n'),
    ],
)
@deferred_f_from_coro_f
async def test_every_form_gives_urls_and_line_numbers(tmp_path, name, data):
    assert await read(written(tmp_path, name, data)) == GOOD


@deferred_f_from_coro_f
async def test_bad_lines_are_skipped_with_a_reason(tmp_path):
    long = b"http://a/" + b"x" * 3 * MAX_LINE_BYTES
    data = b"http://a/1\nfoo bar\n" + long + b"\nhttp://a/\xfc\nftp://a/\nhttp://a/2\0\n" + long
    records = await read(written(tmp_path, "s.txt", data))
    assert records[0] == Seed("http://a/1", 1)
    assert records[3] == Seed("http://a/\u00fc", 4)
    bad = {record.line: record.why for record in records if isinstance(record, BadLine)}
    assert sorted(bad) == [2, 3, 5, 6, 7]
    assert bad[3] == bad[7] == f"longer than {MAX_LINE_BYTES} bytes"


@deferred_f_from_coro_f
async def test_bad_rows_of_csv_and_jsonl(tmp_path):
    csv = b'n,url\na\nb,http://a/1\nc,"http://a/\n2"\n\nd,http://a/3\n'
    records = await read(written(tmp_path, "s.csv", csv))
    assert [type(r).__name__ for r in records] == ["BadLine", "Seed", "BadLine", "Seed"]
    assert [r.line for r in records] == [2, 3, 5, 7]
    lines = b'{"url": 1}\n[]\n{"u": "x"}\n{\n' + b"[" * 50_000 + b'\n{"url": "http://a/1"}\n'
    records = await read(written(tmp_path, "s.jsonl", lines))
    assert [r.line for r in records if isinstance(r, BadLine)] == [1, 2, 3, 4, 5]
    assert records[-1] == Seed("http://a/1", 6)


@deferred_f_from_coro_f
async def test_an_open_quote_in_csv_does_not_end_the_reading(tmp_path):
    rows = b"".join(b"x,http://a/%d\n" % n for n in range(20_000))
    records = await read(written(tmp_path, "s.csv", b'n,url\n"x,http://b/\n' + rows))
    assert any(isinstance(r, BadLine) for r in records)
    assert records[-1] == Seed("http://a/19999", 20_002)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("s.txt", b"", "the file is empty"),
        ("s.csv", b"", "the file is empty"),
        ("s.csv", b"link,name\nhttp://a/,x\n", 'no column "url"; its first line is: link,name'),
        ("s.txt", "http://a/\n".encode("utf-16"), "UTF-16"),
    ],
)
def test_useless_files_are_refused(tmp_path, name, data, message):
    with pytest.raises(BadArgument, match=message):
        SeedFile(str(written(tmp_path, name, data))).check()


def test_what_is_no_readable_file_is_refused(tmp_path):
    for name, message in [("nothing", "no such file"), ("", "no such file"), (".", "a folder")]:
        with pytest.raises(BadArgument, match=message):
            SeedFile(str(tmp_path / name) if name != "" else "").check()
    (tmp_path / "s.txt.gz").write_bytes(b"http://a/\n")
    with pytest.raises(BadArgument, match="gzipped"):
        SeedFile(str(tmp_path / "s.txt.gz")).check()
    (tmp_path / "f").write_text("x")
    with pytest.raises(BadArgument, match="Not a directory"):
        SeedFile(str(tmp_path / "f" / "s.txt")).check()


@deferred_f_from_coro_f
async def test_a_gzip_file_that_ends_early_gives_what_it_has_and_says_so(tmp_path):
    whole = gzip.compress(os.urandom(200_000).hex().encode() + b"\nhttp://a/\n" * 50_000)
    (tmp_path / "s.gz").write_bytes(gzip.compress(b"http://a/\n" * 30_000) + whole[:150_000])
    file = SeedFile(str(tmp_path / "s.gz"))
    file.check()
    got = 0
    with pytest.raises(BadArgument, match="cannot be read on"):
        async for block in file.blocks():
            got += sum(isinstance(record, Seed) for record in block)
    assert got >= 29_000


@deferred_f_from_coro_f
async def test_a_long_file_is_never_held_whole(tmp_path):
    path = tmp_path / "s.txt"
    with path.open("w") as out:
        for n in range(60_000):
            out.write(f"http://host.example/some/page/{n}\n")
    file = SeedFile(str(path))
    file.check()
    tracemalloc.start()
    try:
        count = 0
        async for block in file.blocks():
            count += len(block)
            if count == 500:
                assert file.bytes_read < 200_000 < file.bytes_total  # lazily
                assert abs(file.left - 59_500) < 6_000  # early lines are shorter
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 60_000
    assert file.bytes_read == file.bytes_total
    assert file.left == 0
    assert peak < 2_000_000


@deferred_f_from_coro_f
async def test_a_pipe_gives_what_there_is_before_its_end(tmp_path):
    """A named pipe is not read by the check."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    file = SeedFile(str(fifo))
    file.check()
    writer = asyncio.get_running_loop().run_in_executor(None, fifo.write_bytes, b"http://a/1\n")
    assert [r async for block in file.blocks() for r in block] == [Seed("http://a/1", 1)]
    await writer


@deferred_f_from_coro_f
async def test_standard_input_is_read_as_it_comes(monkeypatch):
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        blocks = SeedFile("-").blocks()
        os.write(write_end, b"http://a/1\nhttp://a/")
        assert await anext(blocks) == [Seed("http://a/1", 1)]
        os.write(write_end, b"2\n")
        assert await anext(blocks) == [Seed("http://a/2", 2)]
        os.close(write_end)
        assert [block async for block in blocks] == []


def test_the_first_bad_lines_are_named_and_the_rest_is_summed_up(caplog):
    bad = BadLines(source="s.txt", log=logging.getLogger("seeds"))
    with caplog.at_level(logging.WARNING):
        for line in range(1, 26):
            bad.add(BadLine(line, "no URL", "foo\x1b[31m"))
        bad.sum_up(7)
    assert caplog.messages[0] == r"s.txt line 1 skipped: no URL: 'foo\x1b[31m'"
    assert len(caplog.messages) == 11
    assert caplog.messages[-1] == "s.txt: 25 lines skipped, 7 URLs read (25 no URL)"
