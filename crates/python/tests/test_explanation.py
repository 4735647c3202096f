"""What is said, and drawn, of a program."""

import os
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import fabius
from fabius.parameters import numbered

from shop import ROWS, SCHEMA, TAKE, defined


class Explanation(unittest.TestCase):
    def setUp(self):
        self.db = fabius.open(durability="none")
        self.addCleanup(self.db.close)
        self.db.script(SCHEMA + ROWS)
        self.take = self.db.transaction(defined(TAKE, self.db))

    def test_text(self):
        text = self.take.explain()
        self.assertIn("Phase:", text)
        self.assertIn("Key: stock[item]", text)
        self.assertIn("row.qty", text)
        self.assertNotIn("py ", text)
        self.assertIn("   4      row.qty -= n", text)

    def test_what_could_wait(self):
        lines = {
            # A key that is read.
            "row = db.plain[a]\n    db.plain[row.b].c = 'x'": "make it a parameter",
            # A branch around a write.
            "row = db.plain[a]\n    if row.b > 3:\n        row.c = 'x'": "`a if condition else b`",
        }
        for body, said in lines.items():
            function = self.db.transaction(defined(f"def f(a: int) -> None:\n    {body}\n", self.db))
            self.assertIn(said, function.explain())

    def test_lists_and_tuples(self):
        function = self.db.transaction(
            defined("def f(a: list[int], s: str | None) -> tuple[int, str]:\n    return len(a), f'{s}'\n", self.db)
        )
        self.assertIn("read only", function.explain())

    def test_picture(self):
        picture = self.take.draw()
        root = ElementTree.fromstring(picture.svg)
        self.assertTrue(root.tag.endswith("svg"))
        self.assertEqual(picture._repr_svg_(), picture.svg)
        self.assertIn("later: only whoever reads it waits for it", picture.svg)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "take.svg")
            picture.save(path)
            with open(path, encoding="utf-8") as written:
                self.assertEqual(written.read(), picture.svg)

    def test_what_cannot_be_none_is_not_null(self):
        """A program that takes a row, loops, rounds and writes tests nothing for null, and rounds no text."""
        function = self.db.transaction(
            defined(
                "def f(keys: list[int], p: Decimal) -> Decimal:\n    total = Decimal(0)\n    for n, key in enumerate(keys):\n"
                "        row = db.stock.get(key)\n        if row is None:\n            raise KeyError(key)\n"
                "        amount = row.qty * p\n        row.qty = n\n        total += amount\n"
                "        db.line.insert(cart=7, n=n, item=key, many=row.qty)\n    return round(total * p, 2)\n",
                self.db,
            )
        )
        text, values = function.program().explained()
        lines = self.db.execute(numbered(text.replace("explain", "explain (verbose)", 1)), values)
        program = "\n".join(line[0] for line in lines)
        self.assertIn("round_even(", program)
        self.assertNotIn("violates not-null", program)
        self.assertNotIn("query returned more", program)
        self.assertNotRegex(program, r"(let|var) `py [^`]*`: [^=]* null =")

    def test_functions_of_the_client_are_not_explained(self):
        local = self.db.transaction(side="client")(defined(TAKE, self.db))
        with self.assertRaises(fabius.ProgrammingError):
            local.explain()


if __name__ == "__main__":
    unittest.main()
