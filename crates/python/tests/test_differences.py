"""Functions of which the programs do something else than Python, as far as is known.

Each fails here once it is right. Then it belongs to ``test_corners.py``, and what ``Expressions.avoids`` leaves out for
it can be written again.
"""

import decimal
import unittest

from fabius.compilation import CompilationError

from shop import Agreeing
from writer import STATEMENTS

#: A function, and calls of it.
CASES = [
    # A key that does not fit into its column.
    ("def f(a: int) -> int:\n    return db.stock[a].qty\n", [(2**40,)]),
    ("def f(a: int) -> bool:\n    row = db.stock.get(a)\n    return row is None\n", [(2**40,)]),
    # `None` in exceptions.
    ("def f(a: int | None) -> int:\n    return db.stock[a].qty\n", [(None,)]),
    ("def f(x: float) -> int:\n    return int(x)\n", [(float("nan"),)]),
    # Python has another exception for 0 / 0, and for a remainder by zero.
    ("def f(x: Decimal) -> int:\n    return int(x / Decimal('0.0'))\n", [(decimal.Decimal(0),)]),
    ("def f(x: Decimal) -> Decimal:\n    return x % Decimal('0.0')\n", [(decimal.Decimal(1),)]),
    # A row that is there gets only what is given; in the client's process that is an error too.
    ("def f(a: int) -> None:\n    db.plain.upsert(id=1, a=a)\n", [(5,)]),
]


class Differences(Agreeing):
    STATEMENTS = STATEMENTS

    def test_all(self):
        for source, calls in CASES:
            self.begin_again()
            with self.subTest(source=source), self.assertRaises((AssertionError, CompilationError)):
                self.agree(source, *calls)


if __name__ == "__main__":
    unittest.main()
