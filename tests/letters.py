"""A dead letter to put away: each has a number, from which it gets what must differ."""

from extensions.stores.base import DeadLetter


def letter(number, **fields):
    values = {
        "uid": f"u{number}",
        "kind": "request",
        "key": f"k{number}",
        "spider": "shop",
        "url": f"http://h/{number}",
        "domain": "h",
        "reason": "http 503",
        "detail": "503 Service Unavailable",
        "attempts": 3,
        "status": 503,
        "exception": None,
        "first_at": 1000.0 + number,
        "last_at": 2000.0 + number,
        "payload": b'{"url": "http://h/"}',
    }
    return DeadLetter(**(values | fields))
