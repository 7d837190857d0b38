"""Proxies as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensions.policy.proxies import BadProxy, read_proxies, read_proxy


@pytest.mark.parametrize(
    ("line", "url", "user", "password"),
    [
        ("10.0.0.1:3128", "http://10.0.0.1:3128", None, None),
        ("HTTP://Proxy.example:80/", "http://proxy.example:80", None, None),
        ("https://p.example:443", "https://p.example:443", None, None),
        ("http://u:p@h.example:1", "http://h.example:1", "u", "p"),
        ("http://u:p%40%C3%A4@h:1", "http://h:1", "u", "p@ä"),
        ("http://me@corp:p:a/s?s#w@rd@h:1", "http://h:1", "me@corp", "p:a/s?s#w@rd"),
        ("http://[2001:db8::1]:3128", "http://[2001:db8::1]:3128", None, None),
        ("h.example:8080:user:p%40:ss", "http://h.example:8080", "user", "p%40:ss"),
        ("h.example:8080:user:p@s:s", "http://h.example:8080", "user", "p@s:s"),
        ("http://u:8080:p@ss:x@h:1", "http://h:1", "u", "8080:p@ss:x"),
        ("ho_st.example.:3128", "http://ho_st.example.:3128", None, None),
    ],
)
def test_every_common_form_is_read(line, url, user, password):
    found = read_proxy(line)
    assert (found.url, found.user, found.password) == (url, user, password)


def test_cost_and_limit_stand_after_it():
    found = read_proxy("http://h:1 cost=2.5 limit=4")
    assert (found.cost, found.limit) == (2.5, 4)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("socks5://user:geheim@h:1", "socks5:// is not supported"),
        ("http://user:geheim@", "no host and port"),
        ("http://user:geheim@host", "no host and port"),
        ("http://user:geheim@host:99999", "port"),
        ("user:geheim:host:1", "host"),
        ("http://user:geheim@ho/st:1", "host"),
        ("http://user:geheim@h:1 limit=0", "limit"),
        ("http://user:geheim@h:1 cost=-1", "cost"),
        ("http://user:geheim@h:1 geheim", "only cost"),
        ("geheim", "host and port"),
        ("user:ge@geheim:x", "port"),
    ]
    + [
        (f"http://user:geheim@{place}", "host|port")
        for place in (
            "[::1:80",
            "[zz]:80",
            "[]:80",
            "[fe80::1%eth0]:80",
            "a..b:80",
            "h\x00:80",
            "-:80",
            "*:80",
            ".:80",
            "h:0",
            "h:000001999999",
            "h:1" + "0" * 5000,
            "h:\u0661",
            "a" * 64 + ":80",
            "a." * 127 + "toolong:80",
        )
    ],
)
def test_a_bad_line_is_named_without_its_credentials(line, why):
    with pytest.raises(BadProxy, match=why) as caught:
        read_proxy(line)
    assert "geheim" not in str(caught.value)


def test_a_list_keeps_the_good_lines_and_numbers_the_bad_ones():
    text = "# ours\n\nh:1\nh:1\nnonsense\nhttp://a:x@gate:7\nhttp://b:x@gate:7\n"
    found, wrong = read_proxies(text.splitlines())
    assert [a.name for a in found] == ["h:1", "gate:7", "gate:7#2"]
    assert [w.partition(":")[0] for w in wrong] == ["line 5"]


def test_without_tls_a_proxy_that_is_spoken_to_by_tls_is_left_out():
    found, wrong = read_proxies(["https://u:geheim@h:1", "http://h:2"], tls=False)
    assert [a.name for a in found] == ["h:2"]
    assert wrong == ["line 1: https:// proxies need SLUICE_FAST_HANDLER=True"]


words = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1)


@given(words, words)
def test_no_credentials_are_ever_part_of_what_names_a_proxy(user, password):
    found = read_proxy(f"http://{user}:{password}@host.example:3128")
    assert found.url == "http://host.example:3128"
    assert found.name == "host.example:3128"
    assert repr(found) == "<proxy host.example:3128>"


@given(st.text())
def test_any_line_is_a_proxy_or_refused_by_name(line):
    try:
        found = read_proxy(line)
    except BadProxy:
        return
    assert found.url.startswith(("http://", "https://"))
