"""Parameters as Python writes them, ``%s`` and ``%(name)s``, as SQL has them: ``$1``, ``$2``, ..."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from .errors import ProgrammingError

Parameters = Sequence[Any] | Mapping[str, Any]


@lru_cache(maxsize=1024)
def _divided(text: str) -> tuple[str, tuple[str | None, ...]]:
    """The text with ``$n``, and for each of its places the name of the value that goes there, or ``None``."""
    out: list[str] = []
    places: list[str | None] = []
    numbers: dict[str, int] = {}
    at = 0
    while True:
        percent = text.find("%", at)
        if percent < 0:
            break
        out.append(text[at:percent])
        following = text[percent + 1 : percent + 2]
        if following == "%":
            out.append("%")
            at = percent + 2
        elif following == "s":
            places.append(None)
            out.append(f"${len(places)}")
            at = percent + 2
        elif following == "(":
            end = text.find(")s", percent)
            if end < 0:
                raise ProgrammingError(f"the parameter at character {percent + 1} is not closed: write %(name)s")
            name = text[percent + 2 : end]
            if name not in numbers:
                places.append(name)
                numbers[name] = len(places)
            out.append(f"${numbers[name]}")
            at = end + 2
        else:
            raise ProgrammingError(
                f"'%{following}' at character {percent + 1} is no parameter: write %s or %(name)s, and %% for a %"
            )
    out.append(text[at:])
    if numbers and len(numbers) != len(places):
        raise ProgrammingError("a statement has either %s or %(name)s, not both")
    return "".join(out), tuple(places)


@lru_cache(maxsize=1024)
def braced(text: str) -> tuple[str, tuple[str, ...]]:
    """A statement with ``$n`` for each ``{name}``, and the names of the values that go there; ``{{`` is a brace."""
    out: list[str] = []
    places: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character not in "{}":
            out.append(character)
            at += 1
        elif text[at : at + 2] == 2 * character:
            out.append(character)
            at += 2
        else:
            end = text.find("}", at)
            name = text[at + 1 : end]
            if character == "}" or end < 0 or not name.isidentifier():
                instead = f"write {{name}}, and {2 * character} for a brace"
                raise ProgrammingError(f"'{character}' at character {at + 1} is no parameter: {instead}")
            if name not in places:
                places.append(name)
            out.append(f"${places.index(name) + 1}")
            at = end + 1
    return "".join(out), tuple(places)


def named(names: Sequence[str], given: Mapping[str, Any], variables: Callable[[], Mapping[str, Any]]) -> list[Any]:
    """The values of a statement's parameters: those that are given, and variables of the same names."""
    for name in given:
        if name not in names:
            raise ProgrammingError(f"the statement has no parameter {{{name}}}")
    if all(name in given for name in names):
        return [given[name] for name in names]
    known = {**variables(), **given}
    for name in names:
        if name not in known:
            raise ProgrammingError(f"the value of parameter {name!r} is missing, and no variable is called so")
    return [known[name] for name in names]


class numbered(str):
    """A statement whose parameters are written ``$1``, ``$2``, ... already."""


def bound(text: str, parameters: Parameters | None) -> tuple[str, Sequence[Any]]:
    """A statement and its values as SQL has them. Without parameters the text stays as it is, ``%`` and all."""
    if parameters is None:
        return text, ()
    if isinstance(text, numbered):
        assert not isinstance(parameters, Mapping)
        return text, parameters
    statement, places = _divided(text)
    if isinstance(parameters, Mapping):
        values = []
        for place in places:
            if place is None:
                raise ProgrammingError("the statement has %s: give a sequence of values, or write %(name)s")
            if place not in parameters:
                raise ProgrammingError(f"the value of parameter {place!r} is missing")
            values.append(parameters[place])
        return statement, values
    if isinstance(parameters, (str, bytes)):
        raise ProgrammingError("parameters are a sequence of values: write (value,) for a single one")
    if any(place is not None for place in places):
        raise ProgrammingError("the statement has %(name)s: give a mapping of names to values, or write %s")
    if len(places) != len(parameters):
        raise ProgrammingError(f"the statement has {len(places)} parameters, but {len(parameters)} are given")
    return statement, parameters
