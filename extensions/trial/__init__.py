"""The trial: a hostile site on loopback, to see a crawler at work without any network.

Its servers are in `.site`, which needs aiohttp and is imported only where they run.
"""

from .hosts import HOSTS, TrialHost, scaled
from .report import HostResult, report

__all__ = ["HOSTS", "HostResult", "TrialHost", "report", "scaled"]
