"""Scrapy's own tests, with Sluice in the place of what they test: `python -m benchmarks.scrapy_suite CHECKOUT`.

CHECKOUT is Scrapy's source with its tests, of the version that is installed:

    pip download "scrapy==2.19.*" --no-binary :all: --no-deps && tar xzf scrapy-2.19.*.tar.gz
    pip install testfixtures pyftpdlib pexpect

Each test that crawls has the add-on on; the tests of the retry middleware and of contracts get Sluice's own classes. What
fails is compared with the table of docs/differences.md: exit code 1 if anything else fails, or if something of the table
passes. `--stock` runs them as they are. Further words go to pytest.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = "scrapy_suite_plugin"
CONCERNED = (
    "scheduler", "scheduler_base", "downloadermiddleware*", "spidermiddleware*", "contracts",
    "crawl", "crawler", "closespider", "spider_start", "engine*", "signals", "request_cb_kwargs",
    "request_left", "request_attribute_binding", "downloaderslotssettings", "dupefilters",
    "pipelines", "pipeline_crawl", "spiderstate", "addons", "core_scraper", "core_downloader",
)  # fmt: skip
_DIFFERS = re.compile(r"^\| `(test_[\w/.:\[\]-]+)` \|", re.MULTILINE)
_FAILED = re.compile(r"^(?:FAILED|ERROR) tests/(\S+)", re.MULTILINE)


def expected() -> set[str]:
    """The tests that docs/differences.md names."""
    return set(_DIFFERS.findall((ROOT / "docs" / "differences.md").read_text(encoding="utf-8")))


def run(checkout: Path, words: list[str], *, stock: bool) -> tuple[str, set[str]]:
    """The last line that pytest printed, and the tests that failed."""
    with tempfile.TemporaryDirectory() as scratch:
        here, ours = Path(scratch) / "scrapy", Path(scratch) / "ours"
        here.mkdir()
        ours.mkdir()
        for name in ("tests", "docs"):
            shutil.copytree(checkout / name, here / name)
        for name in ("conftest.py", "pyproject.toml", "tox.ini"):
            shutil.copy(checkout / name, here)
        # Only this: this project's own package `tests` must not be found.
        (ours / "extensions").symlink_to(ROOT / "extensions")
        shutil.copy(ROOT / "benchmarks" / f"{PLUGIN}.py", ours)
        files = sorted(
            {str(p.relative_to(here)) for n in CONCERNED for p in here.glob(f"tests/test_{n}.py")}
        )
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
        path = [str(ours), *filter(None, [os.environ.get("PYTHONPATH")])]
        done = subprocess.run(
            [*command, *([] if stock else ["-p", PLUGIN]), *files],
            cwd=here,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    if done.returncode not in {0, 1}:
        sys.exit(done.stdout + "\npytest could not run")
    return done.stdout.strip().splitlines()[-1], set(_FAILED.findall(done.stdout))


def main() -> int:
    """Run and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--stock", action="store_true", help="without Sluice")
    options, words = parser.parse_known_args()
    last, failed = run(options.checkout, words, stock=options.stock)
    known = set() if options.stock else expected()
    print(last)
    for name in sorted(failed - known):
        print(f"differs, and docs/differences.md does not say so: {name}")
    for name in sorted(known - failed):
        print(f"passes, though docs/differences.md says that it differs: {name}")
    print(f"{len(failed)} differ, {len(failed & known)} of them as documented")
    return 0 if failed == known else 1


if __name__ == "__main__":
    sys.exit(main())
