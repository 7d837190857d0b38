"""The tutorial's commands, as they stand there, in a copy of the project."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from tests.documents import ROOT

FOLDERS = ("extensions", "project", "spiders")
FAILS = "<!-- the last command fails, and is meant to -->"
ASK = 'import urllib.request as r; r.urlopen("http://127.0.0.1:8000/")'
BLOCK = re.compile(rf"({re.escape(FAILS)}\n)?```sh\n(.*?)```", re.DOTALL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_every_command_does_what_the_tutorial_says(tmp_path: Path):
    for folder in FOLDERS:
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "scrapy.cfg", tmp_path)
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    blocks = [(bool(fails), block) for fails, block in BLOCK.findall(text)]
    assert blocks[0][1].startswith("bash run.sh setup")
    assert "rm -r shop" in blocks[-1][1]
    lines = ["trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for number, (fails, block) in enumerate(blocks[1:-1], start=1):
        lines += ["set -e" if not fails else "set +e", block]
        lines += [f"echo block {number} ended with $?; set -e"]
        if "http.server" in block:
            lines.append(f"until python -c '{ASK}' 2>/dev/null; do :; done")
    script = "\n".join([*lines, "cp -r results kept", blocks[-1][1]])
    port = str(free_port())
    done = subprocess.run(
        ["bash", "-c", script.replace("8000", port)],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    codes = re.findall(r"block \d+ ended with (\d+)", done.stdout)
    assert [code for code in codes if code != "0"] == ["3", "1", "3"], done.stdout
    assert "INCOMPLETE: 1 of 4 pages lost" in done.stderr
    assert "0 requests, expected 1 or more" in done.stderr
    assert "urls.txt line 3 skipped" in done.stderr
    assert "gone.html" in done.stdout  # the list of dead letters
    results = {path.stem: read(path) for path in (tmp_path / "kept").iterdir()}
    assert {row["title"] for row in results["site"]} == {"Shop", "Lamp", "Chair"}
    lamp = next(row for row in results["pages"] if row["title"] == "Lamp")
    assert lamp["fields"] == {"price": "12 EUR", "tags": ["light", "brass"]}
    assert {row["title"] for row in results["shop"]} == {"Shop", "Lamp", "Chair"}
    left = {path.name for path in tmp_path.iterdir()} - {"kept"}
    assert left == {*FOLDERS, "scrapy.cfg"}


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
