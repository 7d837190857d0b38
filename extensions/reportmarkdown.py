"""The report for the summary of a continuous-integration step.

The rule it keeps: what came from a site is text, and cannot become markup.
"""

from __future__ import annotations

from typing import Any

from .policy.wording import count, duration, middle
from .report import verdict


def markdown_report(data: dict[str, Any]) -> str:
    """The report for a step summary."""
    status = data["status"]
    account = status["account"]
    lines = [f"### {_cell(status['spider'])}: {_cell(verdict(data))}", ""]
    lines += ["| asked for | got | skipped | lost | pending | time |", "|--:|--:|--:|--:|--:|--:|"]
    left = account["pending"] + account["delayed"] + account["in_flight"]
    lines.append(
        f"| {count(account['asked'])} | {count(account['got'])} | {count(account['skipped'])} | "
        f"{count(account['dead_letters'])} | {count(left)} | {duration(status['running_s'])} |"
    )
    if status["dead_reasons"]:
        lines += ["", "| lost | reason | domains | example |", "|--:|---|--:|---|"]
        lines += [
            f"| {count(r['count'])} | {_cell(r['reason'])} | {count(r['domains'])} | "
            f"`{_cell(middle(r['example'], 80)).replace('`', '')}` |"
            for r in status["dead_reasons"][:8]
        ]
    if status.get("findings"):
        lines += ["", *(f"- {_cell(finding['text'])}" for finding in status["findings"])]
    if status["exit_code"] is not None:
        lines += ["", f"Exit code {status['exit_code']}: {_cell(status['exit_rule'])}"]
    return "\n".join(lines) + "\n"


def _cell(words: str) -> str:
    """Text that cannot become markup in a table's cell."""
    plain = "".join(c if c.isprintable() else " " for c in words)
    for sign in "\\|<>[]*_#":
        plain = plain.replace(sign, "\\" + sign)
    return plain
