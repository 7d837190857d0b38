"""Settings of Scrapy's that nothing can be made of end the command with one line that names them, and exit code 2."""

from __future__ import annotations

import pytest

from extensions.addon import Addon
from extensions.config import BadSetting
from extensions.wrongvalues import refuse_before_logging, refuse_unloadable, refuse_words
from tests.conftest import project_settings

BEFORE_LOGGING = [
    ("LOG_LEVEL", "LOUD", "give one of CRITICAL"),
    ("LOG_LEVEL", "10", "give one of CRITICAL"),
    ("LOG_FILE", "no/such/folder/log", "No such file or directory"),
    ("LOG_ENCODING", "klingon", "give an encoding"),
    ("LOG_FORMAT", "%x", "Invalid format"),
    ("LOG_ENABLED", "maybe", "give True or False"),
    ("ADDONS", {"no.such.Addon": 1}, "there is no module no"),
    ("SPIDER_MODULES", "no.such", "there is no module no"),
    ("ASYNCIO_EVENT_LOOP", "no.Loop", "there is no module no"),
]
WORDS = [
    ("CONCURRENT_REQUESTS", "abc", "give a whole number"),
    ("DOWNLOAD_DELAY", "x", "give a number"),
    ("ROBOTSTXT_OBEY", "sure", "give True or False"),
    ("RETRY_HTTP_CODES", "a,b", "give HTTP statuses"),
]
CLASSES = [
    ("DUPEFILTER_CLASS", "no.such.Filter", "there is no module no"),
    ("STATS_CLASS", "stats", "this is no path"),
    ("LOG_FORMATTER", "scrapy.logformatter.Nope", "there is no Nope in scrapy.logformatter"),
    ("ITEM_PIPELINES", {"scrapy.nope.Pipe": 1}, "there is no module scrapy.nope"),
]


@pytest.mark.parametrize(("name", "value", "why"), BEFORE_LOGGING)
def test_what_is_read_before_the_log_is_refused(monkeypatch, tmp_path, name, value, why):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadSetting, match=f"^{name}=.*{why}"):
        refuse_before_logging(project_settings(**{"LOG_FILE": "log", name: value}))


@pytest.mark.parametrize(("name", "value", "why"), [*WORDS, *CLASSES])
def test_what_a_crawl_would_fail_over_is_refused_by_the_addon(name, value, why):
    with pytest.raises(BadSetting, match=f"^{name}=.*{why}"):
        Addon().update_settings(project_settings(**{name: value}))


def test_the_projects_own_settings_pass():
    settings = project_settings(LOG_LEVEL=10, ITEM_PIPELINES={"no.such.Pipe": None})
    refuse_before_logging(settings)
    refuse_words(settings)
    refuse_unloadable(settings)


def test_an_error_within_a_users_module_keeps_its_traceback(monkeypatch, tmp_path):
    (tmp_path / "broken_pipes.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        refuse_unloadable(project_settings(ITEM_PIPELINES={"broken_pipes.Pipe": 1}))


@pytest.mark.parametrize("setting", ["LOG_LEVEL=LOUD", "DUPEFILTER_CLASS=no.Such"])
def test_the_command_ends_with_one_clear_line(scrapy_cli, setting):
    done = scrapy_cli("crawl", "site", "-a", "url=http://127.0.0.1:1/", "-s", setting)
    assert done.code == 2, done.err
    assert "Traceback" not in done.err
    assert setting.partition("=")[0] in done.err.strip().splitlines()[-1]
