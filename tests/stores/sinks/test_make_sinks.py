"""What a user may write in SLUICE_RESULTS."""

import pytest

from extensions.stores.sinks import make_sinks


def names(target, spider="shop"):
    return [sink.name for sink in make_sinks(target, spider=spider, job="a")]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (None, []),
        ("", []),
        ("results/%(spider)s.jsonl", ["jsonl:results/shop.jsonl"]),
        ("x.JL", ["jsonl:x.JL"]),
        ("x.sqlite", ["sqlite:x.sqlite:results"]),
        ("sqlite:///%(spider)s.db", ["sqlite:shop.db:results"]),
        ("postgres://u:secret@h:5433/d", ["postgresql:h:5433/d:results"]),
        ("postgresql+psycopg://h/d", ["postgresql:h/d:results"]),
        ("a.jsonl, b.db", ["jsonl:a.jsonl", "sqlite:b.db:results"]),
        (["a.jsonl", "b.db"], ["jsonl:a.jsonl", "sqlite:b.db:results"]),
    ],
)
def test_targets(target, expected):
    assert names(target) == expected


def test_a_spider_name_is_one_path_component():
    assert names("%(spider)s.jsonl", spider="../a/b") == ["jsonl:.._a_b.jsonl"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("results.csv", r"results.csv.*\.jsonl"),
        ("results", r"\.jsonl"),
        ("%(time)s.jsonl", r"%\(time\)s is not known"),
        ("a.jsonl,a.jsonl", "twice"),
        ("sqlite://", "in memory"),
        ("mysql://u:secret@h/d", "driver is missing .pip install pymysql"),
        ("oracle://u:secret@h/d", "only sqlite, postgresql"),
        ("nosuch://u:secret@h/d", "only sqlite, postgresql|cannot be read"),
        ("postgresql://u:secret@h:port/d", "cannot be read"),
    ],
)
def test_refused_in_one_line_without_credentials(target, message):
    with pytest.raises(ValueError, match=message) as caught:
        names(target)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_worker_that_comes_back_to_its_file_keeps_what_it_wrote_before(tmp_path):
    """In a job of many workers a request's end outlives the worker and its marks: its results come no more."""
    target = str(tmp_path / "out.jsonl")
    for worker in (1, 2, 3):
        [sink] = make_sinks(target, spider="s", job="a", worker=worker)
        sink.open(None)
        sink.write([(1, f'{{"worker": {worker}}}')])
        sink.close()
    assert (tmp_path / "out.jsonl").read_text().count("\n") == 3
