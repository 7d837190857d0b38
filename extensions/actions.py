"""What a person may do to a running crawl: pause, resume, stop, set a ceiling, replay.

The rule it keeps: each action is checked, said in the crawl's list of changes, and answered in words.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.utils.defer import deferred_from_coro

from . import names

if TYPE_CHECKING:
    from .control import Control
    from .deadletterpost import DeadLetterPost
    from .domains import Domain


class PageActions:
    """What the status page can have done, for those who hold its token."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def _said(self, domain: str | None, text: str) -> str:
        self._control.book.changed(time.time(), domain, text)
        return f"{domain} {text}" if domain else text

    def _check_known(self, domain: str) -> None:
        if domain not in self._control.book.rows:
            raise ValueError("no such domain; a port is part of its name: example.org:8080")

    def _domain(self, name: str) -> Domain:
        self._check_known(name)
        return self._control.domains.get(name, self._control.now())

    def _look_again(self, name: str) -> None:
        self._control.stand_in_line(name)
        self._control.wake_soon()

    def pause(self, by: str) -> str:
        """Hand out nothing more."""
        control = self._control
        if control.paused_since_at is None:
            control.paused_since_at, control.paused_by = control.now_at(), by
        return self._said(None, "paused on the status page")

    def resume(self) -> str:
        """Go on."""
        self._control.paused_since_at, self._control.paused_by = None, ""
        self._control.wake_soon()
        return self._said(None, "resumed on the status page")

    def stop(self) -> str:
        """End the crawl; what is pending is kept."""
        engine = self._control.engine
        if engine.spider is not None:
            deferred_from_coro(engine.close_spider_async(reason=names.REASON_STOPPED))
        return self._said(None, "stopped on the status page")

    def pause_domain(self, domain: str) -> str:
        """Ask *domain* nothing more."""
        self._domain(domain).paused = True
        return self._said(domain, "paused on the status page")

    def resume_domain(self, domain: str) -> str:
        """Ask it again."""
        self._domain(domain).paused = False
        self._look_again(domain)
        return self._said(domain, "resumed on the status page")

    def set_ceiling(self, domain: str, ceiling: int) -> str:
        """At most *ceiling* requests to *domain* at once."""
        most = self._control.crawler.settings.getint("CONCURRENT_REQUESTS")
        if not 1 <= ceiling <= most:
            raise ValueError(f"a ceiling is 1 to {most}, CONCURRENT_REQUESTS")
        self._domain(domain).governor.set_floor(max_concurrency=ceiling)
        self._look_again(domain)
        return self._said(domain, f"at most {ceiling} at once, set on the status page")

    async def replay(self, domain: str) -> str:
        """Crawl the dead letters of *domain* again."""
        self._check_known(domain)
        count = await self._post().request(domain=domain)
        return self._said(domain, f"{count} dead letters asked for again on the status page")

    async def replay_one(self, id_: int) -> str:
        """Crawl one dead letter again."""
        if not await self._post().request(ids=(id_,)):
            raise ValueError("it is gone, is being fetched again already, or is an item")
        return self._said(None, f"dead letter {id_} asked for again on the status page")

    def _post(self) -> DeadLetterPost:
        post = self._control.post
        if post is None:
            raise ValueError("no dead letters are kept: SLUICE_DEAD_LETTERS is empty")
        return post


class Actions(Protocol):
    """What the page can have done to a crawl. Each returns a line for "What changed"."""

    def pause(self, by: str) -> str:
        """Hand out nothing more."""

    def resume(self) -> str:
        """Go on."""

    def stop(self) -> str:
        """End the crawl; what is pending is kept."""

    def pause_domain(self, domain: str) -> str:
        """Ask *domain* nothing more."""

    def resume_domain(self, domain: str) -> str:
        """Ask it again."""

    def set_ceiling(self, domain: str, ceiling: int) -> str:
        """At most *ceiling* requests to *domain* at once."""

    async def replay(self, domain: str) -> str:
        """Crawl the dead letters of *domain* again."""

    async def replay_one(self, id_: int) -> str:
        """Crawl one dead letter again."""


async def carry_out(actions: Actions, name: str, values: dict[str, Any]) -> str:
    """Do what was asked for by *name*.

    Raises:
        LookupError: there is no such action, or a value is missing.
        ValueError: it cannot be done.
    """
    match name:
        case "pause":
            return actions.pause("through the status page")
        case "resume":
            return actions.resume()
        case "stop":
            return actions.stop()
        case "domain/pause":
            return actions.pause_domain(str(values["domain"]))
        case "domain/resume":
            return actions.resume_domain(str(values["domain"]))
        case "domain/ceiling":
            return actions.set_ceiling(str(values["domain"]), int(values["ceiling"]))
        case "domain/replay":
            return await actions.replay(str(values["domain"]))
        case "letter/replay":
            return await actions.replay_one(int(values["id"]))
    raise UnknownAction(name)


class UnknownAction(LookupError):
    """Nothing of that name can be done."""
