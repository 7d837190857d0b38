"""Where a URL is, in words, from a job's folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.utils.request import fingerprint

from extensions.stores.base import Batch, State
from extensions.stores.sqlite import SqliteJobStore
from extensions.whereabouts import answer
from tests.stores.test_job_store_contract import request_row

if TYPE_CHECKING:
    from pathlib import Path


def test_each_place_has_its_words(tmp_path: Path) -> None:
    """Pending, in flight, done, unknown, and no URL at all."""
    store = SqliteJobStore(path=tmp_path / "job.sqlite", spider="pages")
    store.open()
    urls = {n: f"http://a.example/{n}" for n in (1, 2, 3)}
    rows = [
        request_row(n, payload=json.dumps({"url": url}, separators=(",", ":")).encode())
        for n, url in urls.items()
    ]
    rows[1].state = State.LEASED
    seen = [fingerprint(Request(url)) for url in urls.values()]
    store.commit(Batch(inserts=rows, seen=seen))
    store.commit(Batch(done=[3]))
    try:
        assert answer(tmp_path, urls[1], None) == "pending"
        assert answer(tmp_path, urls[2], None) == "in flight"
        assert answer(tmp_path, urls[3], None).startswith("done: ")
        assert answer(tmp_path, "http://b.example/", None).startswith("Not in this job")
        assert answer(tmp_path, "<script>", None).startswith("This is no URL")
    finally:
        store.close()
    assert answer(tmp_path / "nowhere", urls[1], None).startswith("This cannot be told")
