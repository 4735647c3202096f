"""What a program cannot do is refused when the function is defined: with its place, and what to write instead."""

import datetime
import unittest

import fabius
from fabius.compilation import CompilationError

from shop import ROWS, SCHEMA, defined


class Refusals(unittest.TestCase):
    """Each has the place, what is refused, and what to write instead."""

    def setUp(self):
        self.db = fabius.open(durability="none")
        self.addCleanup(self.db.close)
        self.db.script(SCHEMA + ROWS)

    CASES = [
        ("return [1, 'x']", "str in a list of int", "convert it"),
        ("x = [1]\n    y = x", "a second name for a list", "copy it: x.copy()"),
        ("x = [1]\n    for y in x:\n        x.append(y)", "a loop over a list that grows in it", "a copy"),
        ("x = [1]\n    x[0:1] = [2]", "a change of a part of a list", "one by one"),
        ("x = sorted([a], key=f)", "this key", "lambda x"),
        ("x = sorted([a], key=lambda x, y=1: x)", "a key of other than one argument", "lambda x"),
        ("x = max(a, 2, key=abs)", "this call of max", "leave its named arguments out"),
        ("x = {**{'a': 1}}", "a dictionary in another (**)", "one by one"),
        ("return {1: 2}", "a dict as the result", "return a list"),
        ("x = (1, [2])", "a tuple with a name", "a, b = x, y"),
        ("x, y = a", "several targets for one value", "a, b = x, y"),
        ("x = lambda: 1", "a definition", "outside of the transaction"),
        ("import os", "import", "outside of the transaction"),
        (
            "try:\n        a = 1\n    except OSError:\n        pass\n    finally:\n        a = 2",
            "finally",
            "behind the try",
        ),
        ("try:\n        a = 1\n    except Exception:\n        pass", "except Exception, which the database", "around"),
        ("raise a", "raise of anything but a class of exceptions", "ValueError"),
        ("raise ValueError(a, 2)", "an exception of several arguments", "one text"),
        ("x = 2 ** a", "a power whose exponent is no literal", "1 << n"),
        ("x = 1.5 ** 2", "float ** int", "convert"),
        ("x = (a > 1) & (a < 5)", "bool & bool", "`x and y`"),
        ("x = pow(a, 2, 5)", "a call of pow", "a loop"),
        ("x = divmod(a, 2)", "a call of divmod", "q, r = divmod(x, y)"),
        ("x = f'{a:e}'", "the format 'e' of a int", "where the result is used"),
        ("x = f'{a:{a}}'", "a format that is computed", "write it out"),
        ("x = f'{Decimal(1):5}'", "the format '5' of a Decimal", "{x:.2f}"),
        ("x = f'{BEGIN:%A}'", "%A in the format of a moment", "%Y"),
        ("x = BEGIN.tzinfo", "tzinfo of a datetime", "have parts: year"),
        ("x = BEGIN.date(1)", "this call of date", "leave its arguments out"),
        ("x = timedelta(days=a) / 2", "timedelta / int", "d // n"),
        ("x = timedelta(years=a)", "timedelta of this form", "timedelta(days=n)"),
        ("x = timedelta(days=1.5 * a)", "timedelta(float)", "whole numbers"),
        ("x = 0\n    x += timedelta(days=1)", "int and timedelta", "a value of its class"),
        ("x = Size.SMALL", "a member of an enumeration", "write Size.SMALL.value"),
        ("x = SIZES['a']", "SIZES, a dict from outside the function", "pass what is needed of it"),
        ("x = NOTHING is None", "NOTHING, a NoneType from outside the function", "write it in the function"),
        ("x = datetime.now()", "a moment without a time zone", "datetime.now(timezone.utc)"),
        ("x = urllib.request.urlopen('x')", "a call of urllib.request.urlopen", "call it before"),
        ("x = subprocess.run(['x'])", "a call of subprocess.run", "call it before"),
        ("raise Mine(a)", "a Mine, which is made by code of its own", "whose text is its argument"),
        ("x = db.stock[1:2]", "a range of rows anywhere but in a loop", "for row in db.table[a:b]"),
        ("del db.stock[1:]", "a range of rows anywhere but in a loop", "for row in db.table[a:b]"),
        ("for row in db.stock[1:9:2]:\n        pass", "a range of keys with a step", "leave out others"),
        ("for row in db.line[1:, 2]:\n        pass", "not the last part of a key", "lower:upper"),
        ("for row in db.stock['x':]:\n        pass", "int >= str", "convert"),
        ("x = Decimal(a).quantize(Decimal(a))", "quantize to what is no literal", "0.01"),
        ("x = Decimal(a).quantize(Decimal('1'), rounding='ROUND_ODD')", "the rounding ROUND_ODD", "ROUND_HALF_UP"),
        ("x = Decimal(a) / 3", "a quotient of Decimal that is not rounded", "round(x / y, 2)"),
        ("x = Decimal(a)\n    x /= 3", "a quotient of Decimal that is not rounded", "round(x / y, 2)"),
        ("x = 'a b'.split(None, 1)", "split at white space", "a separator"),
        ("x = 'a b'.rsplit(' ')", "a call of rsplit", "of texts"),
        ("x = db.sql('select {none}').scalar()", "the value of parameter 'none' is missing", "name=value"),
        ("x = db.sql('select {a + 1}', a=1).scalar()", "is no parameter: write {name}", "name=value"),
        ("x = db.sql(f'select {a}').scalar()", "a statement that is put together", "{name} for each value"),
        ("x = a + 'x'", "int + str", "convert"),
        ("x = a == 'x'", "int == str", "convert"),
        ("y = [1]\n    x = 'x' in y", "str in list[int]", "an element of a list"),
        ("x = unknown", "unknown, which is none of its names", "as an argument"),
        ("if a:\n        x = 1\n    y = x", "x where it may not have a value yet", "give it one before"),
        ("x = 1\n    x = 'a'", "a name that is int and str", "two names"),
        ("x = db.stock[a]\n    x = 1", "a name that is a row and a value", "two names"),
        ("row = db.stock[a]\n    x = a > 1 and row.note > 'x'", "> of what may be None", "if x is None"),
        ("row = db.stock.get(a)\n    x = row.qty", "row where it may be None", "if row is None"),
        ("row = db.stock[a]\n    row.item = 3", "a change of a key", "insert another"),
        ("row = db.stock['x']", "str for stock.item, which is int", "convert it"),
        ("x = db.execute(f'select {a}').scalar()", "a statement that is put together", "%s for each value"),
        ("x = db.execute('select %s', (1, 2)).scalar()", "this statement", "a value for each"),
        ("x = db.execute('select 1 as a, 2 as b').scalar()", "scalar of several columns", "one()"),
        ("x = input()", "a call of input", "pass what was said"),
        ("x = bytes(a)", "a call of bytes", "`: bytes`"),
        ("x = unknown(a)", "unknown, which is not defined here", "import it"),
        ("x = 'a'.encode()", "a call of encode", "before the call"),
        ("x = '{}'.format(a)", "a call of format", "f-string"),
        ("x = '%s' % a", "str % int", "f-string"),
        ("x = datetime.fromisoformat(str(a))", "a call of fromisoformat", "`: datetime`"),
        ("db.commit()", "a call of commit", "one transaction"),
        ("db.stock.update(qty=1)", "a call of update", "db.table[key].column = value"),
        ("db.stock.insert(item=9, qty='x')", "str for column qty, which is int", "convert it: int('x')"),
        ("db.stock[a].qty = f'{a}'", "str for column qty, which is int", "convert it: int(f'{a}')"),
        ("db.stock[a].qty = 1.5 * a", "float for column qty, which is int", "convert it: int(1.5 * a)"),
        ("x = a if a else 1.5", "int or float by a condition", "convert it: int(1.5)"),
        ("row = db.stock[a]\n    x = row[0]", "a row's column by its place", "name the column: row.item"),
        ("row = db.stock.get(a)\n    x, y = row", "several targets for one value", "row.qty"),
        ("x, y = db.sql('select 1 as p').one()", "2 targets for a row of 1 columns", "each column a target"),
        ("row = db.sql('select 1 as p').one()\n    x = row[1]", "column 1 of a row of 1", "the first is that at 0"),
        ("row = db.sql('select 1 as p').one()\n    x = row[a]", "a place that is computed", "row.column"),
        ("for (x, y), z in db.sql('select 1 as p'):\n        pass", "this target of a loop", "each column"),
        ("x = list(db.sql('select 1 as p'))", "rows in a list", "[row.id for row in ...]"),
        ("x = db.sql('select 1 as p').all()", "all of a result", "one(), scalar()"),
        ("x = int('7', 8)", "int(str, int)", "base 10"),
        ("x = abs('a')", "abs(str)", "another class"),
        ("x = 'abc'[::2]", "a slice with a step", "range(0, len(x), 2)"),
        ("x = timedelta(days=a) * 1.5", "timedelta * float", "d * 3 // 2"),
        ("def g():\n        pass", "g, which is defined in it", "outside of the transaction"),
        ("x = " + "(a + " * 40 + "a" + ")" * 40, "parts this deep", "give a part of it a name"),
        ("x = " + "a + " * 200 + "a", "parts this deep", "give a part of it a name"),
        ("x = print(a)", "print within an expression", "a line of its own"),
        ("print(a, file=None)", "print with file", "standard output"),
        ("for i in range(a):\n        x = random.random()", "random.random() in a loop", "before the loop"),
        ("x = random.randint(1, a * 2)\n    y = random.randint(1, x)", "whose arguments are computed", "known"),
        ("x = 99999999999999999999", "an int of more than 64 bits", "Decimal"),
        ("x = b'x'", "a literal of class bytes", "as an argument"),
        ("x = a is 1", "is of anything but None", "=="),
        ("for i in range(0, 9, a):\n        pass", "a range whose step is not a literal", "write the step out"),
        (
            "row = db.stock[a]\n    for row in db.stock:\n        a += 1\n    x = row.qty",
            "row where it may not",
            "before",
        ),
        ("x = (a and 'x')", "str or int by a condition", "convert it: str(a)"),
        ("global g\n    g = a", "global g, which is no bool, int, str or Decimal now", "give it a value"),
        ("match a:\n        case [x]:\n            pass", "this pattern", "match literals"),
        ("f(a)", "f calls itself", "write a loop"),
        ("x = sorted('a,b'.splitlines())", "a collection of this", "in a loop"),
        ("x = len(db.stock)", "rows as a collection", "let a statement of SQL"),
        ("x = sorted(db.stock)", "rows as a collection", "let a statement of SQL"),
        ("yield a", "yield", "return what is wanted"),
        ("xs = [a]\n    xs.sort(key=lambda x: len(xs))", "a key that asks xs, which is being sorted", "xs = sorted(xs"),
        ("p = Point(a)\n    q = p", "a second name for a Point", "frozen=True"),
        ("p = Point(a)\n    x = f'{p}'", "a Point as a value", "use its fields"),
        ("p = Point(a)\n    x = p.z", "z of a Point", "these are there: x"),
        ("p = Point(a, 1)", "this Point: too many positional arguments", "its fields"),
        ("p = Point(a)\n    p = 1", "a name that is a Point and something else", "two names"),
        ("return Point(a)", "a Point as the result", "annotate"),
    ]

    def test_what_cannot_be(self):
        for body, what, instead in self.CASES:
            with self.subTest(body=body):
                source = f"def f(a: int):\n    {body}\n"
                with self.assertRaises(CompilationError) as raised:
                    self.db.transaction(defined(source, self.db))
                said = str(raised.exception)
                self.assertIn(what, said)
                self.assertIn(instead, said)
                self.assertRegex(said, r"^<generated \d+>:\d+: ")
                self.assertIn("^", said) if "calls itself" not in said else None

    def test_what_is_wrong(self):
        cases = [
            ("row = db.stock[a]\n    x = row.quantity", "it has item, qty, price, note"),
            ("db.stock[a].quantity = 1", "it has item, qty, price, note"),
            ("row = db.line[a]", "the key of line is (cart, n), but 1 values are given"),
            (
                "for row in db.stock[1, 2:]:\n        pass",
                "the key of stock is (item), but a range of its part 2 is given",
            ),
            ("for row in db.stock.where(quantity=1):\n        pass", "it has item, qty, price, note"),
        ]
        for body, message in cases:
            with self.subTest(body=body):
                with self.assertRaises(CompilationError) as raised:
                    self.db.transaction(defined(f"def f(a: int):\n    {body}\n", self.db))
                self.assertIn(message, str(raised.exception))

    def test_tables_may_be_made_later(self):
        function = self.db.transaction(defined("def f(a: int) -> int:\n    return db.later[a].n\n", self.db))
        with self.assertRaises(CompilationError) as raised:
            function(1)
        self.assertEqual(raised.exception.sqlstate, "42P01")
        self.db.script("create table later (id int primary key, n int not null); insert into later values (1, 5)")
        self.assertEqual(function(1), 5)

    def test_annotations(self):
        for header, message in (
            ("a", "needs an annotation"),
            ("a: list", "needs an annotation"),
            ("*a: int", "takes several values"),
        ):
            with self.subTest(header=header), self.assertRaises(CompilationError) as raised:
                self.db.transaction(defined(f"def f({header}):\n    pass\n", self.db))
            self.assertIn(message, str(raised.exception))
        with self.assertRaises(CompilationError) as raised:
            self.db.transaction(defined("def f(a: int):\n    return a\n", self.db))
        self.assertIn("not annotated", str(raised.exception))

    def test_arguments_of_another_class(self):
        function = self.db.transaction(defined("def f(a: int) -> int:\n    return a\n", self.db))
        for wrong in ("x", None, 1.0, True):
            with self.assertRaises(TypeError):
                function(wrong)
        with self.assertRaises(OverflowError):
            function(2**63)
        with self.assertRaises(TypeError):
            function()
        self.assertEqual(function(a=5), 5)

    def test_what_sql_refuses_has_its_place(self):
        """What constraints and types of the database refuse is told at the line of the function."""
        self.db.script(
            "create type mood as enum ('well', 'ill');"
            "create table person (id int primary key, born date not null, mood mood, age int not null, doc json,"
            " twice int generated always as (age * 2) stored, docb jsonb, own uuid)"
        )
        cases = [
            ("db.person[a].born = s", "str for column born, which is date", "as a date"),
            ("db.person[a].own = s", "str for column own, which is UUID", "as a UUID"),
            ("db.person[a].mood = 'odd'", 'invalid input value for enum mood: "odd"', ""),
            ("db.person[a].twice = 4", 'column "twice" can only be updated to DEFAULT', "generated column"),
            ("db.person.insert(id=a, twice=4)", "cannot insert a non-DEFAULT value", "generated column"),
            ("db.person[a].docb = db.person[a].doc", "json for column docb, which is jsonb", 'side="client"'),
            ("db.sql('update person set born = age')", 'column "born" is of type date but', ""),
            ("db.sql('update person set old = 1')", 'column "old" of relation "person" does not exist', ""),
            ("db.person[a].born = 'x' + s", "str for column born, which is date", "as a date"),
        ]
        for body, what, more in cases:
            source = f"def f(a: int, s: str) -> int:\n    x = a\n    {body}\n    return x\n"
            with self.subTest(body=body):
                with self.assertRaises(CompilationError) as raised:
                    self.db.transaction(defined(source, self.db))
                text = str(raised.exception)
                self.assertRegex(text.splitlines()[0], r"^<generated \d+>:3: ")
                self.assertIn(what, text)
                self.assertIn(more, text)
                self.assertIn(f"    {body}\n", text)
                self.assertIn("^", text)

    def test_moments_in_another_zone(self):
        """Parts of moments depend on their zone, which the database does not keep."""
        zone = datetime.timezone(datetime.timedelta(hours=2))
        moment = datetime.datetime(2024, 1, 1, 1, tzinfo=zone)
        source = "def f(t: datetime) -> int:\n    u = t\n    return u.hour\n"
        function = self.db.transaction(defined(source, self.db))
        with self.assertRaisesRegex(ValueError, "'t' is not in UTC"):
            function(moment)
        self.assertEqual(function(moment.astimezone(datetime.timezone.utc)), 23)
        caller = "def g(t: datetime) -> int:\n    return t.day\n\n\ndef f(t: datetime) -> int:\n    return g(t)\n"
        with self.assertRaisesRegex(ValueError, "'t' is not in UTC"):
            self.db.transaction(defined(caller, self.db))(moment)
        plain = "def f(t: datetime, n: int) -> bool:\n    n -= 1\n    return t > BEGIN\n"
        self.assertFalse(self.db.transaction(defined(plain, self.db))(moment, 1))

    def test_names_that_mean_something_else(self):
        with fabius.open() as other, self.assertRaises(CompilationError):
            # `db` is another database than the one that the function is a transaction of.
            function = defined("def f(a: int):\n    db.stock[a].qty += 1\n", self.db)
            other.script(SCHEMA)
            other.transaction(function)
        for source in (
            "def f(len: int) -> int:\n    return len\n",
            "def f(a: int) -> int:\n    max = a\n    return max\n",
        ):
            with self.assertRaises(CompilationError) as raised:
                self.db.transaction(defined(source, self.db))
            self.assertIn("give it another name", str(raised.exception))

    def test_no_source(self):
        names = {}
        exec("def f(a: int) -> int:\n    return a\n", names)
        with self.assertRaises(CompilationError) as raised:
            self.db.transaction(names["f"])
        self.assertIn("source", str(raised.exception))

    def test_it_is_explained(self):
        source = "def f(a: int) -> int:\n    db.stock[a].qty += 1\n    return 1\n"
        function = self.db.transaction(defined(source, self.db))
        self.assertIn("stock", function.explain())
        self.assertIn("Phase:", function.explain())

    def test_versions_run_side_by_side(self):
        one = self.db.transaction(defined("def f(a: int) -> int:\n    return a + 1\n", self.db))
        other = self.db.transaction(defined("def f(a: int) -> int:\n    return a + 2\n", self.db))
        self.assertEqual((one(1), other(1)), (2, 3))


if __name__ == "__main__":
    unittest.main()
