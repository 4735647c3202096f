"""The program ``fabius``: ``python -m fabius serve shop``."""

from __future__ import annotations

import sys

from ._fabius import main

__all__ = ["run"]


def run() -> None:
    """Does what the command line says, and ends the interpreter."""
    sys.exit(main(sys.argv[1:], ["-m", "fabius"]))


if __name__ == "__main__":
    run()
