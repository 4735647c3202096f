"""Functions that are compiled do what the same functions do in the client's process, and in plain Python over
dictionaries, where no database is.

``FABIUS_PYTHON_FUNCTIONS=10000 FABIUS_PYTHON_SEED=7`` runs so many random functions from a seed.
"""

import contextlib
import decimal
import io
import os
import random
import unittest

import fabius

from shop import Agreeing, defined
from writer import STATEMENTS, Writer

#: Runs the random functions once more, in the folder of this file.
AGAIN = "python -m unittest test_compiled.Agreement.test_random_functions"


class Agreement(Agreeing):
    STATEMENTS = STATEMENTS

    def test_the_first_screen(self):
        source = (
            "def f(item: int, n: int) -> int:\n"
            "    '''Takes some.'''\n"
            "    row = db.stock[item]\n"
            "    fabius.require(row.qty >= n, f'only {row.qty} left')\n"
            "    row.qty -= n\n"
            "    return row.qty\n"
        )
        self.agree(source, (1, 2), (1, 3), (1, 1), (9, 1), (3, 50))
        self.assertEqual(self.there.execute("select qty from stock where item = 1").scalar(), 0)

    def test_floor_division_and_remainders_are_pythons(self):
        source = "def f(a: int, b: int) -> int:\n    return a // b * 1000 + a % b\n"
        self.agree(source, *[(a, b) for a in (-7, -6, 0, 6, 7) for b in (-3, -1, 1, 2, 3)])

    def test_loops(self):
        source = (
            "def f(n: int) -> int:\n"
            "    total = 0\n"
            "    for i in range(n):\n"
            "        if i % 3 == 0:\n"
            "            continue\n"
            "        for j in range(i, 0, -2):\n"
            "            total += i * j\n"
            "        if total > 50:\n"
            "            break\n"
            "    return total\n"
        )
        self.agree(source, *[(n,) for n in range(-1, 12)])

    def test_branches_and_truthiness(self):
        source = (
            "def f(a: int, s: str) -> str:\n"
            "    if a and not s:\n"
            "        word = 'number'\n"
            "    elif s or a > 3:\n"
            "        word = s + '!' if len(s) < 3 else 'long'\n"
            "    else:\n"
            "        word = 'nothing'\n"
            "    return f'{word}: {a}, {bool(a)}, {1 < a <= 3}'\n"
        )
        self.agree(source, *[(a, s) for a in (-1, 0, 2, 3, 9) for s in ("", "x", "wörter")])

    def test_none(self):
        source = (
            "def f(item: int) -> str:\n"
            "    row = db.stock[item]\n"
            "    a = row.note\n"
            "    b = 'none' if a is None else 'some'\n"
            "    if row.note == None or not row.note:\n"
            "        b = b + '-empty'\n"
            "    if row.note != 'x':\n"
            "        b = b + '-other'\n"
            "    return f'{a} {b}'\n"
        )
        self.agree(source, (1,), (2,), (3,))

    def test_none_is_no_number_and_no_text(self):
        for body in (
            "x = row.note + '!'",
            "x = len(row.note)",
            "x = 'a' if row.note < 'b' else 'c'",
            "row.note += '!'\n    row.note += '?'",
            "n = 0\n    while n < len(row.note) + 1:\n        n += 1",
            "x = 'none' if row.note is None else row.note + '!'",
            "if row.note is not None and len(row.note) > 0:\n        row.note += '!'",
        ):
            self.agree(f"def f(item: int) -> None:\n    row = db.stock[item]\n    {body}\n", (1,), (2,), (3,))

    def test_rows_of_two_names(self):
        source = (
            "def f(a: int, b: int) -> int:\n"
            "    one = db.stock[a]\n"
            "    other = db.stock[b]\n"
            "    for i in range(3):\n"
            "        one.qty += 1\n"
            "        other.qty += 10\n"
            "        db.stock[a].qty += 100\n"
            "    one.qty += 1000\n"
            "    return one.qty + other.qty\n"
        )
        self.agree(source, (1, 1), (1, 2), (2, 3), (3, 3))

    def test_what_is_printed_comes_once_it_has_committed(self):
        source = (
            "def f(a: int) -> None:\n"
            "    print('begin', a, sep=': ', end='.')\n"
            "    fabius.require(a > 1)\n"
            "    print()\n"
            "    db.stock[a].qty += 1\n"
        )
        self.agree(source, (1,), (2,))
        program = self.there.transaction(defined(source, self.there))
        with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(fabius.Aborted):
            program(1)
        self.assertEqual(printed.getvalue(), "")

    def test_rows_are_written_inserted_and_deleted(self):
        source = (
            "def f(item: int, n: int, price: Decimal) -> Decimal:\n"
            "    row = db.stock[item]\n"
            "    row.price = price\n"
            "    db.stock[2].qty += n\n"
            "    db.line.insert(cart=2, n=n, item=item, many=row.qty + 1)\n"
            "    if n > 1:\n"
            "        del db.line[1, n]\n"
            "    made = db.line[2, n]\n"
            "    made.many *= 2\n"
            "    row.note = f'{made.many}'\n"
            "    return row.price * made.many\n"
        )
        self.agree(
            source,
            (1, 1, decimal.Decimal("2.50")),
            (1, 1, decimal.Decimal("2.50")),
            (3, 2, decimal.Decimal("0.00")),
            (3, 9, decimal.Decimal("1.00")),
            (3, -9, decimal.Decimal("1.00")),
            (7, 3, decimal.Decimal("1.00")),
        )

    def test_what_is_right_of_and_or_or_is_computed_when_it_counts(self):
        source = "def f(a: int, b: int) -> bool:\n    return b != 0 and a // b > 1 or a % (b + 1) == 0\n"
        self.agree(source, (5, 0), (5, 2), (5, -1), (1, 3), (0, -1))

    def test_loops_over_rows(self):
        source = (
            "def f(cart: int, least: int) -> str:\n"
            "    total = 0\n"
            "    seen = ''\n"
            "    for line in db.line.where(cart=cart):\n"
            "        row = db.stock[line.n]\n"
            "        if row.qty < least:\n"
            "            continue\n"
            "        for other in db.stock:\n"
            "            if other.note is None:\n"
            "                other.note = f'{other.item}'\n"
            "            elif other.qty > 50:\n"
            "                break\n"
            "            seen += f'{other.item}{other.note} '\n"
            "        total += line.many * row.qty\n"
            "        line.many += 1\n"
            "        db.line.insert(cart=cart, n=line.n + 10, item=row.item, many=0)\n"
            "    for row in db.stock.where(note='x', qty=0):\n"
            "        row.delete()\n"
            "    for row in db.stock.where(note=None):\n"
            "        seen += '?'\n"
            "    return f'{total} {seen}'\n"
        )
        self.agree(source, (1, 0), (2, 0), (1, 1))

    def test_nothing_is_returned(self):
        source = (
            "def f(item: int):\n"
            "    row = db.stock[item]\n"
            "    row.qty += 1\n"
            "    if row.qty > 5:\n"
            "        return\n"
            "    row.delete()\n"
        )
        self.agree(source, (3,), (8,), (2,))

    def test_functions_that_raise_leave_nothing(self):
        source = "def f(item: int) -> int:\n    db.stock[item].qty += 1\n    fabius.require(item == 3)\n    return 1\n"
        self.agree(source, (1,), (3,))

    def test_random_functions(self):
        count = int(os.environ.get("FABIUS_PYTHON_FUNCTIONS", "60"))
        seed = int(os.environ.get("FABIUS_PYTHON_SEED", "1"))
        for number in range(seed, seed + count):
            writer = Writer(random.Random(number))
            source = writer.function()
            calls = [writer.arguments() for _ in range(3)]
            if number % 25 == 0:
                # What is replayed is made again with all functions there are.
                self.doCleanups()
                self.setUp()
            self.begin_again()
            again = f"FABIUS_PYTHON_FUNCTIONS=1 FABIUS_PYTHON_SEED={number} {AGAIN}"
            with self.subTest(seed=number):
                try:
                    self.agree(source, *calls, again=again)
                except fabius.compilation.CompilationError as refused:
                    self.fail(f"{refused}\n{again}\n{source}")


if __name__ == "__main__":
    unittest.main()
