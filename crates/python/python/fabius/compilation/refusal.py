"""What a program cannot do."""

from __future__ import annotations

import ast

__all__ = ["Refused"]


class Refused(Exception):
    """What cannot be, where it stands, and what to write instead."""

    def __init__(self, node: ast.AST, what: str, instead: str) -> None:
        super().__init__(what)
        self.node, self.what, self.instead = node, what, instead
