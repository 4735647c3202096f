"""Functions that are transactions, and rows by their keys."""

import contextlib
import threading
import unittest

import fabius
from fabius.compilation import CompilationError

from shop import crowd, defined


class Transactions(unittest.TestCase):
    def setUp(self):
        self.db = db = fabius.open()
        self.addCleanup(db.close)
        db.script(
            """
            create table stock (
                item int primary key, qty int not null check (qty >= 0), twice int generated always as (qty * 2) stored
            );
            create table line (
                cart int, n int, item int references stock, note text default 'new', primary key (cart, n)
            );
            create table log (what text);
            insert into stock values (1, 5), (2, 7);
            insert into line values (1, 1, 2), (1, 2, 1), (2, 1, 1);
            """
        )

    def test_a_function_is_a_transaction(self):
        db = self.db

        @db.transaction(side="client")
        def reserve(item: int, n: int = 1) -> int:
            """Takes some of an item."""
            row = db.stock[item]
            fabius.require(row.qty >= n, f"only {row.qty} left")
            row.qty -= n
            return row.qty

        self.assertEqual(reserve(1), 4)
        self.assertEqual(reserve(item=1, n=4), 0)
        with self.assertRaises(fabius.Aborted) as raised:
            reserve(1, 1)
        self.assertEqual((str(raised.exception), raised.exception.sqlstate), ("only 0 left", "P0001"))
        self.assertEqual((reserve.__name__, reserve.__doc__), ("reserve", "Takes some of an item."))

    def test_nothing_of_what_was_given_up_has_happened(self):
        db = self.db

        @db.transaction(side="client")
        def both():
            db.stock[1].qty = 100
            raise ValueError("no")

        with self.assertRaises(ValueError):
            both()
        self.assertEqual(db.execute("select qty from stock where item = 1").scalar(), 5)
        self.assertEqual(len(db._idle), 1)

    def test_rows(self):
        db = self.db
        with db.transaction():
            row = db.stock[2]
            self.assertEqual((row.qty, row.twice), (7, 14))
            row.qty += 1
            self.assertEqual((row.qty, row.twice, list(row)), (8, 16, [2, 8, 16]))
            self.assertEqual(row, db.stock[2])
            self.assertIn("qty=8", repr(row))
            self.assertIn(1, db.stock)
            self.assertNotIn(9, db.stock)
            self.assertIsNone(db.stock.get(9))
            self.assertEqual([line.n for line in db.line.where(cart=1)], [1, 2])
            self.assertEqual([line.cart for line in db.line.where(item=1, note="new")], [1, 2])
            db.line[1, 2].note = None
            self.assertEqual([line.n for line in db.line.where(note=None)], [2])
            del db.line[1, 2]
            self.assertEqual(len(list(db.line)), 2)
            made = db.line.insert(cart=3, n=1, item=2)
            self.assertEqual((made.note, made._asdict()["item"]), ("new", 2))
            db.line.upsert(cart=3, n=1, item=1)
            self.assertEqual(db.line[3, 1].item, 1)
            db.line[3, 1].n = 5
            self.assertEqual(db.line[3, 5].note, "new")
            moved = db.line[3, 5]
            moved.n = 6
            self.assertEqual(moved.n, 6)
            db.log.insert(what="done")
            self.assertEqual([row.what for row in db.log], ["done"])
        self.assertEqual(db.execute("select count(*) from line").scalar(), 3)

    def test_a_row_that_is_not_there(self):
        db = self.db
        for use in (
            lambda: db.stock[9].qty,
            lambda: setattr(db.stock[9], "qty", 1),
            lambda: db.stock[9].delete(),
        ):
            with self.assertRaises(KeyError) as raised, db.transaction():
                use()
            self.assertIsInstance(raised.exception, fabius.RowNotFound)
            self.assertEqual(str(raised.exception), "there is no row of stock with item = 9")

    def test_mistakes(self):
        db = self.db
        cases = [
            (lambda: db.nothing, AttributeError, "no table 'nothing'"),
            (lambda: db.stock[1].quantity, AttributeError, "it has item, qty, twice"),
            (lambda: setattr(db.stock[1], "quantity", 1), AttributeError, "it has item, qty, twice"),
            (lambda: db.stock[1, 2], fabius.ProgrammingError, "key of stock is (item)"),
            (lambda: db.line[1], fabius.ProgrammingError, "key of line is (cart, n)"),
            (lambda: db.log["x"].what, fabius.ProgrammingError, "no primary key"),
            (lambda: db.stock.insert(item=7, quantity=1), AttributeError, "no column 'quantity'"),
            (lambda: db.stock.upsert(qty=1), fabius.ProgrammingError, "needs its key: item"),
            (lambda: setattr(db.stock[1], "twice", 1), fabius.ProgrammingError, "twice"),
            (lambda: db.transaction().__enter__(), fabius.ProgrammingError, "cannot begin another"),
        ]
        for use, kind, message in cases:
            with self.subTest(message=message):
                with self.assertRaises(kind) as raised, db.transaction():
                    use()
                self.assertIn(message, str(raised.exception))
        with self.assertRaises(fabius.ProgrammingError) as raised:
            db.table("stock")
        self.assertIn("@db.transaction", str(raised.exception))
        self.assertFalse(hasattr(db, "stock"))

    def test_functions_that_call_functions_are_one_transaction(self):
        db = self.db

        @db.transaction(side="client")
        def take(item):
            db.stock[item].qty -= 1

        @db.transaction(side="client")
        def move():
            take(1)
            take(2)
            fabius.require(False)

        with self.assertRaises(fabius.Aborted):
            move()
        self.assertEqual(db.execute("select sum(qty) from stock").scalar(), 12)

    def test_what_a_function_calls_is_as_if_it_were_written_there(self):
        """What it did before it raised stays done where that is caught, in the client's process as in the database."""
        db = self.db

        @db.transaction
        def add(item: int) -> None:
            db.stock[item].qty += 3
            raise ValueError("enough")

        @db.transaction
        def caught(item: int) -> int:
            try:
                add(item)
            except ValueError:
                db.stock[item].qty += 10
            return db.stock[item].qty

        begin = db.execute("select qty from stock where item = 1").scalar()
        self.assertEqual(caught(1), begin + 13)
        self.assertEqual(caught.client(1), begin + 26)
        # In a block it is a part, which is undone alone.
        for call in (add, add.client):
            with db.transaction() as t, contextlib.suppress(ValueError):
                t.execute("update stock set qty = qty + 100 where item = 1")
                call(1)
        self.assertEqual(db.execute("select qty from stock where item = 1").scalar(), begin + 226)

    def test_methods_are_functions(self):
        db = self.db

        class Shop:
            @db.transaction(side="client")
            def qty(self, item):
                return db.stock[item].qty

        self.assertEqual(Shop().qty(1), 5)

    def test_definitions_are_followed(self):
        db = self.db
        with db.transaction():
            self.assertEqual(db.stock[1].qty, 5)
        db.execute("alter table stock add column shelf text default 'a'")
        with db.transaction():
            self.assertEqual(db.stock[1].shelf, "a")

    def test_everyone_wants_the_last_ones(self):
        db = self.db
        db.execute("update stock set qty = 20 where item = 1")

        @db.transaction(side="client")
        def reserve():
            row = db.stock[1]
            fabius.require(row.qty > 0)
            row.qty -= 1

        outcomes = crowd(reserve, 6)
        self.assertEqual((outcomes.count(True), len(outcomes)), (20, 60))
        self.assertEqual(db.execute("select qty from stock where item = 1").scalar(), 0)

    def test_a_constraint_that_only_a_conflict_violates(self):
        """A number that another took meanwhile is no error of the function: it runs again."""
        db = self.db
        db.execute("create table ticket (id int primary key, who int)")
        plain = defined(
            "def f(who: int) -> int:\n    last = 0\n    for row in db.ticket:\n        last = row.id\n"
            "    db.ticket.insert(id=last + 1, who=who)\n    return last + 1\n",
            db,
        )
        clients = [db.transaction(plain, side=side) for side in ("database", "client", "futures")] * 2
        taken, errors = [], []

        def client(number):
            for _ in range(10):
                try:
                    taken.append(clients[number](number))
                except fabius.Error as error:
                    errors.append(error)

        threads = [threading.Thread(target=client, args=(number,)) for number in range(len(clients))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((sorted(taken), errors), (list(range(1, 61)), []))
        # One that is there is an error, whoever is alone.
        db.execute("insert into ticket values (100, 0), (99, 0)")
        source = "def f() -> None:\n    db.ticket.insert(id=100)\n"
        with self.assertRaises(fabius.errors.UniqueViolation):
            db.transaction(side="client")(defined(source, db))()

    def test_rows_end_with_their_transaction(self):
        db = self.db
        with db.transaction():
            row = db.stock[1]
            rows = iter(db.stock)
        for use in (lambda: setattr(row, "qty", 3), row.delete, lambda: next(rows)):
            with self.assertRaises(fabius.ProgrammingError) as raised:
                use()
            self.assertIn("has ended", str(raised.exception))

    def test_globals_of_a_function_that_aborts(self):
        source = (
            "count = 0\n\n\ndef f(n: int):\n    global count\n    count += n\n    fabius.require(n < 2, 'too many')\n"
        )
        for side in ("database", "client", "futures"):
            plain = defined(source, self.db)
            function = self.db.transaction(side=side)(plain)
            for n in (1, 2, 1):
                with contextlib.suppress(fabius.Aborted):
                    function(n)
            self.assertEqual(plain.__globals__["count"], 2, side)

    def test_a_conflict_ends_a_block_and_runs_a_function_again(self):
        db = self.db
        runs = []

        def meanwhile():
            with db.connect(autocommit=True) as other:
                other.execute("update stock set qty = qty + 1 where item = 1")

        @db.transaction(side="client")
        def copy():
            seen = db.stock[1].qty
            if not runs:
                meanwhile()
            runs.append(seen)
            db.stock[2].qty = seen

        copy()
        self.assertEqual(runs, [5, 6])
        # Globals that it assigns, or what it calls, are first what they were.
        source = (
            "count, total = 0, 1\n\n\ndef g():\n    global total\n    total *= 2\n\n\n"
            "def f():\n    global count\n    count += 1\n    g()\n    seen = db.stock[1].qty\n"
            "    if seen == 6:\n        meanwhile()\n    db.stock[2].qty = seen\n"
        )
        plain = defined(source, db)
        plain.__globals__["meanwhile"] = meanwhile
        db.transaction(side="client")(plain)()
        self.assertEqual((plain.__globals__["count"], plain.__globals__["total"]), (1, 2))
        self.assertEqual(db.execute("select qty from stock where item = 2").scalar(), 7)
        db.execute("update stock set qty = 6 where item in (1, 2)")
        self.assertEqual(db.execute("select qty from stock where item = 2").scalar(), 6)
        with self.assertRaises(fabius.errors.SerializationFailure), db.transaction():
            seen = db.stock[1].qty
            meanwhile()
            db.stock[2].qty = seen


class Texts(unittest.TestCase):
    def setUp(self):
        self.db = fabius.open()
        self.addCleanup(self.db.close)
        self.db.script("create table stock (item int primary key, qty int not null); insert into stock values (5, 10)")

    def test_a_function_is_given_as_its_text(self):
        names = {"db": self.db, "LIMIT": 2}
        program = (
            "reserve = db.transaction('''\n"
            "    def reserve(item: int, n: int = 1) -> int:\n"
            "        assert n <= LIMIT, f'at most {LIMIT}'\n"
            "        db.stock[item].qty -= n\n"
            "        return db.stock[item].qty\n"
            "''')\n"
        )
        exec(program, names)
        self.assertEqual(names["reserve"](5), 9)
        self.assertIn("db.stock[item].qty -= n", str(names["reserve"].explain()))
        names["LIMIT"] = 0
        with self.assertRaisesRegex(AssertionError, "at most 0"):
            names["reserve"](5)

    def test_texts_that_are_none(self):
        for text, said in [("def f(:", "no Python"), ("x = 1", "one `def`"), ("def f(): pass\nf()", "one `def`")]:
            with self.assertRaisesRegex(CompilationError, said):
                self.db.transaction(text)
        names = {"db": self.db}
        with self.assertRaisesRegex(CompilationError, "give its text"):
            exec("@db.transaction\ndef f() -> None:\n    pass\n", names)


if __name__ == "__main__":
    unittest.main()
