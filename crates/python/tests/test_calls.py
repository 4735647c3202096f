"""Ways to call: submitted, awaited, under a key, on either side."""

import asyncio
import gc
import tempfile
import threading
import unittest

import fabius

from shop import ROWS, SCHEMA, TAKE, defined


class Calls(unittest.TestCase):
    def setUp(self):
        self.db = fabius.open(durability="none")
        self.addCleanup(self.db.close)
        self.db.script(SCHEMA + ROWS)
        self.take = self.db.transaction(defined(TAKE, self.db))

    def left(self, item=3):
        return self.db.execute("select qty from stock where item = %s", (item,)).scalar()

    def test_submitted(self):
        calls = [self.db.submit(self.take, 3, 1) for _ in range(50)]
        self.assertEqual(sorted(call.result() for call in calls), list(range(50, 100)))
        with self.assertRaises(fabius.Aborted):
            self.db.submit(self.take, 3, 51).result()
        with self.assertRaises(TypeError):
            self.db.submit(self.take, "x", 1).result()

    def test_what_is_wrong_with_one_call_is_not_with_others(self):
        source = "def f(a: int, s: str) -> int:\n    db.line.insert(cart=a, n=1, item=3, many=len(s))\n    return a\n"
        add = self.db.transaction(defined(source, self.db))
        arguments = [(10, "x"), (3_000_000_000, ""), (11, "\ud800"), (12, "y"), (10, "again"), (13, "z")]
        calls = [self.db.submit(add, *one) for one in arguments]
        ended = [type(call.exception()).__name__ for call in calls]
        self.assertEqual(
            ended, ["NoneType", "NoneType", "UnicodeEncodeError", "NoneType", "UniqueViolation", "NoneType"]
        )

    def test_what_is_done_may_submit(self):
        done = []

        def again(call):
            if len(done) < 30:
                done.append(call.result())
                self.db.submit(self.take, 3, 1).add_done_callback(again)

        self.db.submit(self.take, 3, 1).add_done_callback(again)
        while len(done) < 30:
            self.db.submit(self.take, 3, 0).result()
        self.assertEqual(done, sorted(done, reverse=True))

    def test_nothing_is_lost_when_it_closes(self):
        db = fabius.open(durability="none")
        db.script(SCHEMA + ROWS)
        take = db.transaction(defined(TAKE, db))
        calls, many = [], threading.Event()

        def submit():
            try:
                while True:
                    calls.append(db.submit(take, 3, 0))
                    if len(calls) >= 200:
                        many.set()
            except fabius.InterfaceError:
                pass

        threads = [threading.Thread(target=submit) for _ in range(3)]
        for thread in threads:
            thread.start()
        many.wait()
        db.close()
        for thread in threads:
            thread.join()
        for call in calls:
            call.exception(timeout=10)

    def test_functions_of_another_database_run_there(self):
        with fabius.open(durability="none") as other:
            self.assertEqual(other.submit(self.take, 3, 1).result(), 99)
            self.assertEqual(other.run(self.take, 3, 1), 98)

    def test_a_database_that_nobody_has_is_closed(self):
        with tempfile.TemporaryDirectory() as directory:
            db = fabius.open(directory)
            db.script(SCHEMA + ROWS)
            db.submit(db.transaction(defined(TAKE, db)), 3, 1).result()
            answering = [thread for thread in threading.enumerate() if thread.name == "fabius calls"]
            del db
            gc.collect()
            for thread in answering:
                thread.join(10)
            fabius.open(directory).close()

    def test_run_takes_any_function(self):
        function = defined(TAKE, self.db)
        self.assertEqual(self.db.run(function, 3, n=10), 90)
        self.assertEqual(self.db.run(self.take, 3, 10), 80)

    def test_statements_without_a_name_for_the_database(self):
        def take(item: int, n: int) -> int:
            left = fabius.execute_sql("select qty from stock where item = %s", (item,)).scalar()
            fabius.require(left >= n, f"only {left} left")
            fabius.execute_sql("update stock set qty = qty - %s where item = %s", (n, item))
            return left - n

        other = fabius.open()
        self.addCleanup(other.close)
        other.script("create table stock (item int primary key, qty int not null); insert into stock values (3, 100)")
        for number, side in enumerate(("database", "client", "futures"), 1):
            function = self.db.transaction(side=side)(take)
            self.assertEqual(function(3, 1), 100 - number)
        with self.db.transaction():
            self.assertEqual(take(3, 1), 96)
            with other.transaction():
                self.assertEqual(take(3, 1), 99)
                self.assertEqual(self.db.transaction(side="client")(take)(3, 1), 95)
                self.assertEqual(take(3, 1), 98)
            self.assertEqual(take(3, 1), 94)
        with self.assertRaises(fabius.ProgrammingError) as raised:
            take(3, 1)
        self.assertIn("db.run(function)", str(raised.exception))

    def test_awaited(self):
        async def calls():
            done = await asyncio.gather(*(self.take.acall(3, 1) for _ in range(20)))
            rows = await self.db.aexecute("select qty from stock where item = %s", (3,))
            with self.assertRaises(fabius.Aborted):
                await self.take.acall(3, 1000)
            return sorted(done), rows.scalar()

        self.assertEqual(asyncio.run(calls()), (list(range(80, 100)), 80))

    def test_under_a_key(self):
        for call in (self.take, self.take.client):
            key = f"key of {call}"
            before = self.left()
            for number in range(3):
                with fabius.idempotent(key):
                    if number == 0 or call is self.take:
                        call(3, 1)
                        continue
                    # What it returned is known to nobody.
                    with self.assertRaises(fabius.AlreadyCommitted):
                        call(3, 1)
            self.assertEqual(self.left(), before - 1)
            self.assertEqual(self.db.outcome(key), "committed")
        with fabius.idempotent("submitted"):
            self.db.submit(self.take, 3, 1).result()
        self.assertEqual(self.db.outcome("submitted"), "committed")
        self.assertIsNone(self.db.outcome("another"))

    def test_a_key_is_of_one_transaction(self):
        with fabius.idempotent("one"):
            self.take(3, 1)
            with self.assertRaises(fabius.ProgrammingError):
                self.take(3, 1)
        with self.assertRaises(fabius.ProgrammingError), fabius.idempotent(""):
            pass

    def test_a_key_is_of_a_whole_transaction(self):
        before = self.left()
        for call in (self.take, self.take.client):
            with self.db.transaction(), self.assertRaises(fabius.ProgrammingError), fabius.idempotent("part"):
                call(3, 1)
        self.assertEqual((self.left(), self.db.outcome("part")), (before, None))

    def test_a_key_whose_call_aborted(self):
        for _ in range(2):
            with self.assertRaises(fabius.Aborted), fabius.idempotent("too many"):
                self.take(3, 1000)
        self.assertEqual(self.db.outcome("too many"), "aborted")
        self.assertEqual(self.left(), 100)

    def test_the_side_is_chosen(self):
        self.addCleanup(setattr, fabius, "side", fabius.side)
        fabius.side = "client"
        seen = []
        names = self.take._function.__globals__
        names["seen"] = seen
        local = self.db.transaction(
            defined(TAKE.replace("    row.qty -=", "    seen.append(n)\n    row.qty -="), self.db)
        )
        local._function.__globals__["seen"] = seen
        self.assertFalse(local.compiled)
        self.assertEqual((local(3, 2), seen), (98, [2]))
        fabius.side = "database"
        with self.assertRaises(fabius.compilation.CompilationError):
            local(3, 2)
        with self.assertRaises(fabius.ProgrammingError):
            self.db.transaction(side="server")(defined(TAKE, self.db))

    def test_a_program_within_a_transaction(self):
        with self.db.transaction() as run:
            self.take(3, 1)
            run.execute("update stock set qty = qty - 1 where item = 3")
            self.take(3, 1)
        self.assertEqual(self.left(), 97)
        with self.assertRaises(fabius.Aborted), self.db.transaction():
            self.take(3, 1)
            self.take(3, 1000)
        self.assertEqual(self.left(), 97)


if __name__ == "__main__":
    unittest.main()
