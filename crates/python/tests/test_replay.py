"""Calls of the log that are looked at again."""

import dataclasses
import datetime
import decimal
import enum
import io
import os
import pdb
import random
import tempfile
import time
import unittest
from decimal import Decimal

import fabius

COUNT = 3
UTC = datetime.timezone.utc
BEGIN = datetime.datetime(2024, 2, 28, 22, tzinfo=datetime.timezone.utc)


class Chosen(enum.Enum):
    FIRST = 4
    SECOND = 5


@dataclasses.dataclass(frozen=True)
class Place:
    x: int
    y: int


class Replays(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = directory.name
        self.db = self.opened()

    def opened(self):
        db = fabius.open(self.path, durability="none")
        self.addCleanup(db.close)
        return db

    def stock(self):
        db = self.db
        db.script("create table stock (item int primary key, qty int not null check (qty >= 0))")
        db.script("insert into stock values (5, 10), (6, 10)")
        return self.reserve()

    def reserve(self):
        db = self.db

        @db.transaction
        def reserve(item: int, n: int | None) -> int:
            row = db.stock[item]
            count = 1 if n is None else n
            fabius.require(row.qty >= count, f"only {row.qty} left")
            row.qty -= count
            return row.qty

        return reserve

    def test_a_call_sees_what_it_saw(self):
        reserve = self.stock()
        seqs = []
        for n in (4, None, 3):
            reserve(5, n)
            seqs.append(self.db.last_seq())
        for seq, arguments, left in zip(seqs, ((5, 4), (5, None), (5, 3)), (6, 5, 2)):
            with self.db.replay(seq) as replay:
                self.assertIs(replay.function, reserve)
                self.assertEqual(tuple(replay.arguments.values()), arguments)
                self.assertEqual([replay.run(), replay.run()], [left, left])
                self.assertIn(f"reserve(item=5, n={arguments[1]})", repr(replay))
                self.assertLess(abs(replay.time.timestamp() - time.time()), 60)
        # Nothing of it has happened.
        self.assertEqual([row.qty for row in self.db.execute("select qty from stock order by item")], [2, 10])

    def test_what_aborted_aborts_again(self):
        reserve = self.stock()
        with self.assertRaises(fabius.Aborted):
            reserve(5, 11)
        reserve(6, 1)
        with self.db.replay(self.db.last_seq() - 1) as replay:
            with self.assertRaises(fabius.Aborted) as raised:
                replay.run()
        self.assertEqual(str(raised.exception), "only 10 left")

    def test_checkpoints_and_restarts(self):
        reserve = self.stock()
        reserve(5, 1)
        first = self.db.last_seq()
        self.db.checkpoint()
        reserve(5, 2)
        second = self.db.last_seq()
        self.db.close()
        self.db = self.opened()
        again = self.reserve()

        for seq, left in ((first, 9), (second, 7)):
            with self.db.replay(seq) as replay:
                self.assertIs(replay.function, again)
                self.assertEqual(replay.run(), left)

    def test_two_calls_of_one_function(self):
        db = self.db
        self.stock()

        @db.transaction
        def draw() -> int:
            return random.randint(1, 10**9)

        @db.transaction
        def both(item: int) -> str:
            db.stock[item].qty -= 1
            one = draw()
            return f"{one} {draw()}"

        given = both(5)
        with db.replay(db.last_seq()) as replay:
            self.assertEqual([replay.run(), replay.run()], [given, given])

    def test_what_was_captured_is_what_it_was(self):
        global COUNT
        db = self.db
        db.script("create table seen (id int primary key, at float8, number int, count int)")

        @db.transaction
        def inner(id: int) -> float:
            return random.random() + id

        @db.transaction
        def note(id: int) -> float:
            global COUNT
            COUNT += 1
            at = time.time()
            db.seen.insert(id=id, at=at, number=random.randint(1, 10**9), count=COUNT)
            return at + inner(id)

        given = note(1)
        seq = db.last_seq()
        self.assertEqual(COUNT, 4)
        COUNT = 70
        with db.replay(seq) as replay:
            self.assertEqual(replay.run(), given)
            self.assertEqual(len(replay.execute("select * from seen")), 0)
        self.assertEqual(COUNT, 70)
        COUNT = 3

    def test_moments_and_records(self):
        db = self.db
        db.script("create table seen (id int primary key, micros bigint, cents int)")

        @db.transaction
        def note(id: int, after: datetime.timedelta, price: Decimal) -> Place:
            at = BEGIN + after * 2
            cents = price.quantize(Decimal("0.1")) * 100
            db.seen.insert(id=id, micros=at.microsecond, cents=int(cents))
            return Place(at.day, at.hour)

        given = note(1, datetime.timedelta(hours=7, microseconds=5), Decimal("1.25"))
        with db.replay(db.last_seq()) as replay:
            self.assertEqual(replay.run(), given)
            self.assertEqual(replay.arguments["after"], datetime.timedelta(hours=7, microseconds=5))

    def test_what_is_said_in_other_words(self):
        """Forms that programs have in other words are run as they are written."""
        db = self.db
        db.script("create table seen (id int primary key, at timestamp, price numeric)")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "said")

            @db.transaction
            def note(id: int, at: datetime.datetime, price: Decimal, *, path: str, more: int = 7) -> str:
                row = db.seen.insert(id=id, at=at.replace(tzinfo=None))
                half = price.quantize(Decimal("0.1"), rounding=decimal.ROUND_HALF_UP)
                row.price = half.quantize(Decimal("1"), decimal.ROUND_DOWN)
                with open(path, "a") as out:
                    out.write(f"{id}")
                    print(more, file=out)
                back = row.at if row.at is not None else at.replace(tzinfo=None)
                return f"{half:.2f} {back.replace(tzinfo=UTC)} {at.astimezone(UTC).hour}"

            given = note(1, datetime.datetime(2024, 2, 29, 5, 6, tzinfo=UTC), Decimal("7.25"), path=path)
            self.assertEqual(given, "7.30 2024-02-29 05:06:00+00:00 5")
            with db.replay(db.last_seq()) as replay:
                self.assertEqual((replay.run(), replay.run()), (given, given))
            with open(path) as file:
                self.assertEqual(file.read(), "17\n")

    def test_what_was_taken_is_put_where_it_was_taken(self):
        db = self.db
        db.script("create table seen (id int primary key, doc jsonb)")
        count = 0
        chosen = Chosen.FIRST.value

        def plus(n: int, more: int = chosen) -> int:
            return n + more

        @db.transaction
        def note(id: int, doc: fabius.Json) -> str:
            nonlocal count
            count += 1
            db.seen.insert(id=id, doc=doc)
            match id:
                case Chosen.FIRST.value:
                    return f"first {count}"
                case Chosen.SECOND.value | 9:
                    return f"second {count}"
            return f"{plus(id)} {count}"

        calls = [(4, fabius.Json("x")), (5, fabius.Json(None)), (6, fabius.Json([1]))]
        seqs = []
        for id, doc in calls:
            seqs.append((note(id, doc), self.db.last_seq()))
        self.assertEqual([given for given, _ in seqs], ["first 1", "second 2", "10 3"])
        plus.__defaults__ = (100,)
        for given, seq in seqs:
            with db.replay(seq) as replay:
                self.assertEqual(replay.run(), given if not given.startswith("10 ") else "106 3")
                self.assertIsInstance(replay.arguments["doc"], fabius.Json)
        self.assertEqual(count, 3)

    def test_the_place_of_the_last_call(self):
        reserve = self.stock()
        reserve(5, 1)
        own = self.db.last_seq()
        with fabius.idempotent("k"):
            reserve(5, 1)
        keyed = self.db.last_seq()
        self.assertGreater(keyed, own)
        with self.db.replay(keyed) as replay:
            self.assertEqual(replay.run(), 8)
        reserve.client(5, 1)
        self.assertIsNone(self.db.last_seq())
        reserve(5, 1)
        self.assertGreater(self.db.last_seq(), keyed)

    def test_a_call_that_aborted_has_no_place(self):
        reserve = self.stock()
        reserve(5, 4)
        with self.assertRaises(fabius.Aborted):
            reserve(5, 400)
        self.assertIsNone(self.db.last_seq())

        @self.db.transaction
        def look(item: int) -> int:
            return self.db.stock[item].qty

        reserve(5, 1)
        self.assertEqual(look(5), 5)
        # It is in no log, and the call before it is another.
        self.assertIsNone(self.db.last_seq())
        with self.assertRaises(fabius.ProgrammingError) as raised:
            self.db.replay(self.db.last_seq())
        self.assertIn("aborted", raised.exception.hint)

    def test_a_debugger(self):
        reserve = self.stock()
        reserve(5, 4)
        said = io.StringIO()
        debugger = pdb.Pdb(
            stdin=io.StringIO("next\nnext\nprint(row.qty, item)\ncontinue\n"), stdout=said, nosigint=True
        )
        debugger.use_rawinput = False
        with self.db.replay(self.db.last_seq()) as replay:
            self.assertEqual(replay.debug(debugger), 6)
        self.assertIn("10 5", said.getvalue())
        self.assertIn("row = db.stock[item]", said.getvalue())
        self.assertIn("test_replay.py", said.getvalue())

    def test_what_cannot_be_replayed(self):
        reserve = self.stock()
        reserve(5, 4)
        last = self.db.last_seq()
        with self.assertRaises(fabius.OperationalError) as raised:
            self.db.replay(last + 1000)
        self.assertIn("has no entry", str(raised.exception))
        self.db.execute("insert into stock values (7, 1)")
        with self.assertRaises(fabius.ProgrammingError) as raised:
            self.db.replay(self.db.execute("select fabius.last_seq()").scalar())
        self.assertIn("not one of a function", str(raised.exception))
        self.db.close()
        self.db = self.opened()
        with self.assertRaises(fabius.ProgrammingError) as raised:
            self.db.replay(last)
        self.assertIn("one of reserve, which is not defined here", str(raised.exception))
        self.assertIn("row.qty -= count", raised.exception.detail)
        with fabius.open() as db, self.assertRaises(fabius.NotSupportedError):
            db.replay(1)


if __name__ == "__main__":
    unittest.main()
