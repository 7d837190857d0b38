"""Dead letters on their way into Redis and out: plain fields, never anything that runs; and the scripts that move them."""

from __future__ import annotations

import contextlib
import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from redis import exceptions as errors

from .deadletter_db import DeadLetterError
from .deadletter_rows import Row
from .redisscripts import judge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from redis import Redis

    from .base import DeadLetter

_NAMES: Final = ("put", "claim", "move")


def arguments_of(letter: DeadLetter) -> list[Any]:
    """One letter, as `letters_put.lua` takes it."""
    return [
        _bytes(letter.uid),
        "" if letter.dead_letter_id is None else letter.dead_letter_id,
        letter.kind,
        _bytes(letter.spider),
        _bytes(letter.key),
        _bytes(letter.url),
        _bytes(letter.domain),
        _bytes(letter.reason),
        _bytes(letter.detail),
        letter.attempts,
        "" if letter.status is None else letter.status,
        _bytes(letter.exception or ""),
        repr(letter.first_at),
        repr(letter.last_at),
        letter.payload,
    ]


def read_letter(fields: Mapping[bytes, bytes]) -> Row:
    """A letter's hash as a row.

    Raises:
        DeadLetterError: it was not written by this program.
    """
    try:
        text = {
            name.decode(): value.decode("utf-8", "surrogatepass")
            for name, value in fields.items()
            if name != b"payload"
        }
        return Row(
            id=int(text["id"]),
            spider=text["spider"],
            kind=text["kind"],
            key=text["key"],
            url=text["url"],
            domain=text["domain"],
            reason=text["reason"],
            detail=text["detail"],
            attempts=int(text["attempts"]),
            status=int(text["status"]) if text["status"] else None,
            exception=text["exception"] or None,
            first_at=float(text["first_at"]),
            last_at=float(text["last_at"]),
            replays=int(text["replays"]),
            state=text["state"],
            arguments=text["arguments"],
            payload=fields[b"payload"],
        )
    except (KeyError, ValueError) as error:
        raise DeadLetterError(f"a dead letter in Redis cannot be read: {error!r}") from None


class LetterScripts:
    """The scripts of one place.

    Args:
        client: Of redis-py, the blocking one.
        key: Under which the letters are.
        place: Where that is, for messages.
    """

    def __init__(self, client: Redis, *, key: str, place: str) -> None:
        self._client = client
        self._key = key
        self._place = place
        folder = resources.files(__package__ or "").joinpath("lua")
        common = folder.joinpath("letters.lua").read_text(encoding="utf-8")
        self._texts = {}
        for name in _NAMES:
            body = folder.joinpath(f"letters_{name}.lua").read_text(encoding="utf-8")
            self._texts[name] = f"#!lua flags=allow-oom\n{common}\n{body}"
        self._digests = {
            name: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
            for name, text in self._texts.items()
        }

    def load(self, pipeline: Any) -> None:
        """Have the server keep them, with the next round trip."""
        for text in self._texts.values():
            pipeline.script_load(text)

    def put(self, *arguments: Any) -> int:
        """Put letters; how many older ones had to go."""
        return int(self._run("put", arguments))

    def claim(self, *arguments: Any) -> tuple[int, list[int]]:
        """Number of the claim, and ids."""
        number, ids = self._run("claim", arguments)
        return int(number), [int(id_) for id_ in ids]

    def move(self, what: str, ids: Iterable[int], *, job: str = "") -> str:
        """What became of each id: a letter; for ``recover`` how many moved."""
        ids = list(ids)
        reply = self._run("move", (what, job, len(ids), *ids))
        return reply.decode() if isinstance(reply, bytes) else str(reply)

    def _run(self, name: str, arguments: Iterable[Any]) -> Any:
        with failures_of(self._place):
            try:
                return self._client.evalsha(self._digests[name], 1, self._key, *arguments)
            except errors.NoScriptError:
                return self._client.eval(self._texts[name], 1, self._key, *arguments)


@contextlib.contextmanager
def failures_of(place: str) -> Iterator[None]:
    """Turn redis-py's errors into `DeadLetterError`, in words that name no password."""
    try:
        yield
    except (errors.RedisError, OSError, TimeoutError) as error:
        raise DeadLetterError(f"{place}: {judge(error)}") from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
