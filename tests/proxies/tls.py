"""A site behind TLS, with a certificate of its own making."""

from __future__ import annotations

import datetime as dt
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.proxies.tools import later

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


def certificate(folder: Path) -> ssl.SSLContext:
    """A server's context with a fresh self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = folder / "site.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@asynccontextmanager
async def tls_site(folder: Path) -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    """Its address, and the headers of each request that it got."""
    seen: list[dict[str, str]] = []

    async def page(request: web.Request) -> web.Response:
        seen.append(dict(request.headers))
        return web.Response(text="<title>x</title>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/{path:.*}", page)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await later(runner.setup())
    listener = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate(folder))
    await later(listener.start())
    try:
        host, port = runner.addresses[0][:2]
        yield f"https://{host}:{port}", seen
    finally:
        await later(runner.cleanup())
