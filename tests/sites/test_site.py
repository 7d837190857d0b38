"""The scripted site does what its script says, and counts it."""

from __future__ import annotations

import http.client

import pytest

from tests.sites import Answer, Bucket, Host, InFlight, Route, Site
from tests.sites.pages import graph_links


def get(site: Site, path: str, host: int = 0) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(site.domain(host), timeout=2)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        response.body = response.read()
        return response
    finally:
        connection.close()


def test_pages_are_counted_by_url(site: Site) -> None:
    """Two requests of one URL are two hits, and the page has a title and about 1 kB."""
    assert b"<title>Page 7</title>" in get(site, "/page/7").body
    assert 1000 <= len(get(site, "/page/7").body) <= 1100
    assert site.stats().hits == {"/page/7": 2}
    assert [entry.target for entry in site.log()] == ["/page/7"] * 2


def test_a_bucket_refuses_what_is_over_its_burst() -> None:
    """Two fit, the third is refused with the header lines as they were written."""
    refusal = Answer(status=429, headers=(("Retry-After", "{wait}"), ("X-Odd", "\xff")))
    with Site(Host(limit=Bucket(rate=0.1, burst=2), refusal=refusal)) as site:
        assert [get(site, "/").status for _ in range(2)] == [200, 200]
        refused = get(site, "/")
        assert refused.status == 429
        assert refused.getheader("Retry-After") == "10"
        assert refused.getheader("X-Odd") == "\xff"
        assert site.stats().refused == 1


def test_answers_of_a_route_come_in_turn() -> None:
    """A flaky page fails once and then shows itself, for each URL on its own."""
    flaky = Route("/flaky/*", (Answer(status=503), Answer()))
    with Site(Host(routes=(flaky,))) as site:
        assert [get(site, "/flaky/a").status for _ in range(3)] == [503, 200, 200]
        assert get(site, "/flaky/b").status == 503


@pytest.mark.parametrize("fault", ["reset", "close"])
def test_faults_break_the_connection(fault: str) -> None:
    """A client sees an error, and nothing stays in flight."""
    with Site(Host(routes=(Route("/x", (Answer(fault=fault),)),))) as site:
        with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
            get(site, "/x")
        assert site.stats().in_flight == 0


def test_a_closed_host_refuses_and_comes_back_on_its_port() -> None:
    """After `listen` the same address answers again."""
    with Site(Host(), Host()) as site:
        site.close(1)
        with pytest.raises(ConnectionRefusedError):
            get(site, "/", host=1)
        assert get(site, "/").status == 200
        site.listen(1)
        assert get(site, "/", host=1).status == 200


def test_workers_keep_the_others_in_line() -> None:
    """With a limit of requests in flight of its own a busy host refuses."""
    with Site(Host(limit=InFlight(0))) as site:
        assert get(site, "/").status == 429


def test_every_page_of_the_graph_can_be_reached() -> None:
    """From page 0, for any size."""
    for total in (1, 2, 17, 500):
        found, todo = {0}, [0]
        while todo:
            for link in graph_links(total, todo.pop()):
                if link not in found:
                    found.add(link)
                    todo.append(link)
        assert found == set(range(total))
