"""Every constant of the control law, in one place, each with its reason.

The law believes a limit (the *mark*), sits just under it, now and then tries a little more, and
pays for each refusal that a trial costs with enough accepted requests. The lab's sensitivity table
shows what halving and doubling each constant does.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """The numbers that the policies share. Immutable, so one object serves every domain."""

    cost_share: float = 0.01
    """Part of requests (or of time, where the host makes us wait) that probing may lose."""
    sit: float = 0.99
    """Pace while holding, as a part of the mark: the estimate is good to a hundredth."""
    probe_step: float = 0.03
    """First excess of a probe over the mark: finds a rise of the limit, hardly ever a burst."""
    probe_doubling_s: float = 1.3
    """The excess doubles in this time: a fivefold rise is found in about ten seconds."""
    probe_doubling_requests: float = 6.5
    """... or in this many requests on slow hosts, where a second holds no news."""
    probe_window: float = 0.5
    """... or in this part of the time that the host stays shut, where it counts by the window."""
    max_hold_s: float = 120.0
    """Longest rest (or 100 requests), so that a risen limit is found in minutes at worst."""
    refusal_noise: float = 0.004
    """Share of refusals that is nobody's limit, before anything is learned."""
    refusal_step: float = 0.15
    """Excess share of refusals that the score is built to see at once."""
    refusal_score: float = 8.0
    """Score that convicts the pace: three refusals within some twenty answers."""
    doubt_sit: float = 0.75
    """Pace while testing whether refusals are noise: a limit would not refuse there."""
    first_pause_s: float = 0.1
    """Shortest wait after a refusal or before a probe; one token's time if longer."""
    longest_first_pause_s: float = 5.0
    """... and its bound on hosts that take a request a minute."""
    pause_growth: float = 1.7
    """Each failure in a row multiplies the wait: a host that is down sees few probes."""
    max_pause_s: float = 600.0
    """Longest computed wait. A longer Retry-After is obeyed, and the domain is shown as parked."""
    jitter: float = 0.1
    """Waits are longer by up to this share, so that crawlers do not come back in step."""
    single_probe_fails: int = 2
    """From so many failures in a row on, one request at a time asks for all."""
    failure_noise: float = 0.02
    """Share of failures that is nobody's limit: large sites have as many."""
    failure_step: float = 0.3
    """Excess share of failures that the score is built to see at once."""
    failure_score: float = 11.0
    """Score that convicts the concurrency: four failures close together."""
    retreat: float = 0.7
    """Concurrency after a conviction, as a part of what failed."""
    slow_ratio: float = 1.8
    """Median latency over its base that counts as a queue in the host."""
    calm_latency_s: float = 0.2
    """Latencies under this are never called slow: as much comes from a busy event loop."""


LAW = Law()
