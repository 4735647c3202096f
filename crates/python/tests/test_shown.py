"""Each transaction that a document or an example shows does the same as a program, in the client's process, and as
plain Python over dictionaries.

Of a document its tables and the functions are taken as they are written. What calls they get here, and what the tables
are in the model, stands below.
"""

import ast
import json
import unittest
from decimal import Decimal
from typing import Any, NamedTuple

from model import Column, Model, Table
from shop import Agreeing
from test_docs import ROOT, blocks
from warehouses import warehouses

WHOLE, WHOLE_32, TEXT = Column(int), Column(int, bits=32), Column(str)


def stock(column, has_check=False, rows=((5, 10),), name="stock"):
    """The table that most of the documents have."""
    checks = {"stock_qty_check": lambda row: row["qty"] >= 0} if has_check else {}
    table = Table(name, ("item",), {"item": column, "qty": column}, checks)
    for item, qty in rows:
        table.insert(item=item, qty=qty)
    return Model([table])


def shop_and_accounts():
    """The tables of the guide."""
    accounts = Table("account", ("id",), {"id": WHOLE_32, "owner": TEXT, "cents": WHOLE})
    accounts.insert(id=1, owner="Ada", cents=10000)
    accounts.insert(id=2, owner="Bob", cents=0)
    return Model([*stock(WHOLE_32, True).tables.values(), accounts])


def notebook():
    """The tables of the notebook."""
    checks = {"stock_qty_check": lambda row: row["qty"] >= 0}
    items = Table("stock", ("item",), {"item": WHOLE, "name": TEXT, "qty": WHOLE}, checks)
    for item, name, qty in ((1, "lamp", 40), (2, "chair", 500), (3, "table", 3)):
        items.insert(item=item, name=name, qty=qty)
    orders = Table("orders", ("id",), {"id": WHOLE, "item": WHOLE, "n": WHOLE}, references={"item": items})
    return Model([items, orders])


def tickets():
    """The tables of the ticket sale."""
    checks = {"events_check": lambda row: 0 <= row["sold"] <= row["seats"]}
    events = Table("events", ("id",), {"id": WHOLE, "name": TEXT, "seats": WHOLE, "sold": WHOLE}, checks)
    events.insert(id=1, name="Last Night", seats=2, sold=0)
    events.insert(id=2, name="First Night", seats=0, sold=0)
    columns = {"key": TEXT, "event": WHOLE, "seat": WHOLE, "buyer": TEXT}
    return Model([events, Table("orders", ("key",), columns, references={"event": events})])


class Shown(NamedTuple):
    """How a document's functions are called."""

    document: str
    #: The document's tables as a model.
    model: Any
    #: Calls one after the other: functions and arguments.
    calls: Any
    #: Rows that the document puts into its tables in another way than by a script.
    rows: str = ""


def of(function, *calls):
    """Calls of one function."""
    return [(function, arguments) for arguments in calls]


TAKEN = [(5, 1), (5, 0), (5, 10), (5, 9), (9, 1), (5, 1)]

#: Of TPC-C: also an item that is not there, customers by name who are not there, and districts without orders.
TERMINALS = [
    ("new_order", (1, 1, 1, [1, 2], [1, 1], [5, 3])),
    ("new_order", (1, 1, 10, [7, 7, 89], [1, 2, 1], [10, 9, 1])),
    ("new_order", (1, 2, 1, [1, 101], [1, 1], [5, 3])),
    ("new_order", (3, 1, 1, [1], [1], [5])),
    ("new_order", (2, 10, 30, [], [], [])),
    ("payment", (1, 1, 1, 1, None, "last3", Decimal("12.50"))),
    ("payment", (1, 1, 2, 3, 20, "", Decimal("0.99"))),
    ("payment", (1, 1, 1, 1, None, "nobody", Decimal("1"))),
    ("payment", (1, 1, 1, 1, 31, "", Decimal("1"))),
    ("order_status", (1, 1, 1)),
    ("order_status", (1, 1, 10)),
    ("order_status", (1, 1, 2)),
    ("stock_level", (1, 1, 50)),
    ("stock_level", (1, 1, 21)),
    ("stock_level", (1, 11, 21)),
    ("delivery", (1, 7)),
    ("delivery", (1, 8)),
    ("delivery", (1, 9)),
    ("order_status", (1, 1, 10)),
]

SHOWN = [
    Shown("README.md", lambda: stock(WHOLE_32), of("reserve", *TAKEN)),
    Shown("crates/python/README.md", lambda: stock(WHOLE_32), of("reserve", *TAKEN)),
    Shown(
        "docs/python.md",
        shop_and_accounts,
        [
            *of("reserve", *TAKEN, (5, -9), (5, -(2**31))),
            *of("sell", *TAKEN, (5, 8), (5, -3)),
            *of("pay", (1, 2, 500), (2, 1, 501), (2, 1, 500), (1, 3, 1), (1, 1, 10000)),
        ],
    ),
    Shown("docs/python-comparison.md", lambda: stock(WHOLE, True), of("reserve", *TAKEN, (5, -(2**62)))),
    Shown(
        "docs/python-testing.md",
        lambda: stock(WHOLE_32, rows=((1, 9), (2, 9))),
        of("reserve", (1, 3), (2, 3), (1, 3), (1, 4), (3, 1)),
    ),
    Shown(
        "examples/notebook.ipynb",
        notebook,
        of("order", (1, 3, 2), (2, 3, 2), (3, 2, 1), (3, 2, 1), (4, 9, 1)),
        "insert into stock values (1, 'lamp', 40), (2, 'chair', 500), (3, 'table', 3)",
    ),
    Shown(
        "examples/ticket_sale/service.py",
        tickets,
        of("reserve", (1, "a", "1"), (1, "a", "1"), (1, "b", "1"), (1, "b", "2"), (1, "c", "3"), (2, "c", "4"))
        + of("reserve", (3, "c", "5")),
        "insert into events (name, seats) values ('Last Night', 2), ('First Night', 0)",
    ),
    Shown(
        "examples/python_speed.py",
        lambda: stock(WHOLE_32, rows=((5, 2_000_000_000),), name="speed_stock"),
        of("reserve", (5, 1), (5, 2**31 - 1), (5, 1), (6, 1)),
    ),
    Shown("examples/tpcc.py", warehouses, TERMINALS),
]


def sources(path):
    """The Python that a file shows."""
    if path.suffix == ".md":
        return [text for _, text in blocks(path.relative_to(ROOT))]
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [text]


def shown_by(path):
    """The transactions that a file shows, by their names and without their decorators; and the script of its
    tables."""
    exceptions, functions, scripts = [], {}, []
    for tree in map(ast.parse, sources(path)):
        constants = {}
        for node in ast.walk(tree):
            decorators = [ast.unparse(one) for one in getattr(node, "decorator_list", [])]
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                constants[ast.unparse(node.targets[0])] = node.value.value
            elif isinstance(node, ast.ClassDef) and [ast.unparse(base) for base in node.bases] == ["Exception"]:
                exceptions.append(node)
            elif isinstance(node, ast.FunctionDef) and any("db.transaction" in one for one in decorators):
                node.decorator_list = []
                functions[node.name] = ast.unparse([*exceptions, node])
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "db.script":
                script = node.args[0]
                named = constants.get(ast.unparse(script), "")
                scripts.append(script.value if isinstance(script, ast.Constant) else named)
    beside = path.with_suffix(".sql")
    if beside.exists():
        scripts.append(beside.read_text(encoding="utf-8"))
    return functions, "\n;".join(scripts)


class Transactions(Agreeing):
    def test_all_agree(self):
        for shown in SHOWN:
            with self.subTest(document=shown.document):
                functions, script = shown_by(ROOT / shown.document)
                self.begin(f"{script};{shown.rows}", shown.model())
                for name, arguments in shown.calls:
                    self.agree(functions[name], arguments, name=name)

    def test_none_is_missing(self):
        listed = {(shown.document, name) for shown in SHOWN for name, _ in shown.calls}
        files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "crates/python/README.md"]
        files += [*ROOT.glob("examples/**/*.py"), *ROOT.glob("examples/**/*.ipynb"), *ROOT.glob("examples/**/*.md")]
        found = {(str(path.relative_to(ROOT)), name) for path in files for name in shown_by(path)[0]}
        self.assertEqual(found, listed)


if __name__ == "__main__":
    unittest.main()
