"""Columns of every type: functions do the same with them as programs and in the client's process."""

import datetime
import itertools
import re
import unittest
from decimal import Decimal
from uuid import UUID

import fabius
from fabius.compilation import CompilationError

from shop import defined, outcome

UTC = datetime.timezone.utc

#: A type, two of its literals, and what annotations call it.
TYPES = [
    ("smallint", "5", "-7", "int"),
    ("integer", "5", "-7", "int"),
    ("bigint", "5", "9000000000", "int"),
    ("oid", "5", "4000000000", "int"),
    ("whole", "5", "7", "int"),
    ("real", "0.1", "-1.5", "float"),
    ("double precision", "0.1", "-1.5", "float"),
    ("numeric", "1.5", "-7.25", "Decimal"),
    ("boolean", "true", "false", "bool"),
    ("text", "'ab'", "'ü'", "str"),
    ("varchar(5)", "'ab'", "'ü'", "str"),
    ("char(5)", "'ab'", "'ü'", "str"),
    ("name", "'ab'", "'ü'", "str"),
    ("mood", "'sad'", "'glad'", "str"),
    ("bytea", r"'\x01'", r"'\x'", "bytes"),
    ("uuid", "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'", "'0ba7b810-9dad-11d1-80b4-00c04fd430c8'", "UUID"),
    ("date", "'2024-02-03'", "'0009-01-01'", "date"),
    ("time", "'10:11:12.5'", "'00:00'", "time"),
    ("timestamptz", "'2024-02-03 10:11:12+00'", "'1999-12-31 23:59:59.000001+00'", "datetime"),
    ("timestamp", "'2024-02-03 10:11:12'", "'1999-12-31 23:59:59.000001'", "datetime"),
    ("interval", "'1 year 2 mons -3 days 04:05:06.7'", "'-5 minutes'", "timedelta"),
]

#: What functions do with a column, and a value of its class; and what they give.
BODIES = [
    ("row.b = row.a", "None"),
    ("row.b = None", "None"),
    ("row.b = v", "None"),
    ("db.t.insert(id=9, a=v, b=row.b)", "None"),
    ("db.t.upsert(id=2, a=row.a, b=v)", "None"),
    ("return row.a == row.b, row.b is None, row.a != other.a, row.a == v", "tuple[bool, bool, bool, bool]"),
    ("return row.a < other.a, other.a >= v", "tuple[bool, bool]"),
    ("return sum(1 for one in db.t.where(a=v)) * 10 + sum(1 for one in db.t.where(b=row.b))", "int"),
    ("w = db.execute('select a from t where id = %s', (id,)).scalar()\n    row.b = w\n    return w == v", "bool"),
    (
        "w = db.execute('select a, b from t where id = %s', (id,)).one()\n    row.b = w.a\n"
        "    return w.b is None, w.a == v",
        "tuple[bool, bool]",
    ),
    ("db.execute('update t set b = %s where id = %s', (v, id))", "None"),
    ("db.execute('update t set b = %s where id = %s', (row.a, id))", "None"),
    ("return [one.id for one in db.t if one.a == v]", "list[int]"),
    ("return max(row.a, other.a) == row.a", "bool"),
    ("return f'{row.a}', str(row.a)", "tuple[str, str]"),
]

#: What is refused, by a type and the place among them, and what that has to say.
REFUSED = {
    ("numeric", -1): 'f"{x:.2f}"',
    ("bytea", -1): "make the text where the result is used",
    **{(sql, -2): "max(" for sql in ("bytea", "uuid", "boolean", "real", "double precision")},
}


class Types(unittest.TestCase):
    """Each type, in each way."""

    def setUp(self):
        self.db = fabius.open(durability="none")
        self.addCleanup(self.db.close)
        self.sql = ""
        self.db.script("create type mood as enum ('glad', 'sad'); create domain whole as integer check (value > 0)")

    def run_all(self, source, sql, values, calls):
        """Makes calls of a function on both sides, each on the same rows; says why it is refused, if it is."""
        done = []
        if self.sql != sql:
            if self.sql:
                self.db.execute("drop table t")
            self.db.execute(f"create table t (id int primary key, a {sql} not null, b {sql})")
            self.sql = sql
        for side in ("database", "client"):
            plain = defined(source, self.db)
            try:
                function = self.db.transaction(side=side)(plain)
            except CompilationError as error:
                return error
            for arguments in calls:
                self.db.execute("delete from t")
                self.db.execute(f"insert into t values (1, {values[0]}, null), (2, {values[1]}, {values[1]})")
                done.append((outcome(lambda: function(*arguments), plain), list(self.db.execute("select * from t"))))
        self.assertEqual(repr(done[: len(calls)]), repr(done[len(calls) :]), f"{sql}\n{source}\n{calls}")
        return None

    def test_all(self):
        for sql, *values, annotation in TYPES:
            for number, (body, result) in enumerate(BODIES):
                source = f"def f(id: int, v: {annotation}) -> {result}:\n"
                source += f"    row, other = db.t[id], db.t[3 - id]\n    {body}\n"
                given = [self.db.execute(f"select cast({value} as {sql})").scalar() for value in values]
                if sql == "timestamp":
                    # Arguments are instants.
                    given = [value.replace(tzinfo=UTC) for value in given]
                    source = re.sub(r"([=<>]=|a=) ?v\b", r"\1 v.replace(tzinfo=None)", source)
                wanted = REFUSED.get((sql, number)) or REFUSED.get((sql, number - len(BODIES)))
                with self.subTest(sql=sql, body=body):
                    calls = [(1, given[0]), (2, given[1]), (1, given[1])]
                    refused = self.run_all(source, sql, values, calls)
                    if wanted is not None:
                        self.assertIn(wanted, str(refused))
                    elif refused is not None:
                        raise refused

    def test_results(self):
        """Values are given back as they are in the client."""
        for sql, *values, annotation in TYPES:
            source = f"def f(id: int) -> {annotation}:\n    row = db.t[id]\n    return row.a\n"
            if sql == "timestamp":
                source = source.replace("row.a", "row.a.replace(tzinfo=timezone.utc)")
            with self.subTest(sql=sql):
                self.assertIsNone(self.run_all(source, sql, values, [(1,), (2,)]))

    def test_keys(self):
        """Rows by keys that have another form than their column's: nothing is rounded, cut or taken for another."""
        cases = {
            "numeric(6, 2)": (
                ["1.00", "1.50", "-3"],
                "Decimal",
                [Decimal(text) for text in ("1", "1.001", "1.5", "2")],
            ),
            "real": (["0.1", "1.5"], "float", [0.1, 1.5, 0.10000000149011612, -1.0]),
            "char(5)": (["'ab'", "'b c'", "''"], "str", ["ab", "ab  ", "", "b c", "ab\t", "abcdefgh", "ab d"]),
            "varchar(5)": (["'ab'", "'ab '"], "str", ["ab", "ab ", "ab  ", "a", "abcdefgh"]),
            "name": (["'ab'", "'b'"], "str", ["ab", "b", "a", "ab "]),
            "mood": (["'sad'", "'glad'"], "str", ["sad", "glad"]),
            "date": (["'2024-01-02'", "'1999-01-01'"], "date", [datetime.date(2024, 1, 2), datetime.date(2024, 1, 3)]),
            "bigint": (["5", "7"], "int", [5, 6, 7, -1]),
            "uuid": (
                ["'0ba7b810-9dad-11d1-80b4-00c04fd430c8'"],
                "UUID",
                [UUID("0ba7b810-9dad-11d1-80b4-00c04fd430c8")],
            ),
        }
        bodies = [
            ("return db.k[a].v", "int"),
            ("row = db.k.get(a)\n    return -1 if row is None else row.v", "int"),
            ("return [r.v for r in db.k[a:b]] + [r.v for r in db.k[b:]] + [r.v for r in db.k[:a]]", "list[int]"),
            ("return a in db.k", "bool"),
            ("return sum(r.v for r in db.k.where(k=a))", "int"),
            ("db.k[a].v += 7\n    return 0", "int"),
            ("if b in db.k:\n        del db.k[b]\n    db.k.upsert(k=a, v=8)\n    return 0", "int"),
        ]
        for sql, (keys, annotation, values) in cases.items():
            self.db.execute(f"create table k (k {sql} primary key, v int not null)")
            for body, result in bodies:
                source = f"def f(a: {annotation}, b: {annotation}) -> {result}:\n    {body}\n"
                source = source.replace("return db.k[a].v", "row = db.k[a]\n    return row.v")
                plain = defined(source, self.db)
                done = []
                for side in ("database", "client"):
                    function = self.db.transaction(side=side)(plain)
                    for a, b in itertools.product(values, values):
                        self.db.execute("delete from k")
                        for number, key in enumerate(keys):
                            self.db.execute(f"insert into k values ({key}, {number + 1})")
                        what, has_ended = outcome(lambda: function(a, b), plain)
                        # What it says of a key depends on how that is written.
                        what = type(what.result[0]).__name__ if has_ended else what.result
                        left = list(self.db.execute("select k, v from k order by k"))
                        done.append(((a, b), what, left))
                count = len(done) // 2
                self.assertEqual(done[:count], done[count:], f"{sql}\n{source}")
            self.db.execute("drop table k")

    def test_parts_of_a_time(self):
        source = (
            "def f(id: int) -> list[str]:\n    row = db.t[id]\n    a = row.a\n"
            "    n = a.hour * 10000 + a.minute * 100 + a.second\n"
            "    return [f'{n} {a.microsecond}', a.isoformat(), a.strftime('%H-%M'), str(min(a, time(9, 30)))]\n"
        )
        for value in ("'10:11:12.5'", "'00:00'", "'23:59:59.999999'"):
            self.assertIsNone(self.run_all(source, "time", [value, value], [(1,)]))

    def test_what_cannot_be(self):
        cases = [
            ("timestamp", "row.a == v", "replace(tzinfo=timezone.utc)"),
            ("timestamp", "x = row.a.astimezone(timezone(timedelta(hours=1)))", "a time zone other than UTC"),
            ("jsonb", "row.a == row.b", "a comparison of json"),
            ("int[]", "x = row.a", "a column that is an array"),
            ("mood", "row.b = id", "int for column b, which is str"),
        ]
        for sql, body, message in cases:
            source = f"def f(id: int, v: datetime):\n    row = db.t[id]\n    if {body}:\n        pass\n"
            if "= " in body and "==" not in body:
                source = f"def f(id: int, v: datetime):\n    row = db.t[id]\n    {body}\n"
            value = {"jsonb": "'1'", "int[]": "'{1}'", "mood": "'sad'"}.get(sql, "'2024-01-01'")
            with self.subTest(sql=sql, body=body):
                refused = self.run_all(source, sql, [value, value], [(1, datetime.datetime.now(UTC))])
                self.assertIn(message, str(refused))
        refused = self.run_all(
            "def f(a: str):\n    row = db.t[1]\n    row.b = a\n", "mood", ["'sad'", "'sad'"], [("bad",)]
        )
        self.assertIsNone(refused)

    def test_json_is_copied(self):
        self.db.script("create table doc (id int primary key, a jsonb not null, b jsonb)")
        rows = ['{"a": [1, null, "x"]}', "[1, 2]", "3.5", "true"]

        source = (
            "def copy(id: int) -> None:\n    row = db.doc[id]\n    row.b = row.a\n"
            "    db.doc.insert(id=id + 100, a=row.a, b=row.b)\n"
        )
        for side in ("database", "client", "futures"):
            self.db.execute("delete from doc")
            for id, text in enumerate(rows):
                self.db.execute("insert into doc values (%s, %s)", (id, text))
                self.db.transaction(side=side)(defined(source, self.db, "copy"))(id)
            found = [tuple(row) for row in self.db.execute("select a, b from doc where id >= 100 order by id")]
            wanted = [{"a": [1, None, "x"]}, [1, 2], 3.5, True]
            self.assertEqual(found, [(value, value) for value in wanted], side)

    def test_documents_are_given(self):
        self.db.script("create table outbox (id int primary key, body jsonb not null, kept json, more jsonb)")
        source = (
            "def note(id: int, body: fabius.Json, more: fabius.Json | None = None) -> int:\n"
            "    row = db.outbox.insert(id=id, body=body, kept=body)\n"
            "    if more is not None:\n"
            "        row.more = more\n"
            "    db.sql('insert into outbox (id, body) values ({id} + 100, {body})')\n"
            "    return id\n"
        )
        values = [{"b": [1, None, "x"], "a": {}}, [1, 2], "text", None]
        for side in ("database", "client", "futures"):
            self.db.execute("delete from outbox")
            function = self.db.transaction(side=side)(defined(source, self.db, "note"))
            for id, value in enumerate(values):
                function(id, fabius.Json(value), fabius.Json([id]) if id % 2 else None)
            found = [tuple(row) for row in self.db.execute("select id, body, kept, more from outbox order by id")]
            wanted = [(id, value, value, [id] if id % 2 else None) for id, value in enumerate(values)]
            self.assertEqual(found, wanted + [(id + 100, value, None, None) for id, value in enumerate(values)], side)
        function = self.db.transaction(defined(source, self.db, "note"))
        with self.assertRaises(TypeError) as raised:
            function(9, {"a": 1})
        self.assertIn("is a document: give it as fabius.Json(...), not as dict", str(raised.exception))
        with self.assertRaises(CompilationError) as refused:
            self.db.transaction(defined("def f(a: fabius.Json) -> fabius.Json:\n    return a\n", self.db))
        self.assertIn("returns no document", str(refused.exception))

    def test_keys_of_rows_that_are_not_there(self):
        """A key is told alike by programs and in the client's process."""
        day, moment = datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.timezone.utc)
        keys = [
            ("float", "double precision", 1.5, "1.5"),
            ("date", "date", day, "2026-01-02"),
            ("datetime", "timestamptz", moment, "2026-01-02 03:00:00+00:00"),
            ("Decimal", "numeric", Decimal("1.50"), "1.5"),
            ("UUID", "uuid", UUID(int=5), "00000000-0000-0000-0000-000000000005"),
            ("bool", "boolean", True, "True"),
            ("str", "text", "it's", '"it\'s"'),
        ]
        for kind, sql, key, said in keys:
            self.db.script(f"drop table if exists lost; create table lost (k {sql} primary key, v int)")
            function = defined(f"def f(x: {kind}) -> int | None:\n    return db.lost[x].v\n", self.db)
            for side in ("database", "client"):
                with self.subTest(kind=kind, side=side), self.assertRaises(fabius.RowNotFound) as raised:
                    self.db.transaction(side=side)(function)(key)
                self.assertEqual(raised.exception.args[0], f"there is no row of lost with k = {said}")


if __name__ == "__main__":
    unittest.main()
