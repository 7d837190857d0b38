"""A job in Redis, shared by many workers: `JobStore` whose calls touch nothing but this process's own buffers.

The rule it keeps: the event loop never waits for Redis. What a commit says goes into a bounded buffer; `exchange`, run by
one task, carries it out and brings in what the worker may do next. A row is this worker's while its lease lasts, by Redis's
own clock; what is said of a row that is no longer this worker's is refused there.

Results and dead letters wait in a local SQLite file on their way to the sinks. A request's end goes to Redis only after
they have arrived, so that the file may be lost at any time: the request is then fetched again, by whoever is left.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import socket
import time
import uuid
from typing import TYPE_CHECKING, Any, Final

from .base import (
    Batch,
    Counts,
    DomainBacklog,
    Recovered,
    State,
    StoreBroken,
    StoreBusy,
    StoredRequest,
    StoreError,
    StoreTooNew,
)
from .redisbuffer import Outgoing
from .redisrows import read_row
from .redisscripts import RedisAway, RedisFull, Scripts, wipe
from .redisshelf import Shelf
from .redisvalues import Events, Memory, Totals, Wishes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from redis.asyncio import Redis

    from .base import DeadLetter, StagedItem
    from .redisbuffer import Parcel
    from .sqlite import SqliteJobStore

SCHEMA: Final = "1"
MAX_BUFFER: Final = 20_000
"""Rows and ends that may wait for Redis; then nothing more is fetched."""
KNOWN_SEEN: Final = 65_536
"""Fingerprints remembered here, so that a link to a page's own navigation costs nothing."""
MAX_CRASHES: Final = 3


class Fenced(StoreError):
    """This worker was taken for dead: its rows are others' now. It goes on as a new one."""


class JobLost(StoreBroken):
    """The job's keys vanished from Redis, all or some."""


class RedisJobStore:
    """`JobStore` over Redis. All calls are made on one event loop, but `checkpoint` and `close`."""

    def __init__(
        self,
        *,
        client: Redis,
        local: SqliteJobStore,
        requests_key: str,
        dupefilter_key: str,
        lease_s: float = 30.0,
        window: int = 1000,
        workers_per_domain: int = 1,
        max_crashes: int = MAX_CRASHES,
        first_domains: int = 16,
    ) -> None:
        """Keep the settings; `connect` does the work.

        Args:
            client: From redis-py; closed by `leave`.
            local: Where results and dead letters wait; opened and closed here.
            requests_key: scrapy-redis's key for what is pending, with the spider's name in it.
            dupefilter_key: Its key for what was seen.
            lease_s: A worker that is silent for so long is taken for dead.
            window: Rows that may be fetched ahead.
            workers_per_domain: How many may share one.
            max_crashes: A request in flight at so many deaths is reported.
            first_domains: How many to claim at the start.
        """
        self.events = Events()
        self.wishes = Wishes(domains=first_domains)
        self.totals = Totals()
        self.memory = Memory()
        self.refused = 0  # late acknowledgements
        self.full = False  # Redis takes nothing but ends
        self.delivers_items = True
        self.delivers_letters = True
        self.number = 0  # of this worker, in the job
        self.job = ""
        self._client = client
        self._local = local
        self._requests_key, self._dupefilter_key = requests_key, dupefilter_key
        self._scripts = Scripts(client, requests_key=requests_key, dupefilter_key=dupefilter_key)
        self._lease_ms = int(lease_s * 1000)
        self._lease_s = lease_s
        self._workers_per_domain = workers_per_domain
        self._max_crashes = max_crashes
        self._out = Outgoing()
        self._shelf = Shelf(room=window)
        self._hand: dict[int, State] = {}  # rows that were given to the owner
        self._children: dict[int, list[int]] = {}  # held ones, by parent
        self._own: set[str] = set()
        self._known: dict[bytes, None] = {}
        self._keys: dict[int, int] = {}  # of results on their way
        self._delivered = 0  # the last result that every sink has
        self._fetches = 0
        self._open = False
        self._existed = False
        self._crashed: list[StoredRequest] = []
        self._answered_due = -math.inf
        self._contact_since = math.inf
        self._skew_s = 0.0

    # --- the way in and out -----------------------------------------------------------------------

    async def connect(self) -> None:
        """Enter the job as a new worker, and fetch the first rows.

        Raises:
            RedisAway, RedisRefused: as Redis says.
            StoreBroken: what is under the keys is not this program's, or part of it is missing.
        """
        await self._scripts.load()
        if not self.number:
            await self._enter()
            self._existed = self.totals.rows > 0
        if not self._open:
            self._local.open()
            self._open = True
        with contextlib.suppress(RedisAway):  # it is tried again with all later ones
            await self.exchange()

    async def flush(self) -> bool:
        """Forget the job and whatever else is under its keys. False: not while others are at work.

        Raises:
            RedisAway, RedisRefused: as Redis says.
        """
        return await wipe(
            self._client, requests_key=self._requests_key, dupefilter_key=self._dupefilter_key
        )

    async def _enter(self) -> None:
        note = f"{socket.gethostname()} {os.getpid()}"
        (reply,) = await self._scripts.run(
            ("open", (SCHEMA, uuid.uuid4().hex, self._lease_ms, note))
        )
        if isinstance(reply, Exception):
            raise reply
        word, *rest = [_text(part) for part in reply]
        if word == "shape":
            raise StoreBroken(
                f"{rest[0]}, and is left untouched. Finish it with what wrote it, delete it, or give"
                " SCHEDULER_QUEUE_KEY and SCHEDULER_DUPEFILTER_KEY other names."
            )
        if word == "schema":
            raise StoreTooNew(
                f"The job in Redis was written by another version (schema {rest[0]}, this is"
                f" {SCHEMA}). Finish it with that one."
            )
        if word == "lost":
            raise JobLost(_lost(rest[0]))
        self.number, self.job = int(rest[0]), rest[1]
        self.totals = Totals(rows=int(rest[2]), workers=int(rest[3]) + 1)
        self._note_contact()

    async def enter_again(self) -> int:
        """Go on as a new worker after `Fenced`. Returns how many ends were lost with the old one."""
        lost = self._out.drop_ends()
        for domain in self._shelf.domains():
            self._shelf.clear(domain)
        self._hand.clear()
        self._children.clear()
        self._own.clear()
        await self._enter()
        return lost

    def open(self) -> Recovered:
        """What the first exchange has brought. Call `connect` before."""
        self._connected()
        backlogs = [self._backlog(domain) for domain in sorted(self._shelf.domains())]
        crashed, self._crashed = self._crashed, []
        return Recovered(
            backlogs=backlogs,
            delayed=self.totals.delayed,
            next_due_at=self.totals.next_due_at,
            last_id=self.number << 32,
            crashed=crashed,
            resumed=self._existed,
        )

    async def leave(self, *, wipe: bool = False, crashed: bool = False) -> tuple[int, int]:
        """Give everything back and go. Returns requests and workers that are left.

        Args:
            crashed: What was in flight counts a crash.
            wipe: Where this is the last worker and nothing is left, forget the job.
        """
        try:
            (reply,) = await self._scripts.run(
                (
                    "leave",
                    (
                        self.number,
                        self._workers_per_domain,
                        self._max_crashes,
                        int(wipe),
                        int(crashed),
                    ),
                )
            )
            if isinstance(reply, Exception):
                raise reply
            return int(reply[2]), int(reply[3])
        finally:
            await self._client.aclose()

    def close(self) -> None:
        """Close the local file. Called in a thread, after `leave`."""
        self._open = False
        self._local.close()

    def _connected(self) -> None:
        if not self._open:
            raise StoreError("The job in Redis is not open")

    # --- the store's promises ---------------------------------------------------------------------

    def seen(self, fingerprint: bytes) -> bool:
        """Is it known here to be seen? If not, the commit of its request will tell (`Events.duplicate`)."""
        self._connected()
        return fingerprint in self._known

    def commit(self, batch: Batch) -> None:
        """Take over *batch*. It is Redis's at the end of a later exchange.

        Raises:
            StoreBusy: Redis has not answered for so long, or so much waits for it, that this worker must rest.
        """
        self._connected()
        self._rest_if_needed()
        for row in batch.inserts:
            if row.id in self._hand or row.id in self._shelf or self._out.unsent(row.id):
                raise StoreError(f"There is a request {row.id} already")
        item = self._commit_locally(batch)
        letter = len(batch.dead) if self.delivers_letters else 0
        for state, id_ in batch.moved:
            if id_ in self._hand or self._shelf.drop(id_):
                self._hold(id_, state)
        for id_ in (*(id_ for _, id_ in batch.delayed), *batch.done):
            self._shelf.drop(id_)
            self._hand.pop(id_, None)
        self._follow_children(batch)
        self._out.take(batch, item=item, letter=letter)
        self._remember(batch.seen)

    def _commit_locally(self, batch: Batch) -> int:
        """Keep results, dead letters and facts. Returns the row of the last result, 0 where there is none."""
        if not (batch.items or batch.dead or batch.facts):
            return 0
        self._local.commit(Batch(items=batch.items, dead=batch.dead, facts=batch.facts))
        if not (batch.items and self.delivers_items):
            return 0
        last = self._local.last_item
        self._name(batch.items, last - len(batch.items))
        return last

    def _name(self, items: Sequence[StagedItem], before: int) -> None:
        """Give each result a key that it would have from any worker: its request, and its place there."""
        counts: dict[int, int] = {}
        for row, item in enumerate(items, before + 1):
            if item.request_id is None:
                name = f"{self.number}:{row}"
            else:
                nth = counts[item.request_id] = counts.get(item.request_id, 0) + 1
                name = f"{item.request_id}:{nth}"
            self._keys[row] = key_of(f"{self.job}:{name}")

    def _follow_children(self, batch: Batch) -> None:
        for row in batch.inserts:
            if row.state is State.HELD and row.parent is not None:
                self._hand[row.id] = State.HELD
                self._children.setdefault(row.parent, []).append(row.id)
        for parent in self._children.keys() & set(batch.done) if self._children else ():
            for id_ in self._children.pop(parent):
                if self._hand.get(id_) is State.HELD:
                    del self._hand[id_]

    def _hold(self, id_: int, state: State) -> None:
        if state in {State.WINDOW, State.LEASED}:
            self._hand[id_] = state
        else:
            self._hand.pop(id_, None)

    def _remember(self, fingerprints: Iterable[bytes]) -> None:
        known = self._known
        known.update(dict.fromkeys(fingerprints))
        while len(known) > KNOWN_SEEN:
            del known[next(iter(known))]

    def _rest_if_needed(self) -> None:
        silent_s = time.monotonic() - self._answered_due
        if silent_s > self._lease_s:
            raise RedisAway(f"Redis has not answered for {silent_s:.0f} s.")
        if len(self._out) > MAX_BUFFER:
            raise StoreBusy(f"{len(self._out)} changes wait for Redis.")

    def refill(self, domain: str, limit: int) -> list[StoredRequest]:
        """The *limit* first rows of *domain* that were fetched ahead."""
        rows = self._shelf.take(domain, limit)
        for row in rows:
            self._hand[row.id] = State.WINDOW
        return rows

    def refill_due(self, now_at: float, limit: int) -> tuple[list[StoredRequest], float | None]:
        """Nothing: what is due joins its domain's line in Redis, and comes by `refill`."""
        del now_at, limit
        return [], self.totals.next_due_at

    def outbox(self, after: int, limit: int) -> list[tuple[int, StagedItem]]:
        """Committed items with an id over *after*, in order."""
        rows = self._local.outbox(after, limit)
        for row, item in rows:
            item.key = self._keys.get(row) or key_of(f"{self.job}:{self.number}:{row}")
        return rows

    def forget_items(self, up_to: int) -> None:
        """Every sink has these: the ends of their requests may go."""
        self._local.forget_items(up_to)
        for row in [row for row in self._keys if row <= up_to]:
            del self._keys[row]
        self._delivered = max(self._delivered, up_to)
        self._out.delivered(item=self._delivered, letters=not self._local.counts().dead)

    def dead_outbox(self, limit: int) -> list[tuple[int, DeadLetter]]:
        """Committed dead letters that are not yet in the dead-letter store, in order."""
        return self._local.dead_outbox(limit)

    def forget_dead(self, ids: Iterable[int]) -> None:
        """The dead-letter store has these: the ends of their requests may go."""
        self._local.forget_dead(ids)
        self._out.delivered(item=self._delivered, letters=not self._local.counts().dead)

    def fact(self, name: str) -> str | None:
        """A small named value of this worker's; the job's own name is Redis's."""
        if name == "job" and self.job:
            return f'"{self.job}"'
        return self._local.fact(name)

    def counts(self) -> Counts:
        """The whole job as of the last exchange; what is in hand, and what is to be delivered, is this worker's."""
        local, totals = self._local.counts(), self.totals
        states = list(self._hand.values())
        leased, window = states.count(State.LEASED), states.count(State.WINDOW)
        return Counts(
            pending=max(0, totals.rows - totals.delayed - totals.held - window - leased),
            window=window,
            leased=leased,
            delayed=totals.delayed,
            held=totals.held,
            seen=totals.seen,
            outbox=local.outbox,
            dead=local.dead,
        )

    def checkpoint_due(self) -> bool:
        """Of the local file."""
        return self._local.checkpoint_due()

    def checkpoint(self) -> None:
        """Of the local file."""
        self._local.checkpoint()

    # --- for its owner ----------------------------------------------------------------------------

    def in_hand(self, id_: int) -> bool:
        """Is row *id_* this worker's?"""
        return self._hand.get(id_, State.HELD) is not State.HELD

    def hand_back(self, domain: str) -> int:
        """Give back all rows of *domain* that this worker has and has not sent. Returns how many."""
        rows = self._shelf.clear(domain)
        self._out.take(Batch(moved=[(State.PENDING, row.id) for row in rows]))
        return len(rows)

    def owns(self, domain: str) -> bool:
        """Is *domain* this worker's, as far as is known?"""
        return domain in self._own

    @property
    def domains(self) -> set[str]:
        """This worker's domains."""
        return self._own

    def line(self, domain: str) -> int:
        """Rows of *domain* that are in Redis or fetched, and not given out."""
        return self._shelf.left(domain)

    def fetched_of(self, domain: str) -> int:
        """Rows of *domain* that were fetched and not given out."""
        return len(self._shelf.peek(domain))

    @property
    def fetched(self) -> int:
        """Rows that were fetched and not given out."""
        return len(self._shelf)

    @property
    def waiting(self) -> int:
        """Rows and ends that Redis does not have yet."""
        return len(self._out)

    @property
    def sends(self) -> bool:
        """Is there something that may go to Redis now?"""
        return not self._out.is_empty

    @property
    def has_news(self) -> bool:
        """Is there something for an exchange to do at once?"""
        return (self.sends and not self.full) or bool(
            self.wishes.release or next(self._shelf.wants(len(self._own)), None)
        )

    @property
    def silent_s(self) -> float:
        """Seconds since Redis's last answer."""
        return time.monotonic() - self._answered_due

    @property
    def workers_per_domain(self) -> int:
        """How many may share one."""
        return self._workers_per_domain

    @property
    def lease_s(self) -> float:
        """How long a silent worker is taken for alive."""
        return self._lease_s

    # --- the exchange -----------------------------------------------------------------------------

    async def exchange(self) -> None:
        """Carry out what was committed, renew the lease, bring in work: one round trip.

        Raises:
            RedisAway: try again; nothing is lost, nothing is done twice.
            RedisRefused, JobLost: no retry will mend it.
            Fenced: call `enter_again`.
        """
        calls: list[tuple[str, Sequence[Any]]] = []
        parcel = (
            self._out.parcel or (self._out.pack_relief() if self.full else None) or self._out.pack()
        )
        if parcel is not None:
            calls.append((self._script_for(parcel), self._apply_arguments(parcel)))
        wanted = dict(self._shelf.wants(len(self._own)))
        release, self.wishes.release = self.wishes.release, []
        learned, self.wishes.learned = self.wishes.learned, {}
        calls.append(("fetch", self._fetch_arguments(wanted, release, learned)))
        try:
            replies = await self._scripts.run(*calls)
        except RedisAway:
            self._contact_since = math.inf
            self.wishes.learned = learned | self.wishes.learned
            raise
        fetched = replies.pop()
        self._fetches += 1
        if parcel is not None:
            self._take_verdicts(parcel, replies.pop())
        if isinstance(fetched, Exception):
            self._contact_since = math.inf
            raise fetched
        self._judge(fetched)
        self._note_contact()
        for domain in release:
            self._own.discard(domain)
        self._take_fetched(fetched)

    def _script_for(self, parcel: Parcel) -> str:
        return "relief" if self.full and not parcel.rows else "apply"

    def _apply_arguments(self, parcel: Parcel) -> list[Any]:
        return [
            self.number,
            parcel.number,
            self._workers_per_domain,
            self.wishes.domains,
            *parcel.arguments(),
        ]

    def _fetch_arguments(
        self, wanted: dict[str, int], release: list[str], learned: dict[str, str]
    ) -> list[Any]:
        in_contact_s = time.monotonic() - self._contact_since
        due_by = self.wishes.due_by
        out: list[Any] = [
            self.number,
            self._fetches,
            self._lease_ms,
            self._workers_per_domain,
            # Others' leases may have run out only because Redis was away: they get the time to say so.
            int(in_contact_s > self._lease_s),
            self._max_crashes,
            self.wishes.domains,
            self._shelf.usual(len(self._own) + self.wishes.domains),
            self._shelf.free,
            "" if due_by is None else repr(due_by),
            self.wishes.due_limit,
            int(self.wishes.memory),
            len(release),
            *release,
            len(learned),
        ]
        for domain, text in learned.items():
            out += (domain, text)
        out.append(len(wanted))
        for domain, rows in wanted.items():
            out += (domain, rows)
        out.append(len(self.wishes.watch))
        for key, taker in self.wishes.watch.items():
            out += (key, taker)
        return out

    def _take_verdicts(self, parcel: Parcel, reply: Any) -> None:
        if isinstance(reply, Exception):
            self._out.unpack()
            if isinstance(reply, RedisFull):
                self.full = True
                return
            raise reply
        self._judge(reply)
        self._out.parcel = None
        if parcel.rows:
            self.full = False
        verdicts = reply[2].decode()
        arrived, passed_on, duplicates = [], [], []
        for row, verdict in zip(parcel.rows, verdicts, strict=True):
            if verdict == "w":
                arrived.append(row.id)
                self._hand[row.id] = State.LEASED if row.state is State.LEASED else State.WINDOW
                self._own.add(row.domain)
            elif verdict == "p":
                passed_on.append(row.id)
            else:
                duplicates.append(row.id)
        self.refused += len(reply[3].split())
        for call, ids in (
            (self.events.arrived, arrived),
            (self.events.passed_on, passed_on),
            (self.events.duplicate, duplicates),
        ):
            if ids:
                call(ids)

    def _judge(self, reply: Any) -> None:
        word = _text(reply[0])
        if word == "lost":
            raise JobLost(_lost(_text(reply[1])))
        if word == "fenced":
            raise Fenced("This worker was silent for too long, and was taken for dead.")

    def _note_contact(self) -> None:
        self._answered_due = time.monotonic()
        self._contact_since = min(self._contact_since, self._answered_due)

    def _take_fetched(self, reply: Any) -> None:
        _, _, totals, rows, lines, crashed, watched = reply
        numbers = [_text(part) for part in totals]
        self.totals = Totals(
            rows=int(numbers[1]),
            delayed=int(numbers[2]),
            held=int(numbers[3]),
            seen=int(numbers[4]),
            unclaimed=int(numbers[5]),
            domains=int(numbers[6]),
            workers=int(numbers[7]),
            hungry=int(numbers[8]),
            next_due_at=float(numbers[9]) if numbers[9] else None,
            reclaimed=int(numbers[10]),
        )
        if numbers[11]:
            self.memory = Memory(int(numbers[11]), int(numbers[12] or 0), numbers[13])
            self.wishes.memory = False
        for domain, left, learned in _by(3, lines):
            name = domain.decode()
            self._own.add(name)
            self._shelf.note_line(name, int(left))
            if learned:
                self.events.learned(name, learned.decode())
        new = self._shelf.put(read_row(id_, value) for id_, value in _by(2, rows))
        for domain, fetched in new.items():
            first = fetched[0]
            self.events.backlog(DomainBacklog(domain, len(fetched), first.priority, first.rank))
        if crashed:
            found = [read_row(id_, value) for id_, value in _by(2, crashed)]
            for row in found:
                row.state = self._hand[row.id] = State.LEASED
            self._crashed += found
            self.events.crashed(found)
        # A key that came to be watched while the answer was under way comes last, and waits for the next.
        for key, number in zip(list(self.wishes.watch), watched, strict=False):
            self.events.watched(key, int(number))

    def _backlog(self, domain: str) -> DomainBacklog:
        rows = self._shelf.peek(domain)
        return DomainBacklog(domain, len(rows), rows[0].priority, rows[0].rank)


def key_of(name: str) -> int:
    """63 bits that stand for *name* in a database's key."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _lost(what: str) -> str:
    return (
        f"Part of the job vanished from Redis: {what}. It was emptied, restarted without its data, or evicts keys"
        " (maxmemory-policy must be noeviction). What it held is lost: start over with"
        " SCHEDULER_FLUSH_ON_START=True."
    )


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _by(n: int, flat: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    return zip(*[iter(flat)] * n, strict=True)
