"""Functions that are compiled do what the same functions do in this process, and what cannot be is refused well.

``FABIUS_PYTHON_FUNCTIONS=10000 FABIUS_PYTHON_SEED=7`` runs so many random functions from a seed.
"""

import decimal
import linecache
import os
import random
import unittest

import fabius
from fabius.compilation import CompilationError

SCHEMA = """
    create table stock (
        item int primary key, qty int not null check (qty >= 0), price numeric(8, 2) not null, note text
    );
    create table line (cart bigint, n int, item int references stock, many bigint not null, primary key (cart, n));
"""

ROWS = """
    insert into stock values (1, 5, 1.50, null), (2, 0, 0.10, 'x'), (3, 100, 99.99, '');
    insert into line values (1, 1, 1, 7), (1, 2, 3, -2);
"""


def defined(source, db, count=[0]):
    """A function that a text defines, as if it stood in a file."""
    count[0] += 1
    file = f"<generated {count[0]}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"db": db, "fabius": fabius, "Decimal": decimal.Decimal}
    exec(compile(source, file, "exec"), names)
    return names["f"]


def outcome(call):
    """What a call gave, or why it ended."""
    try:
        return call()
    except fabius.Error as error:
        return type(error).__name__, error.sqlstate, str(error.args[0])
    except ZeroDivisionError:
        return "DivisionByZero", "22012", "division by zero"
    except OverflowError:
        return "NumericValueOutOfRange", "22003", None


def rows(db):
    return [db.execute(f"select * from {table} order by 1, 2")[:] for table in ("stock", "line")]


class Agreement(unittest.TestCase):
    def setUp(self):
        self.here, self.there = fabius.open(durability="none"), fabius.open(durability="none")
        self.addCleanup(self.here.close)
        self.addCleanup(self.there.close)
        for db in (self.here, self.there):
            db.script(SCHEMA + ROWS)

    def agree(self, source, *calls):
        """Both ways of running give the same results, and leave the same rows."""
        plain = self.here.transaction(defined(source, self.here))
        program = self.there.transaction(compiled=True)(defined(source, self.there))
        self.assertFalse(plain.compiled)
        self.assertTrue(program.compiled)
        for arguments in calls:
            here, there = outcome(lambda: plain(*arguments)), outcome(lambda: program(*arguments))
            self.assertEqual(there, here, f"{source}\n{arguments}")
            self.assertIs(type(there), type(here), f"{source}\n{arguments}")
        self.assertEqual(rows(self.there), rows(self.here), source)
        return there

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
            chance = random.Random(number)
            source = Writer(chance).function()
            calls = [
                (chance.randint(1, 4), chance.randint(-9, 9), chance.choice(["", "a", "x", "zz"])) for _ in range(3)
            ]
            for db in (self.here, self.there):
                db.script("delete from line; delete from stock")
                db.script(ROWS)
            with self.subTest(seed=number, again=f"FABIUS_PYTHON_SEED={number} FABIUS_PYTHON_FUNCTIONS=1"):
                self.agree(source, *calls)


class Writer:
    """Writes functions of what can be compiled."""

    def __init__(self, chance):
        self.chance = chance
        self.ints, self.texts = ["b"], ["s"]
        self.rows = []
        self.names = 0

    def function(self):
        body = self.block(1, self.chance.randint(2, 5))
        kind, value = self.chance.choice([("int", self.int(2)), ("str", self.text(2)), ("bool", self.truth(2))])
        return f"def f(a: int, b: int, s: str) -> {kind}:\n    row = db.stock[a]\n{body}    return {value}\n"

    def block(self, depth, count):
        before = (self.ints[:], self.texts[:])
        indent = "    " * depth
        lines = "".join(self.statement(depth, indent) for _ in range(count))
        if depth > 1:
            # What a branch defines is not there behind it.
            self.ints, self.texts = before
        return lines

    def statement(self, depth, indent):
        chance = self.chance
        kinds = ["int", "text", "augment", "row", "note", "require"]
        if depth < 4:
            kinds += ["if", "if", "for", "while", "rows"]
        kind = chance.choice(kinds)
        if kind == "int":
            name, value = self.fresh("i"), self.int(2)
            self.ints.append(name)
            return f"{indent}{name} = {value}\n"
        if kind == "text":
            name, value = self.fresh("t"), self.text(2)
            self.texts.append(name)
            return f"{indent}{name} = {value}\n"
        if kind == "augment":
            return f"{indent}{chance.choice(self.ints)} {chance.choice(['+=', '-=', '//=', '%='])} {self.int(1)}\n"
        if kind == "row":
            return f"{indent}row.qty {chance.choice(['=', '+=', '-='])} {self.int(1)} % 50\n"
        if kind == "note":
            return f"{indent}row.note = {chance.choice([self.text(1), 'None', 'row.note'])}\n"
        if kind == "require":
            return f"{indent}fabius.require({self.truth(1)}, {self.text(1)})\n"
        if kind == "if":
            then = self.block(depth + 1, chance.randint(1, 2))
            otherwise = self.block(depth + 1, 1) if chance.random() < 0.5 else ""
            return f"{indent}if {self.truth(2)}:\n{then}" + (f"{indent}else:\n{otherwise}" if otherwise else "")
        if kind == "for":
            name = self.fresh("n")
            over = chance.choice(
                [f"range({chance.randint(0, 4)})", f"range({chance.randint(-2, 3)}, {chance.randint(-2, 5)})"]
            )
            self.ints.append(name)
            body = self.block(depth + 1, chance.randint(1, 2))
            self.ints.remove(name)
            last = f"{indent}    if {self.truth(1)}:\n{indent}        {chance.choice(['break', 'continue'])}\n"
            return f"{indent}for {name} in {over}:\n{body}{last if chance.random() < 0.4 else ''}"
        if kind == "rows":
            name = self.fresh("r")
            over = chance.choice(
                ["db.line", f"db.line.where(cart={self.int(0)})", f"db.line.where(many={self.int(1)})"]
            )
            before = self.ints[:]
            self.ints += [f"{name}.many", f"{name}.many"]
            body = self.block(depth + 1, chance.randint(1, 2))
            self.ints = before
            return f"{indent}for {name} in {over}:\n{body}"
        name = self.fresh("w")
        body = self.block(depth + 1, 1)
        return f"{indent}{name} = 0\n{indent}while {name} < {chance.randint(0, 4)}:\n{indent}    {name} += 1\n{body}"

    def fresh(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def int(self, depth):
        chance = self.chance
        if depth == 0 or chance.random() < 0.3:
            return chance.choice([str(chance.randint(-5, 9)), chance.choice(self.ints), "row.qty", "a"])
        one, other = self.int(depth - 1), self.int(depth - 1)
        return chance.choice(
            [
                f"({one} {chance.choice(['+', '-', '*', '//', '%'])} {other})",
                f"({one} if {self.truth(depth - 1)} else {other})",
                f"{chance.choice(['min', 'max'])}({one}, {other})",
                f"abs({one})",
                f"len({self.text(depth - 1)})",
                f"-{one}",
            ]
        )

    def text(self, depth):
        chance = self.chance
        if depth == 0 or chance.random() < 0.3:
            return chance.choice(["'x'", "''", "'ü\\''", chance.choice(self.texts)])
        one, other = self.text(depth - 1), self.text(depth - 1)
        number = self.int(depth - 1)
        return chance.choice(
            [
                f"({one} + {other})",
                f"str({self.int(depth - 1)})",
                f"({one} if {self.truth(depth - 1)} else {other})",
                f"max({one}, {other})",
                "f'<{row.note}>'",
                one if "'" in number else f"f'{{{number}}}!'",
            ]
        )

    def truth(self, depth):
        chance = self.chance
        compare = chance.choice(["==", "!=", "<", "<=", ">", ">="])
        if depth == 0:
            return f"{self.int(0)} {compare} {self.int(0)}"
        one, other = self.truth(depth - 1), self.truth(depth - 1)
        return chance.choice(
            [
                f"{self.int(depth - 1)} {compare} {self.int(depth - 1)}",
                f"{self.int(0)} < {self.int(0)} <= {self.int(0)}",
                f"{self.text(depth - 1)} {compare} {self.text(depth - 1)}",
                f"({one} and {other})",
                f"({one} or {other})",
                f"not {one}",
                "row.note is None",
                f"row.note == {self.text(0)}",
                f"bool({self.int(0)})",
            ]
        )


class Refusals(unittest.TestCase):
    """Each has the place, what is refused, and what to write instead."""

    def setUp(self):
        self.db = fabius.open(durability="none")
        self.addCleanup(self.db.close)
        self.db.script(SCHEMA + ROWS)

    CASES = [
        ("x = [1, 2]", "a collection", "a variable for each value"),
        ("x = {'a': 1}", "a collection", "a variable for each value"),
        ("x = [i for i in range(3)]", "a comprehension", "a loop over range"),
        ("x = lambda: 1", "a definition", "outside of the transaction"),
        ("import os", "import", "outside of the transaction"),
        ("try:\n        a = 1\n    except ValueError:\n        pass", "try", "catch it around the call"),
        ("with open('x') as g:\n        pass", "with", "outside of the transaction"),
        ("raise ValueError(a)", "raise", "fabius.require"),
        ("assert a", "assert", "fabius.require"),
        ("x = y = 1", "several targets", "one after the other"),
        ("for c in 'abc':\n        pass", "a loop over this", "range(...)"),
        ("for i in range(3):\n        pass\n    else:\n        a = 1", "else behind a loop", "a variable"),
        ("x = a ** 2", "powers", "multiply"),
        ("x = a & 1", "operators on bits", "arithmetic"),
        ("x = a in db.stock", "in and not in", "each value"),
        ("x = a / 2", "/ of int", "//"),
        ("x = a + 'x'", "int + str", "convert"),
        ("x = a == 'x'", "int == str", "convert"),
        ("x = db.stock[a].qty", "an attribute of anything but a named row", "row = db.table[key]"),
        ("x = unknown", "unknown, which is none of its names", "as an argument"),
        ("if a:\n        x = 1\n    y = x", "x where it may not have a value yet", "give it one before"),
        ("x = 1\n    x = 'a'", "a name that is int and str", "two names"),
        ("x = db.stock[a]\n    x = 1", "a name that is a row and a value", "two names"),
        ("row = db.stock[a]\n    x = row.note + 'x'", "+ with a str that may be None", "NOT NULL"),
        ("row = db.stock[a]\n    row.item = 3", "a change of a key", "insert another"),
        ("row = db.stock['x']", "str for stock.item, which is int", "convert it"),
        ("print(a)", "a call of this", "fabius.require, insert and delete"),
        ("x = round(a)", "a call of this", "abs, len, str"),
        ("x = f'{a:5}'", "a value in an f-string with a format", "where the result is used"),
        ("x = 99999999999999999999", "an int of more than 64 bits", "Decimal"),
        ("x = b'x'", "a literal of class bytes", "as an argument"),
        ("x = a is 1", "is of anything but None", "=="),
        ("for i in range(0, 9, a):\n        pass", "a range whose step is not a literal", "write the step out"),
        ("fabius.require(a > 0, f'{a // a}')", "a message that may fail", "names before"),
        (
            "row = db.stock[a]\n    for row in db.stock:\n        a += 1\n    x = row.qty",
            "row where it may not",
            "before",
        ),
        ("x = (a and 'x')", "and or or whose value is no bool", "if x else y"),
    ]

    def test_what_cannot_be(self):
        for body, what, instead in self.CASES:
            with self.subTest(body=body):
                source = f"def f(a: int):\n    {body}\n"
                with self.assertRaises(CompilationError) as raised:
                    self.db.transaction(compiled=True)(defined(source, self.db))
                said = str(raised.exception)
                self.assertIn(f"a compiled transaction cannot have {what}", said)
                self.assertIn(instead, said)
                self.assertRegex(said, r"^<generated \d+>:\d+: ")
                self.assertIn("^", said)

    def test_what_is_wrong(self):
        cases = [
            ("x = db.nothing[a]", "nothing"),
            ("row = db.stock[a]\n    x = row.quantity", "it has item, qty, price, note"),
            ("db.stock[a].quantity = 1", "it has item, qty, price, note"),
            ("row = db.line[a]", "the key of line is (cart, n), but 1 values are given"),
            ("for row in db.stock.where(quantity=1):\n        pass", "it has item, qty, price, note"),
        ]
        for body, message in cases:
            with self.subTest(body=body):
                with self.assertRaises(CompilationError) as raised:
                    self.db.transaction(compiled=True)(defined(f"def f(a: int):\n    {body}\n", self.db))
                self.assertIn(message, str(raised.exception))

    def test_annotations(self):
        for header, message in (
            ("a", "needs an annotation"),
            ("a: list", "needs an annotation"),
            ("*a: int", "takes several values"),
        ):
            with self.subTest(header=header), self.assertRaises(CompilationError) as raised:
                self.db.transaction(compiled=True)(defined(f"def f({header}):\n    pass\n", self.db))
            self.assertIn(message, str(raised.exception))
        with self.assertRaises(CompilationError) as raised:
            self.db.transaction(compiled=True)(defined("def f(a: int):\n    return a\n", self.db))
        self.assertIn("not annotated", str(raised.exception))

    def test_arguments_of_another_class(self):
        function = self.db.transaction(compiled=True)(defined("def f(a: int) -> int:\n    return a\n", self.db))
        for wrong in ("x", None, 1.0, True):
            with self.assertRaises(TypeError):
                function(wrong)
        with self.assertRaises(OverflowError):
            function(2**63)
        with self.assertRaises(TypeError):
            function()
        self.assertEqual(function(a=5), 5)

    def test_names_that_mean_something_else(self):
        with fabius.open() as other, self.assertRaises(CompilationError):
            # `db` is another database than the one that the function is a transaction of.
            function = defined("def f(a: int):\n    db.stock[a].qty += 1\n", self.db)
            other.script(SCHEMA)
            other.transaction(compiled=True)(function)
        for source in (
            "def f(len: int) -> int:\n    return len\n",
            "def f(a: int) -> int:\n    max = a\n    return max\n",
        ):
            with self.assertRaises(CompilationError) as raised:
                self.db.transaction(compiled=True)(defined(source, self.db))
            self.assertIn("give it another name", str(raised.exception))

    def test_no_source(self):
        names = {}
        exec("def f(a: int) -> int:\n    return a\n", names)
        with self.assertRaises(CompilationError) as raised:
            self.db.transaction(compiled=True)(names["f"])
        self.assertIn("source", str(raised.exception))

    def test_it_is_explained(self):
        source = "def f(a: int) -> int:\n    db.stock[a].qty += 1\n    return 1\n"
        function = self.db.transaction(compiled=True)(defined(source, self.db))
        self.assertIn("stock", function.explain())
        self.assertIn("Phase:", function.explain())

    def test_versions_run_side_by_side(self):
        one = self.db.transaction(compiled=True)(defined("def f(a: int) -> int:\n    return a + 1\n", self.db))
        other = self.db.transaction(compiled=True)(defined("def f(a: int) -> int:\n    return a + 2\n", self.db))
        self.assertEqual((one(1), other(1)), (2, 3))


if __name__ == "__main__":
    unittest.main()
