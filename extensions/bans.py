"""Applies the ban rules, and the spider's own `is_ban(response)`, to a response.

The rule it keeps: a rule that raises has said nothing. It is counted and named once, and the page goes on.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest
from scrapy.http import TextResponse

from . import names
from .policy.bans import HEAD_CHARS, BanRules

if TYPE_CHECKING:
    from scrapy.http import Response

    from .control import Control

logger = logging.getLogger(__name__)


class Banned(IgnoreRequest):
    """A ban page was the last answer to a request that may not be tried again."""


class BanCheck:
    """Looks at each response of one crawl."""

    def __init__(self, control: Control) -> None:
        config = control.config
        self._control = control
        self._rules = BanRules(
            statuses=config.ban_statuses, titles=config.ban_titles, patterns=config.ban_patterns
        )
        self._told = False

    def verdict(self, response: Response) -> str | None:
        """Why *response* is a ban; None: it is none, as far as the rules can say."""
        try:
            own = getattr(self._control.spider, "is_ban", None)
            if own is not None and own(response):
                return "the spider's is_ban"
            head = ""
            if self._rules.reads_pages and isinstance(response, TextResponse):
                head = response.body[: HEAD_CHARS * 2].decode(response.encoding, "replace")
            return self._rules.verdict(response.status, head[:HEAD_CHARS])
        except Exception:
            self._control.stats.inc_value(names.STAT_BAN_ERRORS)
            if not self._told:
                self._told = True
                logger.exception("A ban rule failed on %s; it counts as no ban", response)
            return None
