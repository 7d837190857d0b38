"""The few lines of the live display, drawn for a terminal's size.

The rule it keeps: never more than half of the terminal's height, never wider than it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from .policy.wording import DASH, clock, count, duration, middle, share, short_rate
from .progress import times_in_words

if TYPE_CHECKING:
    from .domainrow import DomainRow
    from .sampler import Sampler
    from .snapshot import Snapshot

_BARS = " ▁▂▃▄▅▆▇█"


class Frame:
    """Draws the newest snapshot to the console's size: never more than half of its height."""

    def __init__(self, sampler: Sampler, *, plain: bool) -> None:
        self._sampler = sampler
        self._plain = plain

    def lines(self, s: Snapshot, width: int, height: int) -> list[Text]:
        """What is shown in *width* columns and half of *height* lines."""
        tone = {"ok": "bold", "warn": "bold yellow", "bad": "bold red"}[str(s.level)]
        sentence = _cut(Text(s.sentence.text, style=tone), width)
        bar = self._bar(s, width)
        if width < 60 or height < 14:
            return [sentence, bar]
        room = max(2, height // 2)
        lines = [
            self._rule(s, width),
            sentence,
            bar,
            self._pages(s, width),
            *self._queues(s, width),
        ]
        rest = room - len(lines)
        return (lines + self._domains(rest, width))[:room]

    def _rule(self, s: Snapshot, width: int) -> Text:
        dash = "-" if self._plain else "─"
        job = f" · {middle(s.job, 24)}" if s.job else ""
        head = f"{dash * 2} {middle(s.spider, 20)}{job} · {duration(s.running_s)} "
        tail = f" Ctrl-C stops{', twice at once' if width >= 100 else ''} {dash * 2}"
        return _cut(Text(head + dash * max(0, width - len(head) - len(tail)) + tail, "dim"), width)

    def _bar(self, s: Snapshot, width: int) -> Text:
        done = f" {share(s.account.done_share)}"
        words = f"{done}  {times_in_words(s, about='~' if self._plain else '≈')}"
        words = words if len(words) < width - 10 else done
        a, room = s.account, max(4, width - len(words))
        known = max(1, a.known)
        signs = "#x:-. " if self._plain else "██▓▒░ "
        parts = (
            (a.got, signs[0], "blue"), (a.dead, signs[1], "red"), (a.skipped, signs[2], "dim"),
            (a.left, signs[3], "blue"), (a.unread or 0, signs[4], "dim"),
        )  # fmt: skip
        text, used, through = Text(), 0, 0
        for number, sign, style in parts:
            through += number
            until = room * through // known
            if number and until == used and sign == signs[1] and used < room:
                until += 1  # what is lost is seen, however little it is
            text.append(sign * max(0, min(until, room) - used), style)
            used = max(used, min(until, room))
        text.append(" " * (room - used))
        text.append(words)
        return _cut(text, width)

    def _pages(self, s: Snapshot, width: int) -> Text:
        text = Text()
        unread = "≈" if s.account.unread else ""
        text.append("pages ", "dim").append(count(s.account.got), "bold")
        text.append(f" of {unread}{count(s.account.known)}    ", "dim")
        text.append(short_rate(s.pages_per_s), "bold")
        span_s = 600 if width < 100 else 3600
        room = min(40, width - len(text) - 12)
        if room > 8 and not self._plain:
            text.append("  " + self._spark(room, span_s), "blue")
            text.append("  10 min" if span_s == 600 else "  last hour", "dim")
        return _cut(text, width)

    def _spark(self, room: int, span_s: int) -> str:
        values = self._sampler.history.fine.column(0, span_s)
        if not values:
            return ""
        each = max(1, -(-len(values) // room))
        means = [
            sum(p) / len(p) for p in (values[i : i + each] for i in range(0, len(values), each))
        ]
        top = max(means) or 1.0
        return "".join(_BARS[min(8, max(1, round(8 * mean / top)))] for mean in means[-room:])

    def _queues(self, s: Snapshot, width: int) -> list[Text]:
        g = s.gauges
        wide = width >= 100
        cap = f" of {count(g.pending_high)}" if g.pending_high else ""
        disk = f", {count(g.pending_on_disk)} on disk" if wide and g.pending_on_disk else ""
        first = _pairs(
            ("pending", count(s.pending), f" {count(g.pending_in_memory)}{cap} in memory{disk}"),
            ("in flight", count(g.in_flight), f" of {count(g.max_in_flight)}"),
            ("delayed", count(g.delayed), ""),
            *(
                [("proxies", count(g.healthy_proxies), f" of {count(g.proxies)}")]
                if g.proxies
                else []
            ),
        )
        if g.proxies and g.healthy_proxies < g.proxies:
            first.highlight_regex(
                r"(?<=proxies )[\d,]+", "bold red" if not g.healthy_proxies else "bold yellow"
            )
        refused = DASH if s.refused_share is None else share(s.refused_share)
        pairs = [
            ("results", count(g.results_waiting), f" of {count(g.results_bound)}"),
            ("refused", refused, ""),
            ("dead", count(s.account.dead), ""),
            ("memory", f"{round(s.rss_bytes / 2**20)} MiB", ""),
        ]
        if wide:
            back = f" put off, {short_rate(s.retries_in_per_s)} back"
            pairs.insert(2, ("retries", short_rate(s.retries_out_per_s), back))
        second = _pairs(*pairs)
        if s.account.dead:
            second.highlight_regex(r"(?<=dead )[\d,]+", "bold red")
        return [_cut(first, width), _cut(second, width)]

    def _domains(self, room: int, width: int) -> list[Text]:
        """The domains that end last, then those that are held."""
        if room <= 0:
            return []
        rows = [row for row in self._sampler.book.rows.values() if row.left] if room else []
        held = [r for r in rows if r.state in {"down", "parked", "waiting", "probing", "paused"}]
        slow = (
            [r for r in rows if r.left_s is not None and r not in held] if len(rows) < 2000 else []
        )
        for_held = min(len(held), max(1, room // 3))
        slow.sort(key=lambda r: -(r.left_s or 0))
        held.sort(key=lambda r: -r.left)
        lines = []
        for number, row in enumerate(slow[: room - for_held]):
            pace = f"{row.why or row.state}"
            end = duration(row.left_s)
            lines.append(_row("slowest" if not number else "", row, pace, end, width))
        now_at = self._sampler.history_at
        for number, row in enumerate(held[:for_held]):
            due = clock(row.next_at, now_at=now_at, seconds=True) if row.next_at else "on answer"
            why = f"{row.state}, {row.why}" if row.why else row.state
            lines.append(_row("held" if not number else "", row, why, due, width))
        return lines


def _row(label: str, row: DomainRow, why: str, end: str, width: int) -> Text:
    name_room = 24 if width < 100 else 34
    why_room = max(8, width - 8 - name_room - 1 - 10 - 12)
    text = Text(f"{label:<8}", "dim")
    text.append(f"{middle(row.name, name_room):<{name_room}} ")
    text.append(f"{middle(why, why_room):<{why_room}}", "dim")
    text.append(f"{count(row.left):>10}").append(f"{end:>12}", "bold")
    return _cut(text, width)


def _pairs(*pairs: tuple[str, str, str]) -> Text:
    text = Text()
    for number, (word, value, note) in enumerate(pairs):
        text.append(("   " if number else "") + word + " ", "dim")
        text.append(value, "bold").append(note, "dim")
    return text


def _cut(text: Text, width: int) -> Text:
    text.truncate(width)
    text.no_wrap = True
    return text
