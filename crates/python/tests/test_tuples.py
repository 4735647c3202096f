"""Tuples with a name."""

import unittest

from fabius.compilation import CompilationError

from shop import Agreeing, defined

HEAD = """\
def g(n: int) -> tuple[int, str]:
    return n + 1, f'{n}'


"""

BODIES = (
    "t = (a, b)\n    return t[0] * 10 + t[1]",
    "t = a, b\n    t = (t[1], t[0])\n    x, y = t\n    return x * 10 + y + len(t)",
    "t = (a, 'x', 2.5)\n    n, s, f = t\n    return n + len(s) + int(f) + len(t[-2])",
    "best = (0, 0)\n    for i in range(a):\n        if (i * b) % 7 > best[0]:\n"
    "            best = ((i * b) % 7, i)\n    return best[0] * 100 + best[-1]",
    "t = g(a)\n    u = t\n    return u[0] + len(t[1])",
    "if a > 2:\n        t = (1, a)\n    else:\n        t = (b, None)\n    return t[0] if t[1] is None else t[1]",
    "t = (a, b)\n    xs = [t[0] + x for x in range(t[1] % 5)]\n    return sum(xs) + (3 in t) + (a not in t)",
    "t = (a, b, 3)\n    n = 0\n    for x in t:\n        n = n * 10 + x\n    return n",
    "t = db.stock[1].qty, db.stock[3].qty\n    db.stock[1].qty = t[1]\n    db.stock[3].qty = t[0]\n"
    "    return t[0] - t[1]",
)

#: A body, and what is refused of it.
REFUSED = (
    ("t = (a, b)\n    return t[2]", "use its parts: t[0]"),
    ("t = (a, b)\n    print(t)\n    return 1", "use its parts: t[0]"),
    ("t = (a, b)\n    t[0] = 5\n    return 1", "which is frozen"),
    ("t = (a, [1, 2])\n    return 1", "a tuple with a name"),
    ("t = (a, b)\n    t = (a, b, 2)\n    return 1", "a tuple with a name"),
    (
        "t = (a, b)\n    try:\n        a = 1\n    except ValueError as t:\n        a = 2\n    return a",
        "a tuple with a name",
    ),
    ("t = (a, b)\n    x, y, z = t\n    return 1", "several targets for one value"),
)


class Tuples(Agreeing):
    def test_all(self):
        for body in BODIES:
            with self.subTest(body=body):
                source = f"{HEAD}def f(a: int, b: int) -> int:\n    {body}\n"
                self.agree(source, (1, 2), (3, -1), (5, 4))

    def test_results(self):
        source = (
            "def f(a: int) -> tuple[int, str]:\n    t = (a, 's')\n    if a > 1:\n        return t\n    return a, 'n'\n"
        )
        self.agree(source, (1,), (2,))

    def test_refused(self):
        for body, said in REFUSED:
            with self.subTest(body=body), self.assertRaises(CompilationError) as refused:
                self.there.transaction(defined(f"def f(a: int, b: int) -> int:\n    {body}\n", self.there))
            self.assertIn(said, str(refused.exception))


if __name__ == "__main__":
    unittest.main()
