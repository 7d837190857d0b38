"""One worker's talk with Redis: it enters the job, exchanges batches, and leaves.

The rule it keeps: what was sent and not answered is sent again as it was, and counts once. What Redis answers is carried into
this worker's hand before anybody is told of it.
"""

from __future__ import annotations

import math
import os
import socket
import time
import uuid
from typing import TYPE_CHECKING, Any

from .base import DomainBacklog, State
from .redisanswers import SCHEMA, Fetched, check, entered
from .redisscripts import RedisAway, RedisFull, Scripts
from .redisvalues import Events, Memory, Totals, Wishes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio import Redis

    from .base import StoredRequest
    from .redisbuffer import Outgoing, Parcel
    from .redishand import Hand
    from .redisvalues import Terms


class Exchange:
    """One for each worker.

    Args:
        client: From redis-py; closed by `leave`.
        requests_key, dupefilter_key: Under which the job is.
        terms: What holds between the workers.
        out: What there is to tell.
        hand: What this worker has.
        first_domains: How many to claim at the start.
    """

    def __init__(
        self,
        *,
        client: Redis,
        requests_key: str,
        dupefilter_key: str,
        terms: Terms,
        out: Outgoing,
        hand: Hand,
        first_domains: int,
    ) -> None:
        self.terms = terms
        self.events = Events()
        self.wishes = Wishes(domains=first_domains)
        self.totals = Totals()
        self.memory = Memory()
        self.crashed: list[StoredRequest] = []
        self.refused = 0  # late acknowledgements
        self.full = False  # Redis takes nothing but ends
        self.number = 0  # of this worker, in the job
        self.job = ""
        self._client = client
        self._scripts = Scripts(client, requests_key=requests_key, dupefilter_key=dupefilter_key)
        self._out = out
        self._hand = hand
        self._fetches = 0
        self._answered_due = -math.inf
        self._contact_since = math.inf

    @property
    def silent_s(self) -> float:
        """Seconds since the last answer."""
        return time.monotonic() - self._answered_due

    # --- in and out -------------------------------------------------------------------------------

    async def enter(self) -> None:
        """Enter the job as a new worker.

        Raises:
            RedisAway, RedisRefused: as Redis says.
            StoreBroken: what is under the keys is not this program's, or part of it is missing.
        """
        await self._scripts.load()
        note = f"{socket.gethostname()} {os.getpid()}"
        lease_ms = int(self.terms.lease_s * 1000)
        (reply,) = await self._scripts.run(("open", (SCHEMA, uuid.uuid4().hex, lease_ms, note)))
        if isinstance(reply, Exception):
            raise reply
        self.number, self.job, self.totals = entered(reply)
        self._note_contact()

    async def leave(self, *, wipe: bool, crashed: bool) -> tuple[int, int]:
        """Give everything back and go. Returns requests and workers that are left."""
        terms = self.terms
        arguments = (
            self.number, terms.workers_per_domain, terms.max_crashes, int(wipe), int(crashed),
        )  # fmt: skip
        try:
            (reply,) = await self._scripts.run(("leave", arguments))
            if isinstance(reply, Exception):
                raise reply
            return int(reply[2]), int(reply[3])
        finally:
            await self._client.aclose()

    def _note_contact(self) -> None:
        self._answered_due = time.monotonic()
        self._contact_since = min(self._contact_since, self._answered_due)

    # --- the exchange -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Carry out what was committed, renew the lease, bring in work: one round trip.

        Raises:
            RedisAway: try again; nothing is lost, nothing is done twice.
            RedisRefused, JobLost: no retry will mend it.
            Fenced: enter again.
        """
        calls: list[tuple[str, Sequence[Any]]] = []
        parcel = self._pack()
        if parcel is not None:
            name = "relief" if self.full and not parcel.rows else "apply"
            calls.append((name, self._apply_arguments(parcel)))
        release, self.wishes.release = self.wishes.release, []
        learned, self.wishes.learned = self.wishes.learned, {}
        watched = list(self.wishes.watch)
        calls.append(("fetch", self._fetch_arguments(release, learned)))
        try:
            replies = await self._scripts.run(*calls)
        except RedisAway:
            self._contact_since = math.inf
            self._hand.known.clear()  # what answers next may be a replica that has not heard of them
            self.wishes.learned = learned | self.wishes.learned
            raise
        fetched = replies.pop()
        self._fetches += 1
        if parcel is not None:
            self._take_verdicts(parcel, replies.pop())
        if isinstance(fetched, Exception):
            self._contact_since = math.inf
            raise fetched
        check(fetched)
        self._note_contact()
        self._hand.own.difference_update(release)
        self._take_fetched(Fetched.read(fetched), watched)

    def _pack(self) -> Parcel | None:
        out = self._out
        return out.parcel or (out.pack_relief() if self.full else None) or out.pack()

    def _apply_arguments(self, parcel: Parcel) -> list[Any]:
        return [
            self.number,
            parcel.number,
            self.terms.workers_per_domain,
            self.wishes.domains,
            *parcel.arguments(),
        ]

    @property
    def _has_nothing(self) -> bool:
        return not (self._hand.rows or len(self._hand.shelf)) and self._out.is_clear

    def _fetch_arguments(self, release: list[str], learned: dict[str, str]) -> list[Any]:
        terms, wishes, hand = self.terms, self.wishes, self._hand
        in_contact_s = time.monotonic() - self._contact_since
        wanted = dict(hand.shelf.wants(len(hand.own)))
        return [
            self.number,
            self._fetches,
            int(terms.lease_s * 1000),
            terms.workers_per_domain,
            # Others' leases may have run out only because Redis was away: they get the time to say so.
            int(in_contact_s > terms.lease_s),
            terms.max_crashes,
            wishes.domains,
            hand.shelf.usual(len(hand.own) + wishes.domains),
            hand.shelf.free,
            "" if wishes.due_by is None else repr(wishes.due_by),
            wishes.due_limit,
            int(wishes.memory),
            int(self._has_nothing),
            len(release),
            *release,
            *_pairs(learned),
            *_pairs(wanted),
            *_pairs(wishes.watch),
        ]

    # --- the answer -------------------------------------------------------------------------------

    def _take_verdicts(self, parcel: Parcel, reply: Any) -> None:
        if isinstance(reply, Exception):
            self._out.unpack()
            if isinstance(reply, RedisFull):
                self.full = True
                return
            raise reply
        check(reply)
        self._out.parcel = None
        if parcel.rows:
            self.full = False
        told: dict[str, list[int]] = {"w": [], "p": [], "d": []}
        for row, verdict in zip(parcel.rows, reply[2].decode(), strict=True):
            told[verdict].append(row.id)
            if verdict == "w":
                self._hand.arrived(row)
        self.refused += len(reply[3].split())
        events = self.events
        for call, ids in (
            (events.arrived, told["w"]),
            (events.passed_on, told["p"]),
            (events.duplicate, told["d"]),
        ):
            if ids:
                call(ids)

    def _take_fetched(self, fetched: Fetched, watched: list[str]) -> None:
        hand, events = self._hand, self.events
        self.totals = fetched.totals
        if fetched.memory is not None:
            self.memory, self.wishes.memory = fetched.memory, False
        for inherited in fetched.inherited:
            hand.own.add(inherited.domain)
            events.inherited(inherited)
        for domain, left in fetched.lines:
            hand.own.add(domain)
            hand.shelf.note_line(domain, left)
        for domain, rows in hand.shelf.put(hand.new(fetched.rows)).items():
            first = rows[0]
            events.backlog(DomainBacklog(domain, len(rows), first.priority, first.rank))
        if fetched.crashed:
            for row in fetched.crashed:
                row.state = hand.rows[row.id] = State.LEASED
            self.crashed += fetched.crashed
            events.crashed(fetched.crashed)
        for key, number in zip(watched, fetched.watched, strict=True):
            events.watched(key, number)


def _pairs(values: dict[str, Any]) -> list[Any]:
    """How many, and then each name and value."""
    out: list[Any] = [len(values)]
    for pair in values.items():
        out += pair
    return out
