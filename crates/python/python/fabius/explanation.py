"""What of a program runs now and what may wait: as text, and as a picture."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import NamedTuple

__all__ = ["Drawing", "explanation"]

#: A variable of the program that was made of one of the function.
_OWN = re.compile(r"`?\bpy ([^`\[\]()]+?)_\d+\b`?")

#: A parameter, where no name says what it is.
_PARAMETER = re.compile(r"(?<=[\[ ,])p(\d+)(?=[\] ,])")

#: A value that has no name in the function.
_UNNAMED = re.compile(r"\bkey_\d+\b")

#: A line of the function: its number, what it says, when it runs, and why.
_LINE = re.compile(r"^\s*(\d+)  (.*?)(?:\s{2,}(now|later|both|delta|free)(?:\s{2,}(.*))?)?$")

#: Where the database names a line.
_NUMBER = re.compile(r"\bline (\d+(?:, \d+)*)")

#: What each phase is painted in, and what it means.
_PHASES = {
    "now": ("#d9534f", "now: it decides the outcome, or what others need"),
    "both": ("#f0ad4e", "now and later"),
    "later": ("#5cb85c", "later: only whoever reads it waits for it"),
    "delta": ("#5cb85c", "later: it is added up, and nobody waits for it"),
    "free": ("#5bc0de", "whenever: the values are at hand"),
    "": ("#cccccc", ""),
}

#: Keys that are read, and the lines that read them.
_KEY = re.compile(r"Key: (\S+?)\[.*from reads, line (\d+)")

#: What the database says of whatever may end a call.
_OF_REQUIRE = " (require)"

#: A branch.
_BRANCH = re.compile(r"^\s*(el)?if\b")

#: What forces a value now, and what would not.
_REWRITES = [
    (re.compile(r"\b(key|indexed) column"), "an index needs the value: a column without one could wait"),
    (
        re.compile(r"is not proven to fit"),
        "it might leave its column, which aborts: a larger type (bigint, numeric) leaves room",
    ),
    (
        # Not where the outcome depends on it anyway.
        re.compile(r"^(?!.*decides the outcome).*read again now by this call"),
        "it is read once more behind its write, or by a check: what need not be read there could wait",
    ),
]

_HEIGHT, _WIDTH, _LEFT = 16, 7.2, 20


def explanation(text: str, parameters: Sequence[str], file: str, line: int) -> str:
    """The database's words, with the names of the function and of its parameters, and the lines of its file, where it
    begins at ``line``."""
    text = _with_keys(_OWN.sub(_named, text), parameters)
    head, title, body = text.partition("Function:\n")
    if not title:
        return _aligned(head.splitlines())
    head = _NUMBER.sub(lambda found: f"line {_moved(found[1], line)}", head)
    moved = [
        _LINE.sub(lambda found: f"{int(found[1]) + line - 1}{found[0][found.end(1) :]}", one.strip())
        for one in body.splitlines()
    ]
    # Rows have to be there and checks have to hold where no `require` is written, too.
    moved = [one if "require(" in one else one.replace(_OF_REQUIRE, "") for one in moved]
    lines = _aligned(moved).splitlines()
    waits = [
        f"  line {place}: it reads the key of a row of {table}: where the caller knows that, make it a parameter"
        for table, place in _KEY.findall(head)
    ]
    for one in filter(None, map(_LINE.match, lines)):
        if _BRANCH.match(one[2]) and one[3] in ("now", "both"):
            said = "it is decided now: where it only chooses a value, write `a if condition else b`"
            waits.append(f"  line {one[1]}: {said}")
        waits.extend(f"  line {one[1]}: {rewrite}" for reason, rewrite in _REWRITES if reason.search(one[4] or ""))
    parts = [head.rstrip(), f"Lines of {file}:", *lines]
    return "\n".join(parts + (["What could wait:", *waits] if waits else []))


def _with_keys(text: str, parameters: Sequence[str]) -> str:
    """The text with the names of parameters in its keys, and the keys' facts below each other again."""
    lines = text.splitlines()
    places = [place for place, line in enumerate(lines) if line.lstrip().startswith("Key: ")]
    rows = [re.split(r" {2,}", lines[place].strip()) for place in places]
    for row in rows:
        row[0] = _PARAMETER.sub(lambda found: _parameter(found, parameters), _UNNAMED.sub("...", row[0]))
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    for place, row in zip(places, rows):
        lines[place] = "  " + "   ".join(f"{part:{width}}" for part, width in zip(row, widths)).rstrip()
    return "\n".join(lines) + "\n"


def _parameter(found: re.Match[str], parameters: Sequence[str]) -> str:
    place = int(found[1]) - 1
    return parameters[place] if place < len(parameters) else found[0]


def _moved(numbers: str, line: int) -> str:
    return ", ".join(str(int(number) + line - 1) for number in numbers.split(", "))


def _aligned(lines: list[str]) -> str:
    """Lines with their phases in a column."""
    found = [_LINE.match(line) for line in lines]
    width = max((len(one[2]) for one in found if one and one[3]), default=0)
    return "\n".join(
        f"{one[1]:>4}  {one[2]:{width}}  {one[3]:5}  {one[4] or ''}".rstrip()
        if one and one[3]
        else f"{one[1]:>4}  {one[2]}"
        if one
        else line
        for line, one in zip(lines, found)
    )


def _named(found: re.Match[str]) -> str:
    return re.sub(r"(.*) key (\d+)$", r"key \2 of \1", found[1])


class _Line(NamedTuple):
    text: str
    phase: str
    reason: str


class Drawing:
    """A program as a picture: its lines, and when each of them runs. A notebook shows it."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        place = re.search(r"^(Lines of .*|Program):\n", text, re.MULTILINE)
        head, body = (text[: place.start()], text[place.end() :]) if place else (text, "")
        self._head = [line.strip() for line in head.splitlines()[1:]]
        found = (_LINE.match(line) for line in body.splitlines())
        self._lines = [_Line(one[2], one[3] or "", one[4] or "") for one in found if one]

    @property
    def svg(self) -> str:
        """The picture."""
        used = {line.phase for line in self._lines} - {""}
        legend = [(color, said) for phase, (color, said) in _PHASES.items() if phase in used]
        texts = [self._name, *self._head, *(said for _, said in legend), *(_shown(line) for line in self._lines)]
        width = int(max(map(len, texts)) * _WIDTH) + 2 * _LEFT
        parts: list[str] = []
        y = _HEIGHT
        for number, text in enumerate([self._name, *self._head]):
            parts.append(_text(_LEFT, y, text, "bold" if number == 0 else "normal"))
            y += _HEIGHT
        for color, said in legend:
            parts.append(_bar(y, color) + _text(_LEFT, y, said, "normal"))
            y += _HEIGHT
        y += _HEIGHT // 2
        for line in self._lines:
            title = f"<title>{html.escape(line.reason)}</title>" if line.reason else ""
            row = _bar(y, _PHASES[line.phase][0]) + _text(_LEFT, y, _shown(line), "normal")
            parts.append(f"<g>{title}{row}</g>")
            y += _HEIGHT
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" '
            f'font-family="monospace" font-size="12">{"".join(parts)}</svg>'
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the picture to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<fabius drawing of {self._name}: {len(self._lines)} lines>"


def _shown(line: _Line) -> str:
    return f"{line.text}   -- {line.reason}" if line.reason else line.text


def _bar(y: int, color: str) -> str:
    return f'<rect x="6" y="{y - 12}" width="6" height="{_HEIGHT}" fill="{color}"/>'


def _text(x: int, y: int, text: str, weight: str) -> str:
    return f'<text x="{x}" y="{y}" font-weight="{weight}" xml:space="preserve">{html.escape(text)}</text>'
