"""What commands refuse, and say in one clear line: a wrong first word, an output file that cannot be new."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Refused(Exception):
    """A wrong word or an impossible wish; one clear line."""


def action_of(args: list[str], actions: Sequence[str]) -> tuple[str, list[str]]:
    """The action that *args* begin with, and the words after it.

    Raises:
        Refused: It is none of *actions*.
    """
    if not args or args[0] not in actions:
        given = f"not {args[0]!r}" if args else "say which"
        raise Refused(f"give one of {', '.join(actions)} ({given})")
    return args[0], args[1:]


@contextmanager
def new_file(name: str) -> Iterator[TextIO]:
    """A file that did not exist before, to write text into.

    Raises:
        Refused: It exists, or cannot be written.
    """
    try:
        with Path(name).open("x", encoding="utf-8") as out:
            yield out
    except FileExistsError:
        raise Refused(f"{name} exists; give the name of a new file") from None
    except OSError as error:
        raise Refused(f"{name}: {error.strerror}") from None
