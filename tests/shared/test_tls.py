"""A shared crawl over TLS, with an authority of its own making. The wheel's server has no TLS; Debian's has."""

from __future__ import annotations

import datetime as dt
import ipaddress
import shutil
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.needs import needs
from tests.shared.workers import Worker
from tests.valkey import Tls, valkey

if TYPE_CHECKING:
    from pathlib import Path

SERVER = shutil.which("redis-server")
pytestmark = needs("redis-server", found=SERVER)


def signed(folder: Path, name: str, by: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None):
    """A certificate and its key, in files; by itself where *by* nobody else."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signer = by or (subject, key)
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(signer, hashes.SHA256())
    )
    files = folder / f"{name}.crt", folder / f"{name}.key"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files, (subject, key)


@pytest.fixture
def server(tmp_path):
    (authority, _), signer = signed(tmp_path, "authority", None)
    (certificate, key), _ = signed(tmp_path, "server", signer)
    with valkey(
        tmp_path / "v", binary=str(SERVER), tls=Tls(authority, certificate, key)
    ) as running:
        yield running


@pytest.mark.parametrize("said", ["in the URL", "in REDIS_PARAMS"])
def test_a_crawl_over_tls(server, tmp_path, site, said):
    urls = site.urls(60)
    (tmp_path / "s").write_text("\n".join(urls))
    authority = tmp_path / "authority.crt"
    where = {"SLUICE_FRONTIER": f"{server.url}?ssl_ca_certs={authority}"}
    if said == "in REDIS_PARAMS":
        where = {
            "SLUICE_FRONTIER": "redis",
            "REDIS_PARAMS": f'{{"url": "{server.url}", "ssl_ca_certs": "{authority}"}}',
        }
    worker = Worker(tmp_path / "w", "pages", f"seeds={tmp_path / 's'}", **where)
    assert worker.wait(60) == 0, worker.text()[-3000:]
    assert len((tmp_path / "w/results/pages.jsonl").read_text().splitlines()) == len(urls)


def test_an_authority_that_is_not_known_ends_the_run_with_a_message(server, tmp_path):
    (tmp_path / "s").write_text("http://127.0.0.1:9/")
    worker = Worker(tmp_path / "w", "pages", f"seeds={tmp_path / 's'}", SLUICE_FRONTIER=server.url)
    assert worker.wait(30) not in {0, 3}
    assert "Redis's certificate is not trusted" in worker.text()
