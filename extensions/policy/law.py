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

    # --- the pace
    cost_share: float = 0.01
    """Part of requests (or of time, where the host makes us wait) that probing may lose."""
    sit: float = 0.99
    """Pace as a part of what is believed: estimates are good to a hundredth. Also what a refusal
    takes off, so that of two crawlers on one limit the larger, refused more often, gives way."""
    probe_step: float = 0.03
    """First excess of a probe over the mark: finds a rise of the limit, hardly ever a burst."""
    probe_doubling_s: float = 1.3
    """The excess doubles in this time: a fivefold rise is found in about ten seconds."""
    probe_doubling_requests: float = 6.5
    """... or in this many requests on slow hosts, where a second holds no news."""
    probe_window: float = 0.5
    """... or in this part of the time that the host stays shut, where it counts by the window."""
    max_hold_s: float = 120.0
    """Longest rest between probes, so that a risen limit is found in minutes at worst."""
    few: int = 10
    """Accepted requests in a cycle from which on its rate is believed as it is."""
    same: float = 0.1
    """A limit found within this share of the mark is the one that was known."""
    quarter: float = 0.75
    """A careful step down: what too few answers may take off, what a test of noise sits at, what
    is left after a conviction of the concurrency, and the part of a whole that counts as most."""
    burst_s: float = 0.1
    """Tokens of this time may be saved up, so that a late timer does not cost pace, ..."""
    max_burst: float = 8.0
    """... but no more than this many."""

    # --- evidence
    score: float = 8.0
    """Log-likelihood that convicts, of refusals, failures and latencies alike: a false alarm in
    three thousand answers."""

    # --- refusals: limit or noise
    refusal_noise: float = 0.004
    """Share of refusals that is nobody's limit, before anything is learned."""
    refusal_step: float = 0.15
    """Excess share of refusals that the score is built to see at once; more is never noise."""
    suspect: int = 3
    """Lone refusals ..."""
    suspect_within: int = 240
    """... among so many answers, a share of over a hundredth, start a test whether they are noise.
    Also how many answers a mean is taken over that must follow a host's changes."""
    sure: float = 2.5
    """Log-odds that end the test: wrong once in twelve times, and then it comes again."""
    apart: int = 6
    """Answers between two refusals: closer ones are one event."""

    # --- waiting
    first_pause_s: float = 0.1
    """Shortest wait after a refusal or before a probe; one token's time if longer."""
    longest_first_pause_s: float = 5.0
    """... and its bound, on hosts that take a request a minute."""
    pause_growth: float = 1.7
    """Each failure in a row multiplies the wait: a host that is down sees few probes."""
    max_pause_s: float = 600.0
    """Longest computed wait. A longer Retry-After is obeyed, and the domain is shown as parked."""
    jitter: float = 0.1
    """Waits are longer by up to this share, so that crawlers do not come back in step."""
    single_probe_fails: int = 2
    """From so many failures in a row on, one request at a time asks for all."""

    # --- the concurrency
    failure_noise: float = 0.02
    """Share of failures that is nobody's limit: large sites have as many."""
    failure_step: float = 0.3
    """Excess share of failures that the score is built to see at once."""
    min_window: int = 6
    """Fewest answers before the concurrency grows: growth from two is quick."""
    max_window: int = 20
    """Most answers that growth waits for (between the two: two rounds)."""
    slow_ratio: float = 1.8
    """Latency over its base that counts as a queue in the host: there are as many waiting as worked
    on, nearly."""
    calm_latency_s: float = 0.2
    """Latencies under this are never called slow: as much comes from a busy event loop."""


LAW = Law()
