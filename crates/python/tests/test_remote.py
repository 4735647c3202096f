"""The same code on a server's database; and the program that serves it."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import fabius

try:
    import psycopg  # noqa: F401
except ImportError:
    psycopg = None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Program(unittest.TestCase):
    def run_program(self, *arguments):
        return subprocess.run([sys.executable, "-m", "fabius", *arguments], capture_output=True, text=True, timeout=60)

    def test_it_says_what_it_is(self):
        said = self.run_program("--version")
        self.assertEqual((said.returncode, said.stdout.strip()), (0, f"fabius {fabius.__version__}"))

    def test_wrong_usage(self):
        said = self.run_program("nonsense")
        self.assertEqual(said.returncode, 2)
        self.assertIn("nonsense", said.stderr)

    def test_it_opens_what_a_process_has_written(self):
        with tempfile.TemporaryDirectory() as directory:
            with fabius.open(directory) as db:
                db.script("create table t (id int primary key); insert into t values (1)")
            said = self.run_program("log", "verify", directory)
            self.assertEqual(said.returncode, 0, said.stderr)


@unittest.skipIf(psycopg is None, "psycopg is not installed")
class Remote(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        port = free_port()
        arguments = ["serve", os.path.join(cls.directory.name, "data"), "--listen", f"127.0.0.1:{port}"]
        cls.server = subprocess.Popen(
            [sys.executable, "-m", "fabius", *arguments, "--http", "off", "--durability", "none", "--log", "error"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        cls.url = f"postgresql://fabius@127.0.0.1:{port}/fabius"
        # It says so when it takes connections.
        said = cls.server.stdout.readline()
        assert "fabius serves" in said, said
        cls.db = fabius.connect(cls.url)
        cls.db.script("create table stock (item int primary key, qty int not null check (qty >= 0), note text)")

    @classmethod
    def tearDownClass(cls):
        cls.db.close()
        cls.server.send_signal(signal.SIGTERM)
        cls.server.wait(30)
        cls.server.stdout.close()
        cls.directory.cleanup()

    def setUp(self):
        self.db.script("delete from stock; insert into stock values (5, 10, null), (6, 3, 'six')")

    def test_statements(self):
        db = self.db
        self.assertEqual(db.execute("select item, note from stock where qty > %s order by item", (5,))[:], [(5, None)])
        self.assertEqual(db.execute("update stock set qty = qty - 1 where item = %(item)s", {"item": 5}).rowcount, 1)
        with self.assertRaises(fabius.errors.CheckViolation) as raised:
            db.execute("update stock set qty = -1")
        self.assertEqual(raised.exception.sqlstate, "23514")
        self.assertIsNotNone(raised.exception.constraint)
        with self.assertRaises(fabius.errors.SyntaxError):
            db.execute("selekt")

    def test_functions_in_the_database(self):
        db = self.db

        @db.transaction
        def reserve(item: int, n: int) -> int:
            row = db.stock[item]
            fabius.require(row.qty >= n, f"only {row.qty} left")
            row.qty -= n
            print("sold", n)
            return row.qty

        self.assertTrue(reserve.compiled)
        self.assertEqual(reserve(5, 1), 9)
        with self.assertRaises(fabius.Aborted) as raised:
            reserve(5, 100)
        self.assertEqual(str(raised.exception), "only 9 left")
        with self.assertRaises(fabius.RowNotFound):
            reserve(7, 1)
        self.assertIn("stock", reserve.explain())
        self.assertEqual(reserve.client(5, 1), 8)

    def test_functions_in_the_client(self):
        db = self.db

        @db.transaction(side="client")
        def rename(item: int, note: str) -> list:
            db.stock[item].note = note
            db.stock.insert(item=item + 10, qty=0)
            return [row.item for row in db.stock]

        self.assertEqual(rename(5, "five"), [5, 6, 15])
        with self.assertRaises(fabius.errors.UniqueViolation):
            rename(5, "again")
        self.assertEqual(db.execute("select note from stock where item = 5").scalar(), "five")

    def test_threads_share_it(self):
        db = self.db

        @db.transaction
        def take(item: int) -> int:
            db.stock[item].qty -= 1
            return 1

        done = []

        def client():
            try:
                done.append(take(5))
            except fabius.errors.CheckViolation:
                done.append(0)

        threads = [threading.Thread(target=client) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sum(done), 10)

    def test_calls_are_submitted_together(self):
        db = self.db

        @db.transaction
        def take(item: int) -> int:
            row = db.stock[item]
            fabius.require(row.qty > 0, "none left")
            row.qty -= 1
            return row.qty

        calls = [db.submit(take, 5) for _ in range(12)]
        ended = [call.exception() for call in calls]
        self.assertEqual([type(error) for error in ended if error is not None], [fabius.Aborted] * 2)
        self.assertEqual(sorted(call.result() for call in calls if not call.exception()), list(range(10)))

    def test_calls_under_a_key_happen_once(self):
        db = self.db

        @db.transaction
        def take(item: int) -> int:
            row = db.stock[item]
            row.qty -= 1
            return row.qty

        for _ in range(3):
            with fabius.idempotent("order 1"):
                self.assertEqual(take(5), 9)
        self.assertEqual(db.outcome("order 1"), "committed")
        self.assertIsNone(db.outcome("order 2"))

    def test_a_server_that_is_not_there(self):
        with self.assertRaises(fabius.OperationalError) as raised:
            fabius.connect(f"postgresql://fabius@127.0.0.1:{free_port()}/fabius")
        self.assertEqual(raised.exception.sqlstate, "08006")


if __name__ == "__main__":
    unittest.main()
