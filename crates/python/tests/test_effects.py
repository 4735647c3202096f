"""What a call leaves in the client's process: files that it wrote, globals, and tracebacks."""

import importlib.util
import os
import tempfile
import traceback
import unittest

import fabius
from fabius.compilation import CompilationError

from shop import ROWS, SCHEMA, defined

WRITING = """
def f(item: int, path: str) -> int:
    with open(path, "a") as log, open(path + ".last", "w") as last:
        row = db.stock[item]
        print("took", item, file=log, sep="-")
        row.qty -= 1
        log.write(f"left {row.qty}\\n")
        last.write("done")
    fabius.require(row.qty >= 0, "none left")
    return row.qty
"""


class Files(unittest.TestCase):
    def setUp(self):
        self.db = fabius.open(durability="none")
        self.addCleanup(self.db.close)
        self.db.script(SCHEMA + ROWS)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "a log")

    def read(self, path):
        with open(path) as file:
            return file.read()

    def test_both_ways_write_the_same(self):
        take = self.db.transaction(defined(WRITING, self.db))
        written = []
        for call in (take, take.client):
            left = [call(1, self.path), call(1, self.path)]
            written.append((self.read(self.path), self.read(self.path + ".last")))
            os.remove(self.path)
            self.db.execute("update stock set qty = qty + 2 where item = 1")
        self.assertEqual(written[0], written[1])
        self.assertEqual(written[0], (f"took-1\nleft {left[0]}\ntook-1\nleft {left[1]}\n", "done"))

    def test_what_aborts_writes_nothing(self):
        take = self.db.transaction(defined(WRITING, self.db))
        self.db.execute("update stock set qty = 0 where item = 1")
        with self.assertRaises(fabius.Error):
            take(1, self.path)
        self.assertFalse(os.path.exists(self.path) or os.path.exists(self.path + ".last"))

    def test_what_is_refused(self):
        for body, said in (
            ("with open('x') as g:\n        pass", "a file that is opened so"),
            ("with open('x', 'r') as g:\n        n = g.read()", "a file that is opened so"),
            ("with open('x', 'a') as g:\n        g.write(5)", "a compiled transaction cannot have"),
            ("with open('x', 'a') as g:\n        h = g", "a file as a value"),
            ("with open('x', 'a') as g:\n        g.flush()", "g.flush of a file"),
            ("with db.transaction():\n        pass", "with"),
        ):
            with self.subTest(body=body), self.assertRaises(CompilationError) as raised:
                self.db.transaction(defined(f"def f(a: int) -> None:\n    {body}\n", self.db))
            self.assertIn(said, str(raised.exception))


COMMON = """
count, word = 0, "w"

def add(n: int) -> int:
    global count, word
    count += n
    word += str(n)
    return count * 10

def double() -> None:
    global count
    count *= 2

def seen() -> int:
    return count

def f(a: int) -> str:
    db.stock[3].qty -= 1
    s = count + add(a) * count
    double()
    xs = [add(i) for i in range(3)]
    if add(1) > 0:
        s += seen()
    return f"{s} {sum(xs)} {count} {word}"
"""


class Globals(unittest.TestCase):
    """Globals that functions assign which are called."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.db = fabius.open(folder.name, durability="none")
        self.addCleanup(self.db.close)
        self.db.script(SCHEMA + ROWS)

    def test_all_ways_agree(self):
        plain = defined(COMMON, self.db)
        names = plain.__globals__
        with self.db.transaction():
            expected = plain(3), names["count"], names["word"]
        self.assertEqual(expected[1:], (10, "w30121"))
        for side in ("database", "client", "futures"):
            names.update(count=0, word="w")
            function = self.db.transaction(side=side)(plain)
            self.assertEqual((function(3), names["count"], names["word"]), expected, side)
        names.update(count=0, word="w")
        program = self.db.transaction(plain)
        program(3)
        with self.db.replay(self.db.last_seq()) as replay:
            names.update(count=77)
            self.assertEqual((replay.run(), names["count"]), (expected[0], 77))

    def test_of_another_module(self):
        more = defined(
            "total = 1\n\ndef f(n: int) -> int:\n    global total\n    total += n\n    return total\n", self.db
        )
        source = "def f(total: int) -> int:\n    more(total)\n    return more(1) + total\n"
        plain = defined(source, self.db)
        plain.__globals__["more"] = more
        self.assertEqual(self.db.transaction(plain)(5), 12)
        self.assertEqual(more.__globals__["total"], 7)
        self.assertNotIn("total", plain.__globals__)

    def test_through_a_module(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "counters.py")
        with open(path, "w") as file:
            file.write("cnt = 0\n\n\ndef bump(n: int) -> int:\n    global cnt\n    cnt += n\n    return cnt\n")
        spec = importlib.util.spec_from_file_location("counters", path)
        counters = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(counters)
        source = (
            "cnt = 100\n\ndef own() -> int:\n    return cnt\n\n"
            "def f(n: int) -> str:\n    counters.bump(n)\n    seen = counters.cnt\n    counters.bump(1)\n"
            "    fabius.require(n < 9, 'too many')\n    return f'{seen} {counters.cnt} {own()}'\n"
        )
        plain = defined(source, self.db)
        plain.__globals__["counters"] = counters
        for side in ("database", "client", "futures"):
            counters.cnt = 0
            function = self.db.transaction(side=side)(plain)
            self.assertEqual((function(3), counters.cnt), ("3 4 100", 4), side)
            with self.assertRaises(fabius.Aborted):
                function(9)
            self.assertEqual(counters.cnt, 4, side)

    def test_what_is_refused(self):
        source = (
            COMMON
            + "def g(a: int) -> int:\n    try:\n        return add(a)\n    except ValueError:\n        return 0\n"
        )
        with self.assertRaises(CompilationError) as raised:
            self.db.transaction(defined(source, self.db, "g"))
        self.assertIn("a call within try of a function that assigns globals", str(raised.exception))

        def around():
            count = 0

            def inner(n: int) -> None:
                nonlocal count
                count += n

            return inner

        inner = around()

        def outer(n: int) -> None:
            inner(n)

        with self.assertRaises(CompilationError) as raised:
            self.db.transaction(outer)
        self.assertIn("assigns count, which is of another function", str(raised.exception))

        source = "g = 0\n\ndef f(n: int) -> int:\n    global g\n    g = n\n    return sum([g for g in range(n)])\n"
        with self.assertRaises(CompilationError) as raised:
            self.db.transaction(defined(source, self.db))
        self.assertIn("a variable within an expression that is called g", str(raised.exception))

    def test_none(self):
        source = "last = 1\n\ndef g(n: int | None) -> None:\n    global last\n    last = n\n\n"
        source += "def f(n: int | None) -> int | None:\n    g(n)\n    return last\n"
        plain = defined(source, self.db)
        for side in ("database", "client", "futures"):
            for n in (3, None):
                plain.__globals__["last"] = 1
                self.assertEqual(self.db.transaction(side=side)(plain)(n), n)
                self.assertEqual(plain.__globals__["last"], n)


class Tracebacks(unittest.TestCase):
    def test_lines_of_all_functions(self):
        db = fabius.open(durability="none")
        self.addCleanup(db.close)
        db.script("create table t (id int primary key, n int not null check (n >= 0)); insert into t values (1, 1)")

        @db.transaction
        def inner(id: int, n: int) -> int:
            row = db.t[id]
            row.n -= n
            return row.n

        @db.transaction
        def outer(id: int, n: int) -> int:
            left = 1
            return inner(id, n) + left

        for id, n, kind, said in (
            (1, 2, fabius.errors.CheckViolation, "row.n -= n"),
            (1, -(2**31), fabius.errors.NumericValueOutOfRange, "row.n -= n"),
            (2, 1, fabius.RowNotFound, "row = db.t[id]"),
        ):
            with self.subTest(kind=kind):
                try:
                    outer(id, n)
                    self.fail("it aborts")
                except kind as error:
                    frames, context = traceback.extract_tb(error.__traceback__)[-2:], error.context
                self.assertEqual([frame.filename for frame in frames], [__file__] * 2)
                self.assertEqual([frame.line for frame in frames], ["return inner(id, n) + left", said])
                self.assertEqual([frame.name.rsplit(".")[-1] for frame in frames], ["outer", "inner"])
                self.assertIn("Python function", context)


if __name__ == "__main__":
    unittest.main()
