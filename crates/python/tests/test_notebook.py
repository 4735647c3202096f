"""The notebook of the examples runs from its first cell to its last, and what its cells assert holds."""

import contextlib
import io
import json
import linecache
import pathlib
import unittest

import fabius

try:
    import pandas
except ImportError:
    pandas = None

NOTEBOOK = pathlib.Path(__file__).parents[3] / "examples/notebook.ipynb"


def cells():
    """The code of each cell, in order, with the name of the file that it stands in for Python."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            yield f"<notebook cell {number}>", "".join(cell["source"])


@unittest.skipIf(pandas is None, "there is no pandas: `cargo xtask clients` installs it")
class Notebook(unittest.TestCase):
    def test_cells_run(self):
        names = {"display": lambda *shown: None}
        self.addCleanup(self.close, names)
        for file, source in cells():
            # As in a notebook, where what is compiled is read again by `inspect`.
            linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
            self.addCleanup(linecache.cache.pop, file, None)
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(source, file, "exec"), names)
        self.assertTrue(names["db"].closed, "the last cell closes the database")

    def close(self, names):
        """Closes the database if a cell has raised before the last."""
        if isinstance(names.get("db"), fabius.Database):
            names["db"].close()


if __name__ == "__main__":
    unittest.main()
