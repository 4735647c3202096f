"""DB-API 2.0 (PEP 249), as those use it who know nothing of Fabius."""

import doctest
import os
import tempfile
import unittest

import fabius
import fabius.database
import fabius.dbapi
import fabius.transactions
import fabius.values
from fabius import dbapi


def load_tests(loader, tests, ignore):
    for module in (fabius, fabius.database, fabius.dbapi, fabius.transactions, fabius.values):
        tests.addTests(doctest.DocTestSuite(module))
    return tests


class Module(unittest.TestCase):
    def test_what_the_module_says_of_itself(self):
        self.assertEqual((dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle), ("2.0", 2, "pyformat"))
        self.assertTrue(issubclass(dbapi.IntegrityError, dbapi.DatabaseError))
        self.assertTrue(issubclass(dbapi.InterfaceError, dbapi.Error))
        self.assertTrue(issubclass(dbapi.Warning, Exception))

    def test_every_sqlstate_has_a_class(self):
        self.assertIs(fabius.errors.lookup("23505"), fabius.errors.UniqueViolation)
        self.assertIs(fabius.errors.lookup("23999"), fabius.IntegrityError)
        self.assertIs(fabius.errors.lookup("ZZ999"), fabius.DatabaseError)


class Sessions(unittest.TestCase):
    def setUp(self):
        self.connection = dbapi.connect()
        self.addCleanup(self.connection.close)
        self.cursor = self.connection.cursor()
        self.cursor.execute("create table t (a int primary key, b text, c timestamp)")
        self.cursor.executemany("insert into t (a, b) values (%s, %s)", [(n, str(n)) for n in range(5)])
        self.connection.commit()

    def test_fetching(self):
        self.cursor.execute("select a, b, c from t order by a")
        names = [column.name for column in self.cursor.description]
        codes = [column.type_code for column in self.cursor.description]
        self.assertEqual((names, self.cursor.rowcount), (["a", "b", "c"], 5))
        self.assertTrue(codes[0] == dbapi.NUMBER and codes[1] == dbapi.STRING and codes[2] == dbapi.DATETIME)
        self.assertFalse(codes[0] == dbapi.STRING)
        self.assertEqual(self.cursor.fetchone(), (0, "0", None))
        self.assertEqual(self.cursor.fetchmany(2), [(1, "1", None), (2, "2", None)])
        self.assertEqual(self.cursor.fetchmany(), [(3, "3", None)])
        self.assertEqual(list(self.cursor), [(4, "4", None)])
        self.assertEqual((self.cursor.fetchone(), self.cursor.fetchall()), (None, []))

    def test_there_is_nothing_to_fetch(self):
        with self.assertRaises(dbapi.ProgrammingError):
            self.connection.cursor().fetchone()
        self.cursor.execute("update t set b = 'x' where a < 2")
        self.assertEqual((self.cursor.rowcount, self.cursor.description), (2, None))
        with self.assertRaises(dbapi.ProgrammingError):
            self.cursor.fetchall()

    def test_transactions_begin_by_themselves(self):
        self.cursor.execute("delete from t")
        self.assertTrue(self.connection.in_transaction)
        self.connection.rollback()
        self.assertFalse(self.connection.in_transaction)
        self.cursor.execute("select count(*) from t")
        self.assertEqual(self.cursor.fetchone(), (5,))

    def test_autocommit(self):
        with self.assertRaises(dbapi.ProgrammingError):
            self.cursor.execute("select 1")
            self.connection.autocommit = True
        self.connection.rollback()
        self.connection.autocommit = True
        self.cursor.execute("delete from t where a = 0")
        self.assertFalse(self.connection.in_transaction)
        self.connection.commit()
        self.connection.rollback()

    def test_what_is_closed_says_so(self):
        self.cursor.close()
        with self.assertRaises(dbapi.InterfaceError):
            self.cursor.execute("select 1")
        self.connection.close()
        self.connection.close()
        with self.assertRaises(dbapi.InterfaceError):
            self.connection.execute("select 1")

    def test_a_session_of_a_directory_is_the_only_one_that_has_it_open(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "d")
            with dbapi.connect(path, durability="none") as connection:
                connection.execute("create table t (a int)")
                connection.execute("insert into t values (1)")
            with fabius.open(path) as db:
                self.assertEqual(db.execute("select a from t").scalar(), 1)
                with dbapi.connect(db) as session, self.assertRaises(dbapi.InterfaceError):
                    self.assertEqual(session.execute("select a from t").fetchone(), (1,))
                    dbapi.connect(db, engine="2pl")

    def test_two_sessions(self):
        with fabius.open() as db, db.connect() as one, db.connect() as other:
            one.execute("create table s (a int)")
            one.commit()
            one.execute("insert into s values (1)")
            self.assertEqual(other.execute("select count(*) from s").fetchone(), (0,))
            one.commit()
            other.commit()
            self.assertEqual(other.execute("select count(*) from s").fetchone(), (1,))


try:
    import pandas
except ImportError:
    pandas = None


@unittest.skipIf(pandas is None, "there is no pandas")
class Pandas(unittest.TestCase):
    def test_a_frame_of_a_query(self):
        with dbapi.connect() as connection:
            connection.execute("create table t (a int, b text)")
            connection.execute("insert into t values (1, 'x'), (2, 'y')")
            frame = pandas.read_sql_query("select * from t where a > %(a)s order by a", connection, params={"a": 0})
        self.assertEqual(frame["b"].tolist(), ["x", "y"])


if __name__ == "__main__":
    unittest.main()
