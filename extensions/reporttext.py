"""The report for a terminal and for a mail: verdict, account, what held it back, what is lost and where, what next.

The rule it keeps: at most 80 columns and 45 lines, whatever the names are.
"""

from __future__ import annotations

from typing import Any

from .policy.bottleneck import LEVELS, Code, Level
from .policy.sentences import NAMES
from .policy.wording import clock, count, duration, host, middle, plural, rate, share
from .report import is_complete, verdict

WIDTH = 80
_WIDEST_BAR = 12
_WIDEST_HOST = 38


def text_report(data: dict[str, Any]) -> str:
    """The report for a terminal and for a mail: at most 80 columns."""
    parts = [
        _title(data),
        _wrap(verdict(data)),
        _account(data),
        _held(data),
        _reasons(data),
        _domains(data),
        _bugs(data),
        _worth(data),
        _next(data),
    ]
    body = "\n\n".join("\n".join(part) for part in parts if part)
    rule = data["status"]["exit_rule"]
    code = data["status"]["exit_code"]
    ending = "" if code is None else f"\nexit code {code}: {rule}"
    return f"{body}{ending}\n"


def _title(data: dict[str, Any]) -> list[str]:
    status = data["status"]
    start, end = status["started_at"], status["at"]
    job = f" · job {middle(status['job'], 30)}" if status["job"] else ""
    span = (
        f"{clock(start, now_at=end, seconds=True)} to {clock(end, now_at=end, seconds=True)} "
        f"({duration(status['running_s'])})"
    )
    return [f"{middle(status['spider'], 20)}{job} · {span}"]


def _wrap(line: str, width: int = WIDTH) -> list[str]:
    words, lines = line.split(" "), [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] += (" " if lines[-1] else "") + word
    return lines


def _account(data: dict[str, Any]) -> list[str]:
    status = data["status"]
    account = status["account"]
    asked = account["asked"]

    def line(word: str, number: int, note: str = "") -> str:
        return f"  {word:<12}{count(number):>10}   {note}".rstrip()

    got = share(account["got"] / asked) if asked else "none"
    skips = ", ".join(f"{middle(k, 24)} {count(v)}" for k, v in _top(status["skips"], 3))
    lines = [line("asked for", asked)]
    lines.append(line("got", account["got"], f"{got}, {rate(status['pages_per_s_mean'])}"))
    if account["skipped"]:
        lines.append(line("skipped", account["skipped"], skips))
    items = status["dead_total"] - account["dead_letters"]
    more = f", and {plural(items, 'item')}" if items else ""
    lines.append(line("lost", account["dead_letters"], f"dead letters{more}" if asked else ""))
    lines.append(line("pending", account["pending"]))
    if account["delayed"] or account["in_flight"]:
        lines.append(line("delayed", account["delayed"]))
        lines.append(line("in flight", account["in_flight"]))
    if account["difference"]:
        lines.append(line("not found", account["difference"], "the account is off: please report"))
    if status.get("proxies"):
        lines.append(
            line("proxies", status["proxies"], f"{count(status['healthy_proxies'])} healthy")
        )
    if status["results_written"] or status["results_waiting"]:
        wait = f", {count(status['results_waiting'])} wait" if status["results_waiting"] else ""
        where = f"in {middle(status['results'], 40)}" if status["results"] else ""
        note = f"{where}{wait}".removeprefix(", ")
        lines.append(line("results", status["results_written"], note))
    return lines


def _top(numbers: dict[str, Any], most: int) -> list[tuple[str, Any]]:
    return sorted(numbers.items(), key=lambda item: -item[1])[:most]


def _held(data: dict[str, Any]) -> list[str]:
    seconds = data["status"]["bottleneck"]["seconds"]
    seconds = {name: spent for name, spent in seconds.items() if spent >= 1 and name in LEVELS}
    seconds.pop(str(Code.FINISHED), None)
    seconds.pop(str(Code.INCOMPLETE), None)
    whole = sum(seconds.values())
    if not whole:
        return []
    lines = ["What held it back"]
    for name, spent in _top(seconds, 5):
        code = Code(name)
        bar = "█" * max(1, round(_WIDEST_BAR * spent / whole))
        note = "" if LEVELS[code] is Level.OK else _when(data, name)
        lines.append(
            f"  {NAMES[code]:<20}{share(spent / whole):>6}  {duration(spent):>10}  "
            f"{bar:<{_WIDEST_BAR}} {note}".rstrip()
        )
    return lines


def _when(data: dict[str, Any], code: str) -> str:
    """When it was, if it was once."""
    status = data["status"]
    spans = [span for span in status["spans"] if span["code"] == code]
    if len(spans) != 1 or spans[0]["end_at"] - spans[0]["start_at"] < 60:
        return ""
    now_at = status["at"]
    start, end = spans[0]["start_at"], spans[0]["end_at"]
    return f"{clock(start, now_at=now_at)} to {clock(end, now_at=now_at)}"


def _reasons(data: dict[str, Any]) -> list[str]:
    status = data["status"]
    reasons = status["dead_reasons"]
    if not reasons:
        return []
    lines = [f"{'Lost, by reason':<46}domains"]
    for reason in reasons[:8]:
        last = clock(reason["last_at"], now_at=status["at"])
        name = middle(reason["reason"], 32)
        lines.append(
            f"{count(reason['count']):>9}  {name:<32}{count(reason['domains']):>10}   last {last}"
        )
    if len(reasons) > 8:
        lines.append(f"  and {len(reasons) - 8} more reasons")
    if others := _unexplained(data):
        lines.append(f"{count(others):>9}  others, see scrapy deadletters list")
    return lines


def _unexplained(data: dict[str, Any]) -> int:
    """How many losses have no reason here: reasons and rows begin anew with each process of a job."""
    status = data["status"]
    explained: int = sum(reason["count"] for reason in status["dead_reasons"])
    return max(0, int(status["dead_total"]) - explained)


def _domains(data: dict[str, Any]) -> list[str]:
    rows = [row for row in data["domains"]["rows"] if row["dead_letters"]]
    if not rows:
        return []
    lines = [f"{'Lost, by domain':<42}{'lost':>9}{'got':>10}{'refused':>9}"]
    for row in rows[:5]:
        refused = "-" if row["refused_share"] is None else share(row["refused_share"])
        name = host(row["domain"], _WIDEST_HOST)
        lines.append(
            f"  {name:<40}{count(row['dead_letters']):>9}{count(row['pages']):>10}{refused:>9}"
        )
    rest = data["status"]["account"]["dead_letters"] - sum(r["dead_letters"] for r in rows[:5])
    if rest > 0:
        where = "" if _unexplained(data) else " on other domains"
        lines.append(f"  and {count(rest)} more{where}")
    return lines


def _bugs(data: dict[str, Any]) -> list[str]:
    bugs = data.get("bugs") or {}
    if not bugs:
        return []
    lines = ["Errors in the spider, each once"]
    lines += [f"{count(number):>9}  {middle(place, 66)}" for place, number in _top(bugs, 4)]
    return lines


def _worth(data: dict[str, Any]) -> list[str]:
    """What is worth a look, less the errors that are named above."""
    found = [f for f in data["status"].get("findings", []) if f["code"] != "callback_error"]
    if not found:
        return []
    lines = ["Worth a look"]
    for finding in found[:3]:
        first, *more = _wrap(finding["text"], WIDTH - 12)
        lines.append(f"  {finding['kind']:<10}{first}")
        lines += [f"{'':<12}{line}" for line in more]
    return lines


def _next(data: dict[str, Any]) -> list[str]:
    status, lines = data["status"], []
    spider, folder = status["spider"], status["job_dir"]
    account = status["account"]
    if status["finish_reason"] is None:
        return []
    if account["pending"] + account["delayed"] and folder:
        lines.append(f"  scrapy crawl {spider} -s JOBDIR={folder}      (goes on; same arguments)")
    if account["dead_letters"]:
        lines.append(f"  scrapy deadletters list --spider {spider}")
        lines.append(f"  {status['replay_command']}")
    if folder and not is_complete(data):
        lines.append(f"  scrapy job report {folder} --html report.html")
    return ["Next", *lines] if lines else []
