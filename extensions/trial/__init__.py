"""The trial: a hostile site on loopback, to see a crawler at work without any network."""

from .hosts import HOSTS, TrialHost, scaled
from .report import HostResult, report
from .site import Seen, TrialSite

__all__ = ["HOSTS", "HostResult", "Seen", "TrialHost", "TrialSite", "report", "scaled"]
