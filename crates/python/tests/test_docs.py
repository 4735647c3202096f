"""What the documents show does what they say."""

import contextlib
import io
import linecache
import os
import pathlib
import tempfile
import unittest

import fabius

ROOT = pathlib.Path(__file__).parents[3]


def blocks(path):
    """The Python that a document shows, by the lines where it begins."""
    lines = (ROOT / path).read_text().split("\n")
    begin = None
    for number, line in enumerate(lines):
        if line == "```python":
            begin = number + 1
        elif line == "```" and begin is not None:
            yield begin + 1, "\n" * begin + "\n".join(lines[begin:number])
            begin = None


@unittest.skipUnless(hasattr(contextlib, "chdir"), "the examples are run from Python 3.11 on")
class Documents(unittest.TestCase):
    def test_examples_run(self):
        for document in (
            "README.md",
            "docs/python.md",
            "docs/python-comparison.md",
            "docs/python-testing.md",
            "crates/python/README.md",
        ):
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                names = {}
                for line, block in blocks(document):
                    with self.subTest(document=document, line=line):
                        self.run_block(document, line, block, names)
                for value in names.values():
                    if isinstance(value, fabius.Database):
                        value.close()

    def run_block(self, document, line, block, names):
        if "sqlalchemy" in block:
            try:
                import pandas
                import sqlalchemy
            except ImportError:
                self.skipTest("there is no SQLAlchemy or no pandas")
            sqlalchemy.dialects.registry.register("fabius", "fabius.sqlalchemy", "FabiusDialect")
            del pandas
        db = names.get("db")
        if db is None or db.closed:
            # What follows an example goes on with its database.
            names["db"] = fabius.open("shop" if os.path.exists("shop") else None)
        if block.lstrip().startswith("import"):
            names["db"].close()
        printed = io.StringIO()
        # As if it stood in a file: what is compiled is read again.
        file = f"<{document}:{line}>"
        linecache.cache[file] = (len(block), None, block.splitlines(keepends=True), file)
        with contextlib.redirect_stdout(printed):
            exec(compile(block, file, "exec"), names)
        if "print(reserve(5, 1))" in block:
            self.assertEqual(printed.getvalue().split("\n")[0], "9")
        if "create_engine" in block:
            names["engine"].dispose()


if __name__ == "__main__":
    unittest.main()
