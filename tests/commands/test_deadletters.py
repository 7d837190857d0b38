"""``scrapy deadletters`` on a file with rows; what it says, and what it leaves behind."""

import json
import time

import pytest
from scrapy.cmdline import execute
from scrapy.settings import Settings

from extensions.stores.deadletters import DeadLetterFile
from tests.letters import letter as numbered


def letter(number, **fields):
    now = time.time()
    return numbered(number, **({"first_at": now - 100, "last_at": now - number} | fields))


@pytest.fixture
def fill(tmp_path):
    """Put letters into a spider's file."""

    def put(*letters, spider="shop", **arguments):
        with DeadLetterFile(tmp_path / "deadletters" / f"{spider}.sqlite") as file:
            file.open_run(job=spider, spider=spider, arguments=arguments)
            file.put_many(letters)

    return put


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command in a folder of its own: its exit code, its output, its errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "project.settings")

    def command(*words):
        settings = Settings()
        settings.setmodule("project.settings", priority="project")
        with pytest.raises(SystemExit) as end:
            execute(["scrapy", "deadletters", *words], settings)
        out, err = capsys.readouterr()
        return end.value.code, out, err

    return command


def test_list(run, fill):
    fill(letter(1), letter(2, reason="timeout", url="http://h/\x1b[2J\u202e"))
    code, out, _ = run("list")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["ID", "STATE", "REASON", "TRIES", "LAST", "SPIDER", "URL"]
    *cells, age, spider, url = lines[1].split()
    assert (cells, spider, url) == (["1", "dead", "http", "503", "3"], "shop", "http://h/1")
    assert age.endswith("s")
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_list_in_pages_over_several_spiders(run, fill):
    fill(*(letter(n) for n in range(1, 5)))
    fill(letter(9, spider="blog", last_at=time.time() + 5), spider="blog")
    _, out, _ = run("list", "--limit", "2", "--offset", "1")
    assert [line.split()[-1] for line in out.splitlines()[1:3]] == ["http://h/1", "http://h/2"]
    assert "and 2 more" in out
    _, out, _ = run("list", "--spider", "blog")
    assert len(out.splitlines()) == 2


def test_list_as_json(run, fill):
    fill(letter(1), letter(2))
    _, out, _ = run("list", "--json", "--url", "/2")
    [row] = json.loads(out)
    assert (row["id"], row["domain"], row["status"], row["state"]) == (2, "h", 503, "dead")
    assert json.loads(run("list", "--json", "--reason", "dns")[1]) == []


def test_list_without_any_file(run):
    assert run("list") == (0, "no dead letters\n", "")


def test_show(run, fill):
    fill(letter(1, detail="first\nsecond", payload=b'{"url": "http://h/1", "method": "POST"}'))
    _, out, _ = run("show", "1")
    assert "second" in out
    assert '"method": "POST"' in out
    [row] = json.loads(run("show", "1", "--json")[1])
    assert row["request"]["method"] == "POST"


def test_export(run, fill, tmp_path):
    fill(letter(1), letter(0, payload=b"\xff", kind="item"), url="http://h/")
    code, out, _ = run("export")
    first, second = map(json.loads, out.splitlines())
    assert (code, first["request"], second["payload_base64"]) == (0, {"url": "http://h/"}, "/w==")
    assert first["arguments"] == {"url": "http://h/"}
    assert run("export", "-o", "x.jsonl")[1] == "2 dead letters written to x.jsonl\n"
    assert (tmp_path / "x.jsonl").read_text() == out
    code, _, err = run("export", "-o", "x.jsonl")
    assert (code, err) == (2, "scrapy deadletters: x.jsonl exists; give the name of a new file\n")


def test_purge(run, fill):
    fill(letter(1), letter(2, last_at=time.time() - 8000))
    assert run("purge", "--older-than", "2h")[1] == "1 dead letters deleted\n"
    code, _, err = run("purge")
    assert code == 2
    assert "--all" in err
    assert run("purge", "--all")[1] == "1 dead letters deleted\n"


def test_replay_later(run, fill, tmp_path):
    fill(letter(1), letter(2), letter(3, kind="item"), letter(4, reason="dns"))
    _, out, _ = run("replay", "--later", "--newer-than", "1h", "--url", "h/")
    assert "1 are items" in out
    assert "3 wait for the next crawl of shop" in out
    with DeadLetterFile(tmp_path / "deadletters" / "shop.sqlite") as file:
        assert [row.state for row in file.rows(newest_first=False)].count("requested") == 3


def test_replay_goes_to_a_running_crawl(run, fill, tmp_path):
    fill(letter(1))
    with DeadLetterFile(tmp_path / "deadletters" / "shop.sqlite") as file:
        file.open_run(job="r", spider="shop", arguments={})
        _, out, _ = run("replay", "1")
        assert out == "1 go to the running crawl of shop\n"
        assert len(file.claim(9).rows) == 1
        assert run("replay", "1")[1] == "1 are being replayed already\nnothing to replay\n"


def test_replay_of_nothing(run, fill):
    fill(letter(1))
    assert run("replay", "--domain", "other")[:2] == (0, "nothing to replay\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give one of list, show, replay, export, purge (say which)"),
        (("lost",), "give one of list, show, replay, export, purge (not 'lost')"),
        (("list", "--sipder", "x"), "'--sipder' is neither an option nor the number"),
        (("list", "--older-than", "2 hours"), "'2 hours' is no age"),
        (("show",), "show needs the number"),
        (("show", "7"), "there is no dead letter 7"),
        (("replay", "-a", "x"), "-a wants NAME=VALUE"),
        (("export", "-o", "no/such/folder"), "No such file or directory"),
    ],
)
def test_refused_in_one_line(run, fill, words, message):
    fill(letter(1))
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("scrapy deadletters: ")
    assert err.count("\n") == 1


def test_numbers_that_are_in_two_files_want_a_spider(run, fill):
    fill(letter(1))
    fill(letter(1, spider="blog"), spider="blog")
    code, _, err = run("show", "1")
    assert code == 2
    assert "add --spider" in err
    assert run("show", "1", "--spider", "blog")[0] == 0


def test_a_file_of_something_else_is_refused(run, tmp_path):
    (tmp_path / "deadletters").mkdir()
    (tmp_path / "deadletters" / "x.sqlite").write_text("text" * 99)
    code, _, err = run("list")
    assert code == 2
    assert "not a database" in err
