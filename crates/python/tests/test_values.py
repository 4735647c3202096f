"""Values on their way from Python to SQL and back."""

import datetime as dt
import decimal
import enum
import ipaddress
import unittest
import uuid

import fabius
from fabius import Json


class Values(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.db = fabius.open()

    @classmethod
    def tearDownClass(cls):
        cls.db.close()

    def value(self, text, *parameters):
        return self.db.execute(text, parameters or None).scalar()

    def test_there_and_back(self):
        utc = dt.timezone.utc
        cases = [
            ("boolean", True),
            ("smallint", -32768),
            ("integer", 2147483647),
            ("bigint", -9223372036854775808),
            ("numeric(38, 2)", decimal.Decimal("-12345678901234567890.25")),
            ("double precision", 1.5e300),
            ("text", "ü\n'\"\\%"),
            ("varchar(3)", "abc"),
            ("bytea", b"\x00\xff'"),
            ("date", dt.date(1, 1, 1)),
            ("date", dt.date(9999, 12, 31)),
            ("time", dt.time(23, 59, 59, 999999)),
            ("timestamp", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
            ("timestamptz", dt.datetime(2024, 2, 29, 12, 0, 0, 1, utc)),
            ("interval", dt.timedelta(days=-3, seconds=5, microseconds=7)),
            ("uuid", uuid.UUID("12345678-1234-5678-1234-567812345678")),
            ("json", {"a": [1, None, "x"]}),
            ("jsonb", [1.5, {}]),
            ("integer[]", [1, None, 3]),
            ("text[]", ["a,b", 'c"d\\', "", None]),
            ("timestamptz[]", [dt.datetime(2024, 1, 1, tzinfo=utc)]),
            ("uuid[]", [uuid.UUID(int=7)]),
            ("inet", ipaddress.ip_address("10.0.0.1")),
            ("inet", ipaddress.ip_interface("2001:db8::1/64")),
            ("cidr", ipaddress.ip_network("10.1.0.0/16")),
            ("inet[]", [ipaddress.ip_address("::1"), None]),
        ]
        for sql_type, value in cases:
            given = Json(value) if sql_type.startswith("json") else value
            with self.subTest(sql_type=sql_type):
                back = self.value(f"select %s::{sql_type}", given)
                self.assertEqual(back, value)
                self.assertIs(type(back), type(value))
                self.assertIsNone(self.value(f"select %s::{sql_type}", None))

    def test_types_that_parameters_have_by_themselves(self):
        cases = [
            (1, "integer"),
            (2**31, "bigint"),
            (2**70, "numeric"),
            (1.0, "double precision"),
            (True, "boolean"),
            (decimal.Decimal("1.5"), "numeric"),
            (b"", "bytea"),
            (dt.date.min, "date"),
            (dt.datetime(2024, 1, 1), "timestamp without time zone"),
            (dt.timedelta(1), "interval"),
            ([1, 2**40], "bigint[]"),
        ]
        for value, sql_type in cases:
            with self.subTest(value=value):
                self.assertEqual(self.value("select pg_typeof(%s)::text", value), sql_type)

    def test_text_is_of_the_type_that_is_wanted(self):
        self.assertEqual(self.value("select %s + 1", "41"), 42)
        self.assertEqual(self.value("select %s::date + 1", "2024-02-28"), dt.date(2024, 2, 29))

    def test_moments_are_in_the_sessions_zone(self):
        with self.db.connect(autocommit=True) as session:
            session.execute("set timezone to 'Asia/Tokyo'")
            (moment,) = session.execute("select timestamptz '2024-01-01 00:00+00'").fetchone()
        self.assertEqual(moment, dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc))
        self.assertEqual(moment.utcoffset(), dt.timedelta(hours=9))

    def test_enumerations_are_their_names(self):
        class Mood(enum.Enum):
            sad = 1
            ok = 2

        self.db.execute("create type mood as enum ('sad', 'ok')")
        self.assertEqual(self.value("select %s::mood", Mood.ok), "ok")

    def test_what_python_has_not_is_an_error_that_says_so(self):
        for text in ("date 'infinity'", "timestamp '20000-01-01 00:00'", "time '24:00'", "timestamptz '-infinity'"):
            with self.subTest(text=text), self.assertRaises(fabius.DataError) as raised:
                self.value(f"select {text}")
            self.assertIn("cast it to text", str(raised.exception))

    def test_what_is_no_value_of_sql(self):
        for value in (object(), {"a": 1}, {1, 2}, 1j, dt.time(1, tzinfo=dt.timezone.utc), [object()]):
            with self.subTest(value=value), self.assertRaises(fabius.ProgrammingError) as raised:
                self.value("select %s", value)
            self.assertIn("cannot be a parameter", str(raised.exception))

    def test_values_that_do_not_fit(self):
        self.db.execute("create table if not exists small (a smallint, b varchar(2))")
        with self.assertRaises(fabius.errors.NumericValueOutOfRange):
            self.db.execute("insert into small (a) values (%s)", (40000,))
        with self.assertRaises(fabius.DataError):
            self.db.execute("insert into small (b) values (%s)", ("abc",))
        with self.assertRaises(fabius.errors.InvalidTextRepresentation):
            self.value("select %s::integer", "x")


class Parameters(unittest.TestCase):
    def setUp(self):
        self.db = fabius.open()
        self.addCleanup(self.db.close)

    def test_both_ways_of_writing_them(self):
        self.assertEqual(self.db.execute("select %s, %s", (1, 2)).one(), (1, 2))
        named = self.db.execute("select %(a)s, %(b)s, %(a)s", {"a": 1, "b": 2, "c": 3})
        self.assertEqual(named.one(), (1, 2, 1))
        self.assertEqual(self.db.execute("select 5 %% %s", (3,)).scalar(), 2)
        self.assertEqual(self.db.execute("select 5 % 3").scalar(), 2)

    def test_mistakes(self):
        cases = [
            ("select %s", (1, 2), "1 parameters, but 2"),
            ("select %s", (), "1 parameters, but 0"),
            ("select %s", "x", "(value,)"),
            ("select %(a)s", {}, "'a' is missing"),
            ("select %(a)s", (1,), "mapping"),
            ("select %s", {"a": 1}, "sequence"),
            ("select %s, %(a)s", {"a": 1}, "not both"),
            ("select %d", (1,), "%s or %(name)s"),
            ("select %(a", {"a": 1}, "not closed"),
            ("select 5 %", (), "%%"),
        ]
        for text, parameters, message in cases:
            with self.subTest(text=text, parameters=parameters):
                with self.assertRaises(fabius.ProgrammingError) as raised:
                    self.db.execute(text, parameters)
                self.assertIn(message, str(raised.exception))


if __name__ == "__main__":
    unittest.main()
