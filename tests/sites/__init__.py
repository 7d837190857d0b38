"""A scripted web site in a process of its own: the servers that the tests and the benchmarks crawl.

`with Site(Host(...), Host(...)) as site:` starts one process that listens on one loopback address a
host. What a host does is said in `script`; what it saw is read back with `site.stats()` and
`site.log()`.
"""

from .script import Answer, Bucket, FixedWindow, Host, InFlight, Route, SlidingWindow
from .site import Received, Site, Stats

__all__ = [
    "Answer",
    "Bucket",
    "FixedWindow",
    "Host",
    "InFlight",
    "Received",
    "Route",
    "Site",
    "SlidingWindow",
    "Stats",
]
