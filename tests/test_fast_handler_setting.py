"""`SLUICE_FAST_HANDLER` puts the fast handler in, and yields to the user's own."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from extensions.addon import use_fast_handler

FAST = "extensions.handlers.FastDownloadHandler"


@pytest.mark.parametrize(
    ("own", "http", "others"),
    [
        ({}, FAST, {}),
        ({"ftp": None}, FAST, {"ftp": None}),
        ({"http": "my.Handler"}, "my.Handler", {}),
    ],
)
def test_the_users_own_handlers_stay(own: dict, http: str, others: dict):
    """Whatever their priority is."""
    settings = Settings({"DOWNLOAD_HANDLERS": own} if own else {}, priority="cmdline")
    use_fast_handler(settings)
    handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
    assert (handlers["http"], handlers["https"]) == (http, FAST)
    for scheme, handler in others.items():
        assert handlers[scheme] == handler
