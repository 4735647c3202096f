"""What of a program runs now and what may wait: as text, and as a picture."""

from __future__ import annotations

import html
import re
from os import PathLike
from pathlib import Path
from typing import NamedTuple

__all__ = ["Drawing", "explanation"]

#: A variable of the program that was made of one of the function.
_OWN = re.compile(r"`?\bpy ([^`\[\]()]+?)_\d+\b`?")

#: A line of the program: its number, what it says, when it runs, and why.
_LINE = re.compile(r"^\s*(\d+)  (.*?)(?:\s{2,}(now|later|both|free)\s{2,}(.*))?$")

#: What each phase is painted in, and what it means.
_PHASES = {
    "now": ("#d9534f", "now: it decides the outcome, or what others need"),
    "both": ("#f0ad4e", "now and later"),
    "later": ("#5cb85c", "later: only whoever reads it waits for it"),
    "free": ("#5bc0de", "whenever: the values are at hand"),
    "": ("#cccccc", ""),
}

_HEIGHT, _WIDTH, _LEFT = 16, 7.2, 20


def explanation(text: str) -> str:
    """The database's words, with the names of the function."""
    lines = [_OWN.sub(_named, line) for line in text.splitlines()]
    found = [_LINE.match(line) for line in lines]
    width = max((len(one[2]) for one in found if one and one[3]), default=0)
    return "\n".join(
        f"{one[1]:>4}  {one[2]:{width}}  {one[3]:5}  {one[4]}" if one and one[3] else line
        for line, one in zip(lines, found)
    )


def _named(found: re.Match[str]) -> str:
    return re.sub(r"(.*) key (\d+)$", r"\1's key \2", found[1])


class _Line(NamedTuple):
    text: str
    phase: str
    reason: str


class Drawing:
    """A program as a picture: its lines, and when each of them runs. A notebook shows it."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        head, _, body = text.partition("Program:\n")
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
