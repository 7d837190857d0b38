"""Python values as JSON and back, equal to what they were; nothing in the text can make code run.

The rule it keeps: a value either comes back equal, type and all, or is refused by name when it is
written. JSON's own types stand for themselves; others are objects with a tag, such as
``{"$": "tuple", "v": [...]}``. A user's dict that has a ``"$"`` key, or keys
that are no strings, is written as tagged pairs, so no data can pose as a tag.

Classes (dataclasses, items, named tuples, enums) are found among the modules that are already
imported, only in trusted packages, and are filled field by field: neither an import nor
``__init__`` or ``__post_init__`` ever runs.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import enum
import math
import sys
import uuid
import zoneinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from scrapy import Item

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

TAG: Final = "$"
_MAX_DEPTH: Final = 64
_ITSELF: Final = (str, int, bool, type(None))


class NotPlain(Exception):
    """A value that JSON cannot carry.

    Attributes:
        where: Path to it inside the value that was given, such as ``['page'][3]``.
        why: What it is and why it cannot be stored.
    """

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}" if where else why)
        self.where = where
        self.why = why


class BadTag(Exception):
    """Tagged text that stands for no value: tampered with, torn, or of a class that is gone."""


class PlainJson:
    """Converts values. *packages* names the top-level packages whose classes may be made again."""

    def __init__(self, *, packages: Collection[str] = ()) -> None:
        self._packages = frozenset(packages)
        self._makers: dict[str, Callable[[Any], Any]] = {
            "tuple": lambda v: tuple(self.loaded(e) for e in _list(v)),
            "set": lambda v: {self.loaded(e) for e in _list(v)},
            "frozenset": lambda v: frozenset(self.loaded(e) for e in _list(v)),
            "dict": lambda v: {self.loaded(k): self.loaded(e) for k, e in _list(v)},
            "bytes": lambda v: base64.b64decode(_text(v), validate=True),
            "bytearray": lambda v: bytearray(base64.b64decode(_text(v), validate=True)),
            "float": _float,
            "decimal": lambda v: Decimal(_text(v)),
            "datetime": _datetime,
            "date": lambda v: dt.date.fromisoformat(_text(v)),
            "time": _time,
            "timedelta": lambda v: dt.timedelta(*(_int(n) for n in _list(v))),
            "uuid": lambda v: uuid.UUID(_text(v)),
            "complex": lambda v: complex(*(self.loaded(n) for n in _list(v))),
            "object": self._object,
        }

    def dumped(self, value: Any, where: str = "", depth: int = 0) -> Any:
        """*value* in JSON's own types.

        Raises:
            NotPlain
        """
        kind = type(value)
        if kind in _ITSELF:
            return value
        if depth > _MAX_DEPTH:
            raise NotPlain("", f"is nested more than {_MAX_DEPTH} deep, or contains itself")
        deeper = depth + 1
        if kind is float:
            return value if math.isfinite(value) else {TAG: "float", "v": str(value)}
        if kind is list:
            return [self.dumped(e, f"{where}[{i}]", deeper) for i, e in enumerate(value)]
        if kind is dict:
            return self._dumped_dict(value, where, deeper)
        if kind in _SEQUENCES:
            elements = [self.dumped(e, f"{where}[{i}]", deeper) for i, e in enumerate(value)]
            return {TAG: _SEQUENCES[kind], "v": elements}
        if kind in _WRITERS:
            tag, write = _WRITERS[kind]
            return {TAG: tag, "v": write(value)}
        return self._dumped_object(value, where, deeper)

    def _dumped_dict(self, value: dict[Any, Any], where: str, depth: int) -> Any:
        if TAG not in value and all(type(k) is str for k in value):
            return {k: self.dumped(e, f"{where}[{k!r}]", depth) for k, e in value.items()}
        pairs = [
            [self.dumped(k, f"{where} key", depth), self.dumped(e, f"{where}[{_short(k)}]", depth)]
            for k, e in value.items()
        ]
        return {TAG: "dict", "v": pairs}

    def _dumped_object(self, value: Any, where: str, depth: int) -> Any:
        kind = type(value)
        fields = _fields_of(value)
        if fields is None:
            for base in (
                str,
                int,
                float,
            ):  # a subclass without state of its own is worth its plain value
                if isinstance(value, base) and not isinstance(value, enum.Enum):
                    return self.dumped(base(value), where, depth)
            raise NotPlain(where, f"a {_spoken_name(kind)} cannot be stored")
        name = _class_name(kind)
        if self._class(name, problem=lambda why: NotPlain(where, why)) is not kind:
            raise NotPlain(where, f"class {name} cannot be found by its name")
        state = {k: self.dumped(e, f"{where}.{k}", depth) for k, e in fields.items()}
        return {TAG: "object", "class": name, "v": state}

    def loaded(self, plain: Any) -> Any:
        """The value that `dumped` gave *plain* for.

        Raises:
            BadTag
        """
        kind = type(plain)
        if kind is list:
            return [self.loaded(e) for e in plain]
        if kind is not dict:
            return plain
        if TAG not in plain:
            return {k: self.loaded(e) for k, e in plain.items()}
        tag = plain[TAG]
        maker = self._makers.get(tag) if isinstance(tag, str) else None
        if maker is None:
            raise BadTag(f"unknown tag {tag!r}")
        try:
            return maker(plain if tag == "object" else plain["v"])
        except (TypeError, ValueError, KeyError, ArithmeticError, OSError) as e:
            raise BadTag(f"bad {tag}: {e}") from e

    def _object(self, plain: dict[str, Any]) -> Any:
        cls = self._class(_text(plain["class"]), problem=BadTag)
        state = plain["v"]
        if not isinstance(state, dict):
            raise BadTag(f"bad state of {plain['class']}")
        values = {k: self.loaded(e) for k, e in state.items()}
        return _made(cls, values)

    def _class(self, name: str, *, problem: Callable[[str], Exception]) -> type:
        module_name, _, qualname = name.partition(":")
        if module_name.partition(".")[0] not in self._packages:
            raise problem(
                f"class {name} is of no trusted package ({', '.join(sorted(self._packages))})"
            )
        found = imported(module_name, qualname)
        if not isinstance(found, type):
            raise problem(f"class {name} does not exist (any more)")
        return found


def imported(module_name: str, qualname: str) -> Any:
    """What *qualname* is in a module that is already imported; None if there is no such."""
    found: Any = sys.modules.get(module_name)
    for part in qualname.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found


def _fields_of(value: Any) -> dict[str, Any] | None:
    """The state of a record-like object by field; None for any other object."""
    if isinstance(value, type):
        return None
    if isinstance(value, enum.Enum):
        return {"name": value.name}
    if isinstance(value, Item):
        return dict(value)
    if dataclasses.is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value)]
        extra = getattr(value, "__dict__", {}).keys() - set(names)
        if extra:  # not what its class declares: would be lost
            return None
        return {n: getattr(value, n) for n in names if hasattr(value, n)}
    if isinstance(value, tuple) and hasattr(type(value), "_fields"):
        return dict(zip(type(value)._fields, value, strict=True))  # type: ignore[attr-defined]
    return None


def _made(cls: type, values: dict[str, Any]) -> Any:
    """An object of *cls* with these fields, without a call of its `__init__`."""
    if issubclass(cls, enum.Enum):
        return cls[values["name"]]
    if issubclass(cls, Item):
        if unknown := values.keys() - cls.fields.keys():
            raise BadTag(f"{_class_name(cls)} has no field {min(unknown)!r} (any more)")
        item = cls()
        for name, value in values.items():
            item[name] = value
        return item
    if dataclasses.is_dataclass(cls):
        names = {f.name for f in dataclasses.fields(cls)}
        if unknown := values.keys() - names:
            raise BadTag(f"{_class_name(cls)} has no field {min(unknown)!r} (any more)")
        made = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        if values.keys() != set(cls._fields):
            raise BadTag(f"{_class_name(cls)} has other fields now")
        return tuple.__new__(cls, [values[n] for n in cls._fields])
    raise BadTag(f"{_class_name(cls)} is no dataclass, item, named tuple or enum")


def _class_name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _spoken_name(cls: type) -> str:
    return _class_name(cls).removeprefix("builtins:").replace(":", ".")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."  # noqa: PLR2004


def _zone_name(value: dt.datetime | dt.time) -> str | None:
    """Name of a time zone; None for naive and fixed offsets, which the ISO form carries."""
    zone = value.tzinfo
    if zone is None or type(zone) is dt.timezone:
        return None
    if type(zone) is zoneinfo.ZoneInfo and zone.key:
        return zone.key
    raise NotPlain("", f"time zone {zone!r} cannot be stored: use zoneinfo or a fixed offset")


def _moment(value: dt.datetime | dt.time) -> list[Any]:
    zone = _zone_name(value)
    return [(value.replace(tzinfo=None) if zone else value).isoformat(), zone, value.fold]


def _datetime(plain: Any) -> dt.datetime:
    text, zone, fold = _list(plain)
    value = dt.datetime.fromisoformat(_text(text)).replace(fold=_int(fold))
    return value.replace(tzinfo=zoneinfo.ZoneInfo(_text(zone))) if zone is not None else value


def _time(plain: Any) -> dt.time:
    text, zone, fold = _list(plain)
    value = dt.time.fromisoformat(_text(text)).replace(fold=_int(fold))
    return value.replace(tzinfo=zoneinfo.ZoneInfo(_text(zone))) if zone is not None else value


def _float(plain: Any) -> float:
    if plain not in {"nan", "inf", "-inf"}:
        raise ValueError(f"{plain!r} stands for itself")
    return float(plain)


def _list(plain: Any) -> list[Any]:
    if type(plain) is not list:
        raise TypeError(f"a list was expected, not {plain!r:.40}")
    return plain


def _text(plain: Any) -> str:
    if type(plain) is not str:
        raise TypeError(f"text was expected, not {plain!r:.40}")
    return plain


def _int(plain: Any) -> int:
    if type(plain) is not int:
        raise TypeError(f"a whole number was expected, not {plain!r:.40}")
    return plain


_SEQUENCES: Final[dict[type, str]] = {tuple: "tuple", set: "set", frozenset: "frozenset"}
_WRITERS: Final[dict[type, tuple[str, Callable[[Any], Any]]]] = {
    bytes: ("bytes", lambda v: base64.b64encode(v).decode("ascii")),
    bytearray: ("bytearray", lambda v: base64.b64encode(v).decode("ascii")),
    Decimal: ("decimal", str),
    dt.datetime: ("datetime", _moment),
    dt.date: ("date", dt.date.isoformat),
    dt.time: ("time", _moment),
    dt.timedelta: ("timedelta", lambda v: [v.days, v.seconds, v.microseconds]),
    uuid.UUID: ("uuid", str),
    complex: ("complex", lambda v: [_finite_or_tag(v.real), _finite_or_tag(v.imag)]),
}


def _finite_or_tag(value: float) -> Any:
    return value if math.isfinite(value) else {TAG: "float", "v": str(value)}
