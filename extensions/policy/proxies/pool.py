"""The pool: who may carry the next request of a domain, and what the end of each says of whom.

The rule it keeps: a domain's ceiling is what its healthy pairs carry, from one request to the next.

Among the cheapest proxies that are any good for the domain the least loaded goes first; equals take turns, so none starves.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from .cohort import TOGETHER_S, Cohort
from .member import Health, Member
from .news import Charge, LimitBy, News
from .pairs import Pairs
from .places import NOWHERE, Places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..governor import DomainGovernor
    from ..outcome import Outcome
    from ..ticket import Ticket
    from .address import Address
    from .pairs import Pair

FIRST_TRY_S = 0.5
LAST_TRY_S = 4.0
"""How often some proxies are tried while none is healthy, whatever their own rests say: there is nothing else to do. One at
first, then twice as many each time, up to a quarter of them."""
WITNESSES = 8
"""So many proxies in a row that got nothing from one domain (or all, if there are fewer) speak against the domain ..."""
DOUBT_S = 3.0
"""... after this time without an answer, if they got answers elsewhere meanwhile ..."""
LONG_DOUBT_S = 60.0
"""... after this time if they only tell of it (502), and there is no other domain to try them on."""
TRIES = 3
"""A request that got nothing through so many proxies, while others got answers, is to blame itself."""
PATIENCE_S = 1.0
"""A failure sooner than this is no silence that answers to others could speak against."""
MAX_SESSIONS = 10_000
UNLIMITED = 1_000


@dataclass(slots=True, eq=False)
class Ride:
    """One request on its way through a proxy; kept by the caller until it ended."""

    member: Member
    domain: str
    sent_due: float
    ticket: Ticket | None  # of the pair's governor
    probe: bool  # it was the only one, to see whether the proxy is back
    left: bool = False  # on the wire; until then it holds a place that it does not use

    @property
    def name(self) -> str:
        """What its proxy is called."""
        return self.member.address.name


@dataclass(slots=True, frozen=True)
class Wait:
    """No proxy may carry it now.

    Attributes:
        until_due: Ask again then; infinity: when a request ends.
        none_good: No proxy is healthy, or the domain has sent them all away; else they are only busy.
    """

    until_due: float
    none_good: bool


BUSY: Final = Wait(math.inf, none_good=False)


class ProxyPool:
    """All proxies of one crawl.

    Args:
        limit_by: Whose limits hold.
        ceiling: Requests that one proxy carries at once, where its line says nothing else.
        ban_rest_s: A pair's first rest after a ban.
        u: Uniform draws from [0, 1).
        pair_governor: Makes the governor of a pair of the domain named; only asked with `LimitBy.PROXY`.

    Attributes:
        answered_due: When a proxy last brought an answer.
    """

    def __init__(
        self,
        *,
        limit_by: LimitBy = LimitBy.BOTH,
        ceiling: int = 8,
        ban_rest_s: float = 60.0,
        u: Callable[[], float],
        pair_governor: Callable[[str], DomainGovernor] | None = None,
    ) -> None:
        self._limit_by = limit_by
        self._ceiling = UNLIMITED if limit_by is LimitBy.TARGET else ceiling
        self._ban_rest_s = ban_rest_s
        self._u = u
        self._pair_governor = pair_governor if limit_by is LimitBy.PROXY else None
        self._members: list[Member | None] = []
        self._free: list[int] = []  # places of those that went
        self._by_key: dict[object, Member] = {}
        self._places = Places()
        self._tiers: list[int] = []  # bit sets by cost, the cheapest first
        self._asleep: list[tuple[float, int]] = []
        self._domains: dict[str, Pairs] = {}
        self._sessions: dict[str, Member] = {}
        self._cohort: Cohort | None = None  # the youngest
        self._try_due = math.inf  # while none is healthy: when some proxy is tried at the latest
        self._try_s = FIRST_TRY_S
        self._tries = 1
        self._rose_due = -math.inf  # when a proxy was last found to be back
        self.answered_due = -math.inf

    # -- the list ------------------------------------------------------------------------------------------------------

    def replace(self, addresses: Iterable[Address]) -> tuple[int, int]:
        """From now on the pool is *addresses*; those that stay keep what is known of them. Returns how many came and went."""
        wanted = {address.key: address for address in addresses}
        gone = [member for key, member in self._by_key.items() if key not in wanted]
        for member in gone:
            self._remove(member)
        came = 0
        for key, address in wanted.items():
            known = self._by_key.get(key)
            if known is None:
                self._add(address)
                came += 1
            else:
                known.address = address
                known.ceiling = address.limit or self._ceiling
                known.limit = min(known.limit, known.ceiling)
                self._stand(known)
        by_cost: dict[float, int] = {}
        for member in self._by_key.values():
            cost = member.address.cost
            by_cost[cost] = by_cost.get(cost, 0) | 1 << member.place
        self._tiers = [by_cost[cost] for cost in sorted(by_cost)]
        return came, len(gone)

    def _add(self, address: Address) -> None:
        place = self._free.pop() if self._free else len(self._members)
        member = Member(address=address, place=place, ceiling=address.limit or self._ceiling)
        if place == len(self._members):
            self._members.append(member)
        else:
            self._members[place] = member
        self._by_key[address.key] = member
        self._stand(member)

    def _remove(self, member: Member) -> None:
        self._places.put(member.place, NOWHERE, alive=False)
        member.gone = True  # from now on its place may be another's
        del self._by_key[member.address.key]
        self._members[member.place] = None
        self._free.append(member.place)
        for pairs in self._domains.values():
            pairs.forget_place(member.place)

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._by_key.values())

    @property
    def healthy(self) -> int:
        """Proxies that carry requests."""
        return self._places.alive.bit_count()

    @property
    def state_size(self) -> int:
        """Pairs that something is remembered of."""
        return sum(len(pairs.known) for pairs in self._domains.values())

    def forget(self, domain: str) -> None:
        """The crawl has no more work for *domain*."""
        self._domains.pop(domain, None)

    # -- places --------------------------------------------------------------------------------------------------------

    def _stand(self, member: Member) -> None:
        """Put *member* where it belongs by now."""
        if not member.gone:
            self._places.put(member.place, member.load, alive=member.health is Health.HEALTHY)

    def _wake(self, now: float) -> None:
        """Let those be tried whose rest is over; while none is healthy, one of them sooner."""
        while self._asleep and self._asleep[0][0] <= now:
            due, place = heapq.heappop(self._asleep)
            member = self._members[place]
            if member is None or member.health is not Health.RESTING or member.rest_due > due:
                continue
            self._try(member)
        if not self._places.alive and self._try_due <= now:
            self._try_s = min(LAST_TRY_S, 2 * self._try_s)
            self._try_due = now + self._try_s
            self._tries = min(2 * self._tries, max(1, len(self) // 4))
            resting = [m for m in self._by_key.values() if m.health is Health.RESTING]
            for member in heapq.nsmallest(self._tries, resting, key=lambda m: m.rest_due):
                self._try(member)

    def _try(self, member: Member) -> None:
        member.try_now()
        self._stand(member)

    def _sleep(self, member: Member, now: float) -> None:
        heapq.heappush(self._asleep, (member.rest_due, member.place))
        self._stand(member)
        if not self._places.alive and self._try_due == math.inf:
            self._try_s = FIRST_TRY_S
            self._try_due = now + self._try_s
            self._tries = 1

    def next_due(self) -> float:
        """When some proxy may be tried again, though nothing happens."""
        due = self._asleep[0][0] if self._asleep else math.inf
        return due if self._places.alive else min(due, self._try_due)

    # -- the question --------------------------------------------------------------------------------------------------

    def choose(self, domain: str, now: float, session: str | None = None) -> Member | Wait:
        """The proxy for the next request of *domain*, or until when none may carry it."""
        self._wake(now)
        pairs = self._domains.get(domain)
        blocked = resting = 0
        if pairs is not None:
            pairs.wake(now)
            blocked, resting = pairs.blocked, pairs.resting
        if session is not None:
            return self._of_session(session, domain, now, blocked, resting)
        usable = 0
        for tier in self._tiers:
            found = self._pick(tier & ~blocked, domain, now)
            if found is not None:
                return found
            usable = tier & self._places.alive & ~resting
            if usable:
                break
        if usable:
            pairs = self._domains.get(domain)
            return BUSY if pairs is None else Wait(pairs.next_due(), none_good=False)
        due = self.next_due()
        return Wait(due if pairs is None else min(due, pairs.next_due()), none_good=True)

    def _pick(self, allowed: int, domain: str, now: float) -> Member | None:
        """The least loaded of *allowed* that may take one more."""
        while (place := self._places.least_loaded(allowed)) is not None:
            if self._pair_governor is None or self._pair_may(domain, place, now):
                return self._members[place]
            allowed &= ~(1 << place)
        return None

    def _pair_may(self, domain: str, place: int, now: float) -> bool:
        """Does the pair's own governor let another one go? If not, it is asked when it does."""
        pairs = self._pairs(domain)
        pair = pairs.pair(place)
        if pair.governor is None:
            return True
        due = pair.governor.next_send_due(now, pair.in_flight)
        if due <= now:
            return True
        pairs.block(place, due)
        return False

    def _of_session(
        self, session: str, domain: str, now: float, blocked: int, resting: int
    ) -> Member | Wait:
        member = self._sessions.get(session)
        if member is not None and (
            member.gone or not self._places.alive >> member.place & 1 or resting >> member.place & 1
        ):
            del self._sessions[session]
            member = None
        if member is None:
            found = self.choose(domain, now)
            if isinstance(found, Member):
                if len(self._sessions) >= MAX_SESSIONS:
                    del self._sessions[next(iter(self._sessions))]
                self._sessions[session] = found
            return found
        if member.load < 0 or blocked >> member.place & 1:
            return BUSY
        if self._pair_governor is not None and not self._pair_may(domain, member.place, now):
            return BUSY
        return member

    def none_good(self, domain: str) -> bool:
        """Is no proxy healthy that *domain* has not sent away?"""
        pairs = self._domains.get(domain)
        return not (self._places.alive if pairs is None else self._places.alive & ~pairs.resting)

    # -- the news ------------------------------------------------------------------------------------------------------

    def sent(self, member: Member, domain: str, now: float) -> Ride:
        """A request of *domain* leaves through *member*."""
        member.in_flight += 1
        probe = member.health is Health.TRYING and not member.probe_out
        if probe:
            member.probe_out = True
        self._stand(member)
        pairs = self._domains.get(domain)
        ticket = None if pairs is None else pairs.sent(member.place, now)
        return Ride(member, domain, now, ticket, probe)

    def sent_along(self, ride: Ride, now: float) -> Ride:
        """Something leaves in the place of *ride*, which has not left and waits for it."""
        along = self.sent(ride.member, ride.domain, now)
        along.probe, ride.probe = along.probe or ride.probe, False
        return along

    def abandoned(self, ride: Ride, now: float) -> None:
        """It never left: a cache answered, a middleware dropped it."""
        pair = self._leave(ride)
        if ride.probe and ride.member.health is Health.TRYING:
            ride.member.probe_out = False
            self._stand(ride.member)
        if pair is not None and ride.ticket is not None and pair.governor is not None:
            pair.governor.abandoned(ride.ticket, now)

    def _leave(self, ride: Ride) -> Pair | None:
        member = ride.member
        member.in_flight -= 1
        if member.gone:
            return None
        self._stand(member)
        pairs = self._domains.get(ride.domain)
        pair = None if pairs is None else pairs.known.get(member.place)
        if pairs is not None and pair is not None:
            pair.in_flight = max(0, pair.in_flight - 1)
            pairs.free(member.place)
        return pair

    def finished(
        self,
        ride: Ride,
        news: News,
        now: float,
        *,
        outcome: Outcome,
        latency_s: float = 0.0,
        wait_s: float | None = None,
        tries: int = 0,
    ) -> Charge:
        """How it ended; returns who answers for it.

        Args:
            ride: What `sent` gave for it.
            news: How it ended.
            now: Monotonic seconds.
            outcome: What it would say of the host's capacity, if it is the host's answer.
            latency_s: Time to the answer.
            wait_s: The host's own Retry-After.
            tries: How often this request has come to nothing through proxies before.
        """
        pair = self._leave(ride)
        charge = self._judge(ride, news, now, wait_s, tries)
        if pair is not None and pair.governor is not None and ride.ticket is not None:
            if charge is Charge.PROXY or news is News.BANNED:
                pair.governor.abandoned(ride.ticket, now)
            else:
                pair.governor.finished(
                    ride.ticket, outcome, now, latency_s=latency_s, retry_after_s=wait_s
                )
        return charge

    def _judge(
        self, ride: Ride, news: News, now: float, wait_s: float | None, tries: int
    ) -> Charge:
        member = ride.member
        if news is News.PROXY:
            self._fell(ride, now, sure=True)
            return Charge.PROXY
        if news in {News.BAD_GATEWAY, News.SILENCE}:
            return self._came_to_nothing(ride, news, now, tries)
        if member.passed(now, probe=ride.probe):
            self._rose(member, now)
        self._stand(member)
        self.answered_due = now
        if member.gone:
            return Charge.NOBODY
        return self._judge_pair(ride, news, now, wait_s)

    def _judge_pair(self, ride: Ride, news: News, now: float, wait_s: float | None) -> Charge:
        place = ride.member.place
        if news is not News.ANSWERED and ride.domain in self._domains:
            self._domains[ride.domain].row = 0  # it is there
        if news is News.BANNED:
            self._pairs(ride.domain).banned(place, now, first_s=self._ban_rest_s, u=self._u())
            return Charge.PAIR
        if news is News.REFUSED:
            if self._limit_by is LimitBy.PROXY:
                return Charge.PAIR  # its governor holds it
            if self._limit_by is LimitBy.TARGET:
                return Charge.TARGET
            again = self._pairs(ride.domain).refused(place, now, wait_s=wait_s)
            return Charge.PAIR if again else Charge.TARGET
        pairs = self._domains.get(ride.domain)
        if pairs is not None:
            pairs.answered(place, now)
            self._tidy(ride.domain, pairs, place, now)
        return Charge.NOBODY

    def _came_to_nothing(self, ride: Ride, news: News, now: float, tries: int) -> Charge:
        member = ride.member
        waited_s = now - ride.sent_due
        if waited_s >= PATIENCE_S and member.answered_due > now - 0.5 * waited_s:
            return Charge.TARGET  # it carried others' answers while this one was silent
        pairs = self._pairs(ride.domain)
        if not member.gone:
            pairs.got_nothing(member.place, now)
        answered = self.answered_due > ride.sent_due
        if (tries >= TRIES and answered) or self._is_targets(pairs, news, now):
            if ride.probe and member.health is Health.TRYING:
                member.rest_again(now)
                self._sleep(member, now)
            return Charge.TARGET
        self._fell(ride, now, sure=False)
        if not member.gone:
            pairs.doubt(member.place, now, healthy=member.health is Health.HEALTHY)
        return Charge.PROXY

    def _is_targets(self, pairs: Pairs, news: News, now: float) -> bool:
        """Have so many proxies got nothing from the domain that it must be the domain?"""
        if pairs.row.bit_count() < min(WITNESSES, len(self)):
            return False
        silent_s = now - pairs.row_due
        if self.answered_due > pairs.row_due:  # elsewhere: an answer of this domain ends the row
            return silent_s >= DOUBT_S
        return news is News.BAD_GATEWAY and silent_s >= LONG_DOUBT_S

    def _fell(self, ride: Ride, now: float, *, sure: bool) -> None:
        member = ride.member
        if ride.probe and ride.sent_due < self._rose_due and member.health is Health.TRYING:
            member.rest_again(now)  # sent before others came back: it tells of the time before that
            member.cohort = None
            self._sleep(member, now)
            return
        fell = member.failure(now, sure=sure, probe=ride.probe, sent_due=ride.sent_due, u=self._u)
        if fell and not member.gone:
            self._lay_down(member, now)
            self._sleep(member, now)
        self._stand(member)

    def _lay_down(self, member: Member, now: float) -> None:
        """*member* rests: as one of those that fell with it, and for all of them if it was tried."""
        if member.unwelcome:
            return
        if member.cohort is not None:
            following = member.cohort.tried(member, now, u=self._u())
            if following is not None and following is not member:
                self._sleep(following, now)
            return
        young = self._cohort
        if young is None or now - young.began_due > TOGETHER_S:
            young = self._cohort = Cohort(now)
        young.join(member, now, u=self._u())

    def _rose(self, member: Member, now: float) -> None:
        """*member* is back: those that fell with it, and all if none was well, are tried at once."""
        self._try_due = math.inf
        self._rose_due = now
        cohort, member.cohort = member.cohort, None
        fallen = cohort.members if cohort is not None else []
        for other in list(fallen if self._places.alive else self._by_key.values()):
            if other.health is Health.RESTING and not other.unwelcome and not other.gone:
                other.cohort = None
                other.rest_due = now
                self._try(other)

    def _pairs(self, domain: str) -> Pairs:
        pairs = self._domains.get(domain)
        if pairs is None:
            make = self._pair_governor
            pairs = self._domains[domain] = Pairs(None if make is None else partial(make, domain))
        return pairs

    def _tidy(self, domain: str, pairs: Pairs, place: int, now: float) -> None:
        """Forget what is not worth remembering."""
        pair = pairs.known.get(place)
        if pair is not None and pair.forgettable(now):
            del pairs.known[place]
        if not pairs.known and not pairs.row:
            del self._domains[domain]
