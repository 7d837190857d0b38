"""The proxy pool: who may carry the next request, and who is to blame when it came to nothing."""

from .address import Address, BadProxy, read_proxies, read_proxy
from .news import Charge, LimitBy, News
from .pool import ProxyPool, Ride, Wait

__all__ = [
    "Address",
    "BadProxy",
    "Charge",
    "LimitBy",
    "News",
    "ProxyPool",
    "Ride",
    "Wait",
    "read_proxies",
    "read_proxy",
]
