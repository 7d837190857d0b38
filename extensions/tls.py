"""Scrapy's TLS settings as a context of the standard library, for handlers outside Twisted."""

from __future__ import annotations

import logging
import os
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_log = logging.getLogger(__name__)

_VERSIONS = {
    "TLSv1.0": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


def client_context(settings: BaseSettings) -> ssl.SSLContext:
    """A client context that follows Scrapy's TLS settings.

    Certificates are checked only where ``DOWNLOAD_VERIFY_CERTIFICATES`` asks for it, as in Scrapy:
    a crawler reads public pages, and half-broken certificates are part of the web.

    Raises:
        ValueError: a ``DOWNLOAD_TLS_*_VERSION`` that Scrapy does not know either.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"):
        context.load_default_certs()
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if (lowest := _version(settings, "DOWNLOAD_TLS_MIN_VERSION")) is not None:
        context.minimum_version = lowest
    if (highest := _version(settings, "DOWNLOAD_TLS_MAX_VERSION")) is not None:
        context.maximum_version = highest
    if ciphers := settings.get("DOWNLOADER_CLIENT_TLS_CIPHERS"):
        context.set_ciphers(ciphers)
    if key_log := os.environ.get("SSLKEYLOGFILE"):
        try:
            context.keylog_filename = key_log
        except OSError as error:
            _log.warning("Cannot write TLS session keys to %s: %s", key_log, error)
    return context


def _version(settings: BaseSettings, name: str) -> ssl.TLSVersion | None:
    value = settings.get(name)
    if value is None:
        return None
    try:
        return _VERSIONS[value]
    except KeyError:
        known = ", ".join(_VERSIONS)
        raise ValueError(f"Unknown {name} value: {value}. Known: {known}") from None
