"""Databases: opening, closing, statements, transactions, results."""

import os
import signal
import tempfile
import threading
import time
import unittest

import fabius


class Opening(unittest.TestCase):
    def test_what_is_written_is_there_after_the_next_opening(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "shop")
            with fabius.open(path) as db:
                db.execute("create table stock (item int primary key, qty int)")
                db.execute("insert into stock values (5, 10)")
                db.checkpoint()
                db.execute("update stock set qty = qty - 1")
            with fabius.open(path, engine="2pl", durability="none", workers=1) as db:
                self.assertEqual(db.execute("select * from stock").one(), (5, 9))

    def test_a_directory_is_open_once(self):
        with tempfile.TemporaryDirectory() as folder, fabius.open(folder):
            with self.assertRaises(fabius.Error) as raised:
                fabius.open(folder)
            self.assertIn(folder, str(raised.exception))

    def test_options_that_there_are_not(self):
        for options in ({"engine": "fast"}, {"durability": "maybe"}, {"history": -1.0}):
            with self.assertRaises(fabius.DataError) as raised:
                fabius.open(**options)
            self.assertEqual(raised.exception.sqlstate, "22023")

    def test_what_is_closed_says_so(self):
        db = fabius.open()
        session = db.connect()
        db.close()
        db.close()
        self.assertTrue(db.closed and session.closed)
        for use in (lambda: db.execute("select 1"), lambda: session.execute("select 1"), db.checkpoint):
            with self.assertRaises(fabius.InterfaceError):
                use()

    def test_the_past(self):
        with fabius.open(history=60.0) as db, db.connect(autocommit=True) as session:
            session.execute("create table t (a int)")
            session.execute("insert into t values (1)")
            before = session.execute("select fabius.seq()").fetchone()[0]
            session.execute("update t set a = 2")
            session.execute(f"set fabius.as_of = '{before}'")
            self.assertEqual(session.execute("select a from t").fetchall(), [(1,)])


class Statements(unittest.TestCase):
    def setUp(self):
        self.db = fabius.open()
        self.addCleanup(self.db.close)
        self.db.script(
            """
            create table stock (item int primary key, qty int check (qty >= 0));
            insert into stock values (1, 5), (2, 7), (3, 0);
            """
        )

    def test_results_are_sequences_of_named_rows(self):
        rows = self.db.execute("select item, qty, item + 1 from stock order by item")
        self.assertEqual((len(rows), rows.tag, rows.columns), (3, "SELECT 3", ("item", "qty", "?column?")))
        self.assertEqual(rows[1].qty, 7)
        self.assertEqual(rows[1:], [(2, 7, 3), (3, 0, 4)])
        self.assertEqual(rows.first(), (1, 5, 2))
        self.assertIn("<td>7</td>", rows._repr_html_())
        self.assertIn("Row(item=1, qty=5", repr(rows))
        self.assertIsNone(self.db.execute("select 1 where false").first())
        with self.assertRaises(fabius.ProgrammingError):
            rows.one()

    def test_values_in_braces(self):
        query = "select item, '{{}}' as braces from stock where item = {item} or qty = {item} - {item}"
        self.assertEqual(self.db.sql(query, item=2)[:], [(2, "{}"), (3, "{}")])
        self.assertEqual(self.db.sql("select count(*) from stock").scalar(), 3)
        quoted = "'; drop table stock; --"
        self.assertEqual(self.db.sql("select {text}::text", text=quoted).scalar(), quoted)
        for wrong, values, message in (
            ("select {item}", {}, "the value of parameter 'item' is missing"),
            ("select 1", {"item": 1}, "the statement has no parameter {item}"),
            ("select '{1}'", {}, "is no parameter: write {name}, and {{ for a brace"),
            ("select '}'", {}, "is no parameter: write {name}, and }} for a brace"),
        ):
            with self.assertRaises(fabius.ProgrammingError) as raised:
                self.db.sql(wrong, **values)
            self.assertIn(message, str(raised.exception))

    def test_html_is_escaped(self):
        self.assertIn("&lt;b&gt;", self.db.execute("select '<b>' as x")._repr_html_())

    def test_errors_by_class_with_all_that_is_said(self):
        with self.assertRaises(fabius.errors.CheckViolation) as raised:
            self.db.execute("update stock set qty = qty - 1 where item = 3")
        self.assertIsInstance(raised.exception, fabius.IntegrityError)
        self.assertEqual(raised.exception.sqlstate, "23514")
        self.assertEqual(raised.exception.constraint, "stock_qty_check")
        with self.assertRaises(fabius.errors.UniqueViolation) as raised:
            self.db.execute("insert into stock values (1, 1)")
        self.assertIn("DETAIL:", str(raised.exception))
        with self.assertRaises(fabius.errors.UndefinedTable) as raised:
            self.db.execute("select * from nowhere")
        self.assertEqual(raised.exception.position, 15)
        with self.assertRaises(fabius.errors.SyntaxError):
            self.db.execute("selec 1")
        with self.assertRaises(fabius.errors.DivisionByZero):
            self.db.execute("select 1 / 0")

    def test_transactions(self):
        with self.db.transaction() as t:
            t.execute("update stock set qty = qty - 1 where item = 1")
            self.assertEqual(t.execute("select qty from stock where item = 1").scalar(), 4)
        with self.assertRaises(ZeroDivisionError), self.db.transaction() as t:
            t.execute("delete from stock")
            1 / 0
        self.assertEqual(self.db.execute("select sum(qty) from stock").scalar(), 11)

    def test_a_transaction_that_failed_is_not_committed_in_silence(self):
        with self.assertRaises(fabius.InternalError), self.db.transaction() as t:
            t.execute("delete from stock")
            try:
                t.execute("select 1 / 0")
            except fabius.DataError:
                pass
        self.assertEqual(self.db.execute("select count(*) from stock").scalar(), 3)

    def test_many_threads_on_one_row(self):
        def reserve():
            for _ in range(50):
                self.db.execute("update stock set qty = qty + %s where item = 2", (1,))

        threads = [threading.Thread(target=reserve) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.db.execute("select qty from stock where item = 2").scalar(), 407)

    def test_other_threads_go_on_while_a_statement_runs(self):
        went_on = threading.Event()
        thread = threading.Thread(target=lambda: self.db.execute("select pg_sleep(0.5)"))
        thread.start()
        went_on.wait(0.05)
        self.assertTrue(thread.is_alive())
        thread.join()

    @unittest.skipUnless(hasattr(signal, "setitimer"), "there are no signals")
    def test_a_signal_ends_a_statement(self):
        class Interrupted(Exception):
            pass

        def interrupt(*_):
            raise Interrupted

        before = signal.signal(signal.SIGALRM, interrupt)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        begun = time.monotonic()
        with self.assertRaises(Interrupted):
            self.db.execute("select pg_sleep(60)")
        self.assertLess(time.monotonic() - begun, 30)
        self.assertEqual(self.db.execute("select 1").scalar(), 1)

    def test_copy_is_refused_and_the_session_goes_on(self):
        for text in ("copy stock from stdin", "copy stock to stdout"):
            with self.assertRaises(fabius.NotSupportedError) as raised:
                self.db.execute(text)
            self.assertIsNotNone(raised.exception.hint)
        self.assertEqual(self.db.execute("select count(*) from stock").scalar(), 3)

    def test_notices_are_warnings(self):
        with self.assertWarnsRegex(UserWarning, "already exists, skipping"):
            self.db.execute("create table if not exists stock (a int)")


if __name__ == "__main__":
    unittest.main()
