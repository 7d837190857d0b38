"""Deploy this project to Scrapyd, and do not believe it before it runs.

    python deploy/scrapyd/deploy.py [TARGET] [--egg FILE] [--version VERSION]

TARGET is a section `[deploy:TARGET]` of scrapy.cfg, `[deploy]` by default. The password is taken from SCRAPYD_PASSWORD, from
that section, or from ~/.netrc.

Why not `scrapyd-deploy` alone: Scrapyd answers a broken egg with HTTP 200 and keeps it as the newest version, so that every
job fails from then on; and "1.10" sorts below "1.9" there. Here the version always sorts last, what Scrapyd says is read, a
broken egg is taken out again, and at the end Scrapyd is asked which version it would run.
"""

from __future__ import annotations

import argparse
import configparser
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import requests
from packaging.version import InvalidVersion, Version
from requests.auth import HTTPBasicAuth
from scrapyd_client.utils import EnvInterpolation, get_auth

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 300
"""Scrapyd answers an upload when it has loaded the spiders."""


class Refused(Exception):
    """What went wrong, for the user."""


class Server:
    """One Scrapyd, of which one project is ours."""

    def __init__(self, *, url: str, project: str, username: str | None, password: str) -> None:
        self.url = url.rstrip("/")
        self.project = project
        auth = get_auth(url=self.url, username=username, password=password)
        self._auth = HTTPBasicAuth(auth.username, auth.password) if auth else None

    @classmethod
    def from_cfg(cls, path: Path, target: str) -> Server:
        """The server that scrapy.cfg names *target*."""
        cfg = configparser.ConfigParser(interpolation=EnvInterpolation())
        cfg.read(path)
        name = "deploy" if target == "default" else f"deploy:{target}"
        if name not in cfg:
            known = ", ".join(s for s in cfg.sections() if s.startswith("deploy")) or "none"
            raise Refused(f"{path} has no section [{name}]; it has {known}")
        section = {**(cfg["deploy"] if cfg.has_section("deploy") else {}), **cfg[name]}
        password = os.environ.get("SCRAPYD_PASSWORD") or section.get("password", "")
        return cls(
            url=section["url"],
            project=section["project"],
            username=section.get("username"),
            password=password,
        )

    def versions(self) -> list[str]:
        """The project's versions as Scrapyd sorts them: the last one is what a job runs."""
        return list(self._ask("listversions")["versions"])

    def spiders(self) -> list[str]:
        """What a job could run now."""
        return list(self._ask("listspiders")["spiders"])

    def add(self, egg: Path, version: str) -> int:
        """Upload *egg*. Returns the number of its spiders."""
        with egg.open("rb") as file:
            files = {"egg": ("project.egg", file)}
            answer = self._ask("addversion", {"version": version}, files=files)
        return int(answer["spiders"])

    def delete(self, version: str) -> None:
        """Take *version* out."""
        self._ask("delversion", {"version": version}, files={})

    def _why_not(self) -> str:
        """What is missing or wrong where Scrapyd lets nobody in."""
        if self._auth is None:
            return (
                "wants a user and a password: give username in scrapy.cfg, and set SCRAPYD_PASSWORD"
            )
        if not self._auth.password:
            return f"wants the password of {self._auth.username!r}: set SCRAPYD_PASSWORD"
        return f"does not know {self._auth.username!r} with this password: see SCRAPYD_PASSWORD"

    def _ask(
        self, what: str, more: dict[str, str] | None = None, files: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        values = {"project": self.project, **(more or {})}
        url = f"{self.url}/{what}.json"
        try:
            if files is None:
                answer = requests.get(url, params=values, auth=self._auth, timeout=TIMEOUT_S)
            else:
                answer = requests.post(
                    url, data=values, files=files or None, auth=self._auth, timeout=TIMEOUT_S
                )
            if answer.status_code == requests.codes.unauthorized:
                raise Refused(f"{self.url} {self._why_not()}")
            answer.raise_for_status()
            data: dict[str, Any] = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise Refused(f"{url}: {error}") from error
        if data.get("status") != "ok":
            raise Refused(_last_words(str(data.get("message", data))))
        return data


def next_version(known: list[str], now_at: float) -> str:
    """A version that sorts after all *known* ones: seconds since 1970, or one more than the largest.

    Raises:
        Refused: one of them is no version by Python's rules; Scrapyd then sorts all of them as text.
    """
    releases = [0]
    for name in known:
        try:
            version = Version(name)
        except InvalidVersion:
            raise Refused(
                f"version {name!r} makes Scrapyd sort all versions as text, so that none is sure to be"
                f" the newest: delete it first (curl .../delversion.json -d project=... -d version={name})"
            ) from None
        releases.append(version.release[0])
        if version.epoch:
            raise Refused(
                f"version {name!r} has an epoch and sorts after all others: delete it first"
            )
    return str(max(int(now_at), max(releases) + 1))


def stored_as(version: str) -> str:
    """The name that Scrapyd gives to *version*."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", version)


def readable(version: str) -> str:
    """*version* as Scrapyd stores it.

    Raises:
        Refused: stored so, it makes Scrapyd sort all versions as text.
    """
    stored = stored_as(version)
    try:
        Version(stored)
    except InvalidVersion:
        raise Refused(
            f"version {version!r} would be stored as {stored!r}, which sorts as text: give a whole number"
        ) from None
    return stored


def build(folder: Path, root: Path = ROOT) -> Path:
    """Build the egg of the checkout *root* into *folder*."""
    words = [sys.executable, "setup.py", "-q", "bdist_egg", "-d", str(folder)]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise Refused(f"the egg could not be built: {_last_words(done.stderr)}")
    (egg,) = folder.glob("*.egg")
    return egg


def deploy(server: Server, egg: Path, version: str | None) -> str:
    """Upload *egg* and see to it that it is what runs. Returns its version.

    Raises:
        Refused: it does not run; it was taken out again.
    """
    known = server.versions()
    version = readable(version) if version else next_version(known, time.time())
    if version in known:
        raise Refused(f"version {version} is there already, and may have jobs: give another")
    try:
        check(server, version, count=server.add(egg, version))
    except Refused as error:
        try:
            server.delete(version)
        except Refused as second:
            raise Refused(f"{error}\nand it could not be taken out again: {second}") from second
        raise Refused(f"{error}\nversion {version} was taken out again") from error
    return version


def check(server: Server, version: str, *, count: int) -> None:
    """Is *version* what a job would run now, with its *count* spiders?

    Raises:
        Refused: it is not.
    """
    runs = server.versions()[-1]
    if runs != version:
        raise Refused(f"version {version} would not run: {runs} sorts after it")
    found = len(server.spiders())
    if found != count:
        raise Refused(f"{found} spiders are listed, {count} were uploaded")


def _last_words(text: str) -> str:
    """The last line of a traceback."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def main() -> int:
    """Deploy; 0 if the new version runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "target", nargs="?", default="default", help="[deploy:TARGET] of scrapy.cfg"
    )
    parser.add_argument("--egg", type=Path, help="upload this egg instead of building one")
    parser.add_argument("--version", help="instead of the time; it has to sort last all the same")
    parser.add_argument("--cfg", type=Path, default=ROOT / "scrapy.cfg", help="another scrapy.cfg")
    options = parser.parse_args()
    try:
        server = Server.from_cfg(options.cfg, options.target)
        with tempfile.TemporaryDirectory() as folder:
            egg = options.egg or build(Path(folder))
            version = deploy(server, egg, options.version)
            spiders = server.spiders()
    except Refused as error:
        sys.stderr.write(f"deploy: {error}\n")
        return 1
    sys.stdout.write(f"{server.project} {version} runs on {server.url}: {', '.join(spiders)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
