"""What a call leaves in the client's process: files that it wrote, and tracebacks."""

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
