"""The public names that docs/names.md lists are those of the code, and our own spiders use no others."""

from __future__ import annotations

import ast
import re
from importlib import import_module

from extensions import names, signals
from extensions.arguments import REASON
from extensions.contracts import CONTRACTS, META_KEY
from tests.documents import ROOT

TEXT = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"^\| `extensions\.([\w.]+)` \|(.*)\|$", TEXT, re.MULTILINE)


def part(name: str) -> str:
    return TEXT.partition(f"<!-- {name} -->")[2].partition("<!-- end -->")[0]


def said() -> set[str]:
    """All that the page lists of Python, by its full name."""
    found = set()
    for path, note in PYTHON:
        found.add(path)
        module = path.rpartition(".")[0]
        found |= {f"{module}.{other}" for other in re.findall(r"`([A-Za-z]\w+)`", note)}
    return found


def test_meta_keys_are_those_of_the_code():
    keys = {
        value
        for value in vars(names).values()
        if isinstance(value, str) and value.startswith("sluice_")
    }
    assert set(re.findall(r"^\| `(\w+)`", part("meta keys"), re.MULTILINE)) == keys | {META_KEY}


def test_signals_are_those_of_the_code():
    ours = {name for name, value in vars(signals).items() if type(value) is object}
    assert set(re.findall(r"`(\w+)`", part("signals"))) == ours


def test_finish_reasons_are_those_of_the_code():
    ours = {value for name, value in vars(names).items() if name.startswith("REASON_")}
    assert set(re.findall(r"`(\w+)`", part("reasons"))) == ours | {REASON}


def test_every_python_name_is_there():
    assert len(PYTHON) > 20
    for path in said():
        module, _, name = path.rpartition(".")
        assert hasattr(import_module("extensions" + f".{module}" * bool(module)), name), path


def test_all_contracts_are_listed():
    assert {f"contracts.{contract.__name__}" for contract in CONTRACTS} <= said()


def test_our_own_spiders_use_nothing_else():
    used = set()
    for folder in ("spiders", "project"):
        for path in (ROOT / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                    "extensions"
                ):
                    module = node.module.removeprefix("extensions").removeprefix(".")
                    used |= {f"{module}.{alias.name}".removeprefix(".") for alias in node.names}
    assert used <= said()
