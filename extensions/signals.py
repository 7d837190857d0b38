"""Signals that Sluice sends, in Scrapy's manner: `crawler.signals.connect(handler, signals.held)`.

None of them waits for its handlers, and a handler that raises is logged and changes nothing.
Arguments are passed by name; a handler takes those it wants.
"""

# domain: str, note: str. A host refused (429, or 503 with Retry-After); note: what it said.
refused = object()
# domain: str, state: str, why: str, until_at: float | None. A domain gets nothing for a while:
# state is "waiting", "parked", "probing" or "down"; until_at is in wall-clock seconds.
held = object()
# domain: str, held_s: float. It is asked again.
released = object()
# letter: DeadLetter. Something was given up; it is kept for a replay.
dead_lettered = object()
# pending: int. So much is pending that the spider's start() waits.
gate_closed = object()
# pending: int. It goes on.
gate_opened = object()
# code: str, sentence: str, level: str. Something else holds the crawl back now.
bottleneck_changed = object()
