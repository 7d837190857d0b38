"""The dead-letter file alone: what is no such file is left alone; ages and arguments as people give them."""

import json
import sqlite3

import pytest

from extensions.stores.deadletter_filters import age_s
from extensions.stores.deadletters import DeadLetterError, DeadLetterFile, arguments_text


def test_only_its_owner_may_read_it(tmp_path):
    with DeadLetterFile(tmp_path / "deadletters" / "shop.sqlite") as file:
        file.open_run(job="j", spider="shop", arguments={})
        for path in file.path.parent.iterdir():
            assert oct(path.stat().st_mode & 0o777) == "0o600", path


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("2h", 7200), ("1.5d", 129600), (" 1w ", 604800)],
)
def test_ages(text, seconds):
    assert age_s(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "-2h", "2 hours", "٢h"])
def test_what_is_no_age(text):
    with pytest.raises(ValueError, match="give one such as"):
        age_s(text)


def test_a_file_of_a_newer_version_is_left_alone(tmp_path):
    path = tmp_path / "x.sqlite"
    DeadLetterFile(path).open().close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(DeadLetterError, match="newer version"):
        DeadLetterFile(path).open()


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"not a database at all" * 99, "not a database"), (None, "no such file")],
)
def test_what_is_no_dead_letter_file(tmp_path, content, message):
    path = tmp_path / "x.sqlite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DeadLetterError, match=message) as caught:
        DeadLetterFile(path).open(create=False)
    assert "\n" not in str(caught.value)


def test_a_database_of_something_else_is_left_alone(tmp_path):
    connection = sqlite3.connect(tmp_path / "x.sqlite")
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(DeadLetterError, match="something else"):
        DeadLetterFile(tmp_path / "x.sqlite").open()


def test_secrets_among_arguments_are_not_kept():
    given = {"url": "http://u:p@h/", "password": "p", "api_token": "p", "depth": 2, "_job": "p"}
    assert json.loads(arguments_text(given)) == {"url": "http://h/", "depth": "2"}
