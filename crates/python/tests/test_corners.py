"""Corners in which a program could do something else than its function, each of which once did."""

import decimal
import unittest

from shop import Agreeing
from writer import LINES, MORE, STATEMENTS

#: A function, and calls of it.
CASES = [
    # A loop over rows is over what is there when it begins, whatever its turns change.
    (
        "def f(a: int) -> int:\n    count = 0\n    for row in db.line.where(n=a):\n        a = 2\n        count += 1\n"
        "    return count\n",
        [(1,)],
    ),
    (
        f"def f(a: int) -> int:\n    count = 0\n    for row in db.execute({LINES!r}, (a,)):\n        a = -100\n"
        "        count += 1\n    return count\n",
        [(1,)],
    ),
    (
        f"def f(a: int) -> int:\n    total = 0\n    for row in db.execute({LINES!r}, (a,)):\n"
        "        db.line[1, 2].many += 50\n        total += row.many\n    return total\n",
        [(-5,)],
    ),
    (
        f"def f(a: int) -> int:\n    total = 0\n    for row in db.line:\n"
        f"        n = db.execute({MORE!r}, (a,)).rowcount\n"
        "        total += n * row.many\n    return total\n",
        [(2,)],
    ),
    (
        f"def f(a: int) -> int:\n    for row in db.execute({LINES!r}, (a,)):\n"
        "        db.line.insert(cart=3, n=row.n, many=1)\n    return a\n",
        [(1,)],
    ),
    # What stands in a loop's `else`.
    (
        "def f(a: int) -> int:\n    r = 0\n    for i in range(3):\n        for j in range(2):\n            r += 1\n"
        "        else:\n            break\n    else:\n        r = 100\n    return r\n",
        [(1,)],
    ),
    (
        "def f(a: int) -> int:\n    for i in range(3):\n        if i == a:\n            x = i\n            break\n"
        "    else:\n        x = 100\n    return x\n",
        [(1,), (9,)],
    ),
    # Collections that change while they are gone through.
    (
        "def f(a: int) -> list[int]:\n    xs = [1, 2, 3]\n    out = [0]\n    for i, x in enumerate(xs):\n"
        "        xs = [7]\n        out.append(x + i)\n    return out\n",
        [(1,)],
    ),
    (
        "def f(a: int) -> int:\n    d = {1: 2, 3: 4}\n    n = 0\n    for k, v in d.items():\n        d = {'z': 9}\n"
        "        n += v\n    return n\n".replace("'z'", "0"),
        [(1,)],
    ),
    ("def f(a: int) -> list[int]:\n    xs = [1, 2, 3]\n    for x in xs:\n        xs[2] = 9\n    return xs\n", [(1,)]),
    (
        "def f(a: int) -> int:\n    d = {1: 2, 3: 4}\n    for k in d:\n        d[k] += a\n    return sum(d.values())\n",
        [(5,)],
    ),
    # `None` as text, and as an argument.
    ("def f(a: bool | None) -> str:\n    return f'{a}'\n", [(None,), (True,), (False,)]),
    (
        "def g(s: int | None) -> int | None:\n    if s is not None and s > 1:\n        return s\n    return None\n\n\n"
        "def f(a: int) -> str:\n    x = g(a)\n    y = g(None)\n    return f'{x} {y} {g(a) == g(a)} {x is None}'\n",
        [(1,), (2,)],
    ),
    (
        "def g(s: str) -> int:\n    return len(s)\n\n\n"
        "def f(a: int) -> int:\n    row = db.stock[a]\n    return g(row.note)\n",
        [(1,), (2,), (3,)],
    ),
    # What is computed before what.
    (
        "def g(n: int) -> int:\n    db.stock[3].qty += n\n    return n\n\n\n"
        "def f(a: int) -> int:\n    db.stock[3].qty += g(2)\n    x = 1\n    x += (x := 5)\n    return x\n",
        [(1,)],
    ),
    ("def f(a: int) -> int:\n    db.stock[9].qty = 1 // (a - 1)\n    return 1\n", [(1,), (2,)]),
    (
        "def h(n: int) -> int:\n    print('h', n)\n    return n\n\n\n"
        "def g(a: int, b: int) -> int:\n    return a * 10 + b\n\n\n"
        "def f(a: int) -> int:\n    return g(b=h(1), a=h(2))\n",
        [(1,)],
    ),
    ("def f(a: int) -> int:\n    d = {1: 2}\n    return d.get(a, 1 // (a - 1))\n", [(1,), (2,)]),
    # The end of a function.
    ("def f(a: int) -> int | None:\n    if a > 1:\n        return a\n", [(1,), (2,)]),
    (
        "def f(a: int) -> int:\n    if a > 1:\n        x = 1\n    else:\n        raise ValueError('no')\n"
        "    return x\n",
        [(1,), (2,)],
    ),
    ("def f(a: int) -> int:\n    while True:\n        a += 1\n        if a > 5:\n            return a\n", [(1,), (9,)]),
    # Parameters that are assigned, numbers that become others, exceptions with numbers.
    ("def f(xs: list[int]) -> list[int]:\n    xs = xs + [1]\n    xs.append(2)\n    return xs\n", [([5],), ([],)]),
    (
        "def f(a: int) -> str:\n    total = 0\n    for row in db.stock:\n        total += row.price * row.qty\n"
        "    return 'much' if total > 100 else 'little'\n",
        [(1,)],
    ),
    (
        "def f(a: int) -> int:\n    best = None\n    for row in db.stock:\n        if best is None or row.qty < best:\n"
        "            best = row.qty\n    return best if best is not None else -1\n",
        [(1,)],
    ),
    ("def f(a: int) -> int:\n    raise KeyError(a)\n", [(5,)]),
    ("def f(a: int) -> int:\n    raise ValueError\n", [(5,)]),
    ("def f(a: int) -> int:\n    d = {1: 1}\n    return d[a]\n", [(1,), (5,)]),
    # Rows that are given back when they are written.
    (
        "def f(a: int) -> int:\n    row = db.line.insert(cart=9, n=a, item=3, many=4)\n    db.line[9, a].many += 100\n"
        "    return row.many\n",
        [(1,), (2,)],
    ),
    (
        "def f(a: int) -> int:\n    row = db.line.upsert(cart=1, n=a, many=4)\n    row.many += 1\n"
        "    return row.many\n",
        [(1,), (5,)],
    ),
    # Rows of a table that is gone through, and written by other names; keys that others follow.
    (
        "def f(a: int) -> int:\n    for x in db.stock:\n        x.qty += 1\n        db.stock[2].qty += 10\n"
        "    return db.stock[2].qty\n",
        [(1,)],
    ),
    (
        "def f(a: int) -> int:\n    n = 0\n    for x in db.stock:\n        db.stock[3].qty += 5\n        x.note = 'q'\n"
        "        n = n * 1000 + x.qty\n    return n\n",
        [(1,)],
    ),
    ("def f(xs: list[int]) -> int:\n    xs, ys = [1], xs\n    return len(ys) * 10 + len(xs)\n", [([3, 1, 4],)]),
    (
        "def f(a: int) -> int:\n    n = 0\n"
        "    for i in range(a, a + 9_000_000_000, 3_000_000_000):\n        n += 1\n    return n\n",
        [(3_000_000_000,)],
    ),
    ("def f(a: Decimal) -> bool:\n    return a > 5\n", [(decimal.Decimal("1000000000000000000"),)]),
    ("def f(a: int | None) -> int:\n    d = {1: 2}\n    return d[a]\n", [(None,), (1,)]),
    # Columns of a row that are written one after the other.
    (
        "def f(n: int) -> str:\n    row = db.plain[1]\n    row.a += n\n    row.b = row.a + n\n    row.c = f'{row.b}'\n"
        "    row.a = 7\n    row.b -= row.a\n    return f'{row.a} {row.b} {row.c}'\n",
        [(1,), (5,)],
    ),
    (
        "def f(n: int) -> int:\n    row = db.plain[1]\n    row.a = n\n    row.b = 1 // n\n"
        "    row.c = None\n    return row.a\n",
        [(1,), (0,), (-1,)],
    ),
    (
        "def f(n: int) -> int:\n    row = db.plain[1]\n    other = db.plain[1]\n    row.a += n\n    other.b += n\n"
        "    row.b += n\n    row.c = 'y'\n    return row.a + row.b + other.b\n",
        [(1,), (5,)],
    ),
    # Texts over several lines, comprehensions of a name that means something outside.
    ('def f(a: int) -> str:\n    return """a\n  b\n      c"""\n', [(1,)]),
    ("Decimal = 5\n\n\ndef f(a: int) -> int:\n    return sum([Decimal for Decimal in [a, 2]]) + Decimal\n", [(1,)]),
    # Rounding, repetition, signs.
    (
        "def f(x: Decimal) -> str:\n    y = round(x, 2) * 100\n"
        "    return f'{int(y)} {y == int(y)} {round(x, 0) == x}'\n",
        [(decimal.Decimal(text),) for text in ("0.125", "0.135", "-0.125", "2.5", "-2.45", "0")],
    ),
    ("def f(a: int) -> str:\n    return 'ab' * a + '-' * 3\n", [(0,), (-2,), (3,)]),
    ("def f(a: float) -> bool:\n    return a > 1 and -a < 0 and a != 3\n", [(1.5,), (3.0,), (0.0,)]),
    ("def f(a: int) -> int:\n    return -9223372036854775808 + a\n", [(5,)]),
]


class Corners(Agreeing):
    STATEMENTS = STATEMENTS

    def test_all(self):
        for source, calls in CASES:
            self.begin_again()
            with self.subTest(source=source):
                self.agree(source, *calls)


if __name__ == "__main__":
    unittest.main()
