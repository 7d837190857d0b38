"""The version that was deployed is the one that runs, or the deployment fails and is undone."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.resources import files
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING

import pytest
import yaml
from scrapyd.eggstorage import sorted_versions

from tests.conftest import ROOT
from tests.needs import needs
from tests.sites import Site

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ROOT / "deploy" / "scrapyd"
_spec = spec_from_file_location("deploy", FOLDER / "deploy.py")
helper = module_from_spec(_spec)
sys.modules["deploy"] = helper
_spec.loader.exec_module(helper)


@pytest.mark.parametrize(
    "known", [[], ["1796000000", "1796000001"], ["9999999999"], ["20261130", "3.2"], ["2026-1"]]
)
def test_a_new_version_sorts_last(known):
    """Whatever Scrapyd can sort was deployed before: seconds, dates, dotted ones, later ones."""
    version = helper.next_version(known, 1796079113.5)
    assert sorted_versions([*known, helper.stored_as(version)])[-1] == version


@pytest.mark.parametrize("known", [["1_9", "1_10"], ["3fa2b1c", "1_0"], ["r12-master"], ["1!2"]])
def test_what_would_sort_by_chance_is_refused(known):
    """Dotted versions as Scrapyd renames them, shas, names, epochs."""
    with pytest.raises(helper.Refused, match="delete it first"):
        helper.next_version(known, 1796079113.5)


def test_the_newest_version_runs_and_a_broken_one_is_taken_out(scrapyd, checkout):
    """Also where somebody else's deployment is in the way, and where the password is wrong."""
    first = checkout.deployed()
    assert scrapyd.get("listversions", project="sluice")["versions"] == [first]
    names = scrapyd.get("listspiders", project="sluice")["spiders"]
    assert {"pages", "site", "sitemap"} <= set(names)

    stranger = checkout.deploy(SCRAPYD_PASSWORD="guessed")  # noqa: S106
    assert stranger.returncode == 1
    assert "does not know 'deploy' with this password: see SCRAPYD_PASSWORD" in stranger.stderr
    assert "wants the password of 'deploy'" in checkout.deploy(SCRAPYD_PASSWORD="").stderr
    nowhere = checkout.deploy(target="third")
    assert "no section [deploy:third]; it has deploy, deploy:second" in nowhere.stderr

    assert "which sorts as text: give a whole number" in checkout.deploy("--version", "1.10").stderr
    older = checkout.deploy("--version", "12")
    assert older.returncode == 1
    assert f"version 12 would not run: {first} sorts after it" in older.stderr
    assert "was taken out again" in older.stderr

    (checkout.folder / "spiders" / "broken.py").write_text("import nowhere_at_all\n")
    broken = checkout.deploy()
    assert broken.returncode == 1
    assert "No module named 'nowhere_at_all'" in broken.stderr
    assert "was taken out again" in broken.stderr
    assert scrapyd.get("listversions", project="sluice")["versions"] == [first]

    (checkout.folder / "no.egg").write_text("no egg")
    assert "not a ZIP file" in checkout.deploy("--egg", "no.egg").stderr

    (checkout.folder / "spiders" / "broken.py").unlink()
    second = checkout.deployed()
    assert scrapyd.get("listversions", project="sluice")["versions"] == [first, second]


def test_scrapyd_deploy_builds_the_same_egg(checkout):
    """Three packages, all data files, no tests; nothing of it is written into the checkout's packages."""
    (checkout.folder / "tests").mkdir()
    (checkout.folder / "tests" / "__init__.py").touch()
    done = subprocess.run(
        [sys.executable, "-m", "scrapyd_client", "deploy", "--build-egg", "made.egg"],
        cwd=checkout.folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    held = set(zipfile.ZipFile(checkout.folder / "made.egg").namelist())
    meant = {
        path.relative_to(checkout.folder).as_posix()
        for package in ("extensions", "project", "spiders")
        for path in (checkout.folder / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert meant <= held
    assert {name.partition("/")[0] for name in held - meant} <= {
        "EGG-INFO",
        "extensions",
        "project",
        "spiders",
    }


HIDE = """
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"redis", "psycopg", "sqlalchemy", "prometheus_client"}:
            return None
        return self.finder.find_spec(name, path, target)
sys.meta_path[:] = map(Without, sys.meta_path)
from scrapy.cmdline import execute
execute()
"""


def test_from_the_egg_spiders_load_where_optional_packages_are_missing(checkout, tmp_path):
    """`list` and a crawl work; what needs a package says so in one line, and only where it is switched on."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    made = helper.build(folder, checkout.folder)
    (folder / "run.py").write_text(HIDE)
    environment = {
        **os.environ,
        "PYTHONPATH": str(made),
        "SCRAPY_SETTINGS_MODULE": "project.settings",
    }

    def scrapy(*words: str):
        return subprocess.run(
            [sys.executable, "run.py", *words],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    listed = scrapy("list")
    assert (listed.returncode, "pages" in listed.stdout) == (0, True), listed.stderr
    with Site() as site:
        (folder / "seeds.txt").write_text(site.url("/page/1"))
        crawled = scrapy("crawl", "pages", "-a", "seeds=seeds.txt")
    assert crawled.returncode == 0, crawled.stderr
    for setting in ("SLUICE_STATUS_PORT=0", "SLUICE_FRONTIER=redis", "SLUICE_RESULTS=a.sqlite"):
        done = scrapy("crawl", "pages", "-a", "seeds=seeds.txt", "-s", setting, "-L", "ERROR")
        assert done.returncode == 2, done.stderr
        (line,) = done.stderr.strip().splitlines()
        assert re.search(rf"{setting.partition('=')[0]}=.* needs a package: pip install \w+", line)


# -- the other files of deploy/ ----------------------------------------------------------------------------------------


def test_the_compose_file_leads_to_files_that_are_there():
    folder = ROOT / "deploy" / "compose"
    services = yaml.safe_load((folder / "compose.yaml").read_text())["services"]
    for service in services.values():
        if (build := service.get("build")) is not None:
            context = (folder / build["context"]).resolve()
            assert context == ROOT
            assert (context / build["dockerfile"]).is_file()
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert not source.startswith(".") or (folder / source).exists(), source
    scrapyd = services["scrapyd"]
    assert all(port.startswith("127.0.0.1:") for port in scrapyd["ports"])
    assert scrapyd["environment"]["SCRAPYD_PASSWORD"].startswith("${SCRAPYD_PASSWORD:?")


def test_what_the_dockerfile_copies_is_there():
    text = (ROOT / "deploy" / "compose" / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source


@needs("systemd", found=shutil.which("systemd-analyze"))
@pytest.mark.parametrize("unit", sorted((ROOT / "deploy").rglob("*.service")), ids=lambda p: p.name)
def test_systemd_takes_the_units(unit: Path, tmp_path):
    """As it would be installed: only that this machine has no /srv/crawl."""
    text = unit.read_text().replace("/srv/crawl/.venv/bin/python", sys.executable)
    text = text.replace("/srv/crawl", str(tmp_path))
    name = unit.name.replace("@.", "@pages.")
    (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / name)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert [line for line in done.stderr.splitlines() if name in line] == []


def test_every_option_of_scrapyd_conf_is_one_of_scrapyds():
    known, ours = configparser.ConfigParser(), configparser.ConfigParser()
    known.read_string(files("scrapyd").joinpath("default_scrapyd.conf").read_text())
    ours.read(FOLDER / "scrapyd.conf")
    assert set(ours["scrapyd"]) <= set(known["scrapyd"])
    assert ours["scrapyd"]["jobs_dir"]
    assert "password" not in ours["scrapyd"]
