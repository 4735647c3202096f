"""Functions over futures do what the same functions do over values, and what they do not look at does not conflict.

``FABIUS_PYTHON_FUNCTIONS=10000 FABIUS_PYTHON_SEED=7`` runs so many random functions from a seed.
"""

import copy
import doctest
import os
import pickle
import random
import unittest
import warnings
from decimal import Decimal
from unittest import mock

import fabius
import shop
import test_compiled
import test_corners
from fabius.futures import formula
from fabius.transactions import Run
from shop import EMPTY, ROWS, SCHEMA, crowd, defined, rows, undone
from writer import Writer

TYPES = """
    create type state as enum ('new', 'open', 'closed');
    create table thing (
        id int primary key, small smallint not null, large bigint not null, money numeric(8, 2) not null,
        plain numeric not null, real float8 not null, state state not null, short varchar(4) not null,
        word text not null, day date not null, moment timestamptz not null, mark uuid not null, done boolean not null,
        maybe int, many int[] not null, twice int generated always as (small * 2) stored
    );
    insert into thing values
        (1, 3, 5000000000, 1.50, 0.25, 0.1, 'open', 'ab', 'wörter', '2026-02-03', '2026-02-03 04:05:06+00',
         '00000000-0000-0000-0000-000000000001', true, null, array[1, 2]),
        (2, -7, -9, -1.00, 3, -2.5, 'new', '', 'Zoo', '2025-01-01', '2025-01-01 00:00:00+00',
         '00000000-0000-0000-0000-000000000002', false, 4, array[]::int[]);
"""


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(formula))
    return tests


class Futures(unittest.TestCase):
    def setUp(self):
        self.db = fabius.open(durability="none")
        self.addCleanup(self.db.close)
        self.db.script(SCHEMA + ROWS)

    def meanwhile(self, statement):
        """Another transaction, in the middle of one."""
        with self.db.connect(autocommit=True) as other:
            other.execute(statement)

    def run_on(self, side, function, statement):
        """How often a function runs, if a statement of another comes when it says so for the first time."""
        runs = []

        def hook():
            runs.append(True)
            if len(runs) == 1:
                self.meanwhile(statement)

        result = self.db.transaction(side=side)(function)(hook)
        return len(runs), result


class NoConflict(Futures):
    """What is not looked at cannot conflict."""

    def conflict(self, function, statement, runs):
        """The function runs twice over values, and so often over futures; the rows are the same in the end."""
        ended = []
        for side, expected in (("client", 2), ("futures", runs)):
            self.db.script(EMPTY)
            self.db.script(ROWS)
            with self.subTest(side=side):
                ran, result = self.run_on(side, function, statement)
                self.assertEqual(ran, expected)
                ended.append((result, rows(self.db, shop.shop())))
        self.assertEqual(*ended)

    def test_a_hot_row(self):
        db = self.db

        def take(hook):
            row = db.stock[3]
            fabius.require(row.qty >= 10, "too few")
            hook()
            row.qty -= 10

        self.conflict(take, "update stock set qty = qty - 5 where item = 3", 1)

    def test_a_condition_that_does_not_hold_any_more(self):
        db = self.db

        def take(hook):
            row = db.stock[3]
            if row.qty < 10:
                hook()
                return False
            hook()
            row.qty -= 10
            return True

        self.conflict(take, "update stock set qty = 9 where item = 3", 2)

    def test_what_was_assigned_before(self):
        db = self.db

        def take(hook):
            row = db.stock[3]
            qty = row.qty
            fabius.require(qty >= 10)
            row.qty = qty - 10
            row.qty = row.qty - 1
            if qty < 90:
                raise ValueError("few")
            hook()

        self.conflict(take, "update stock set qty = qty - 5 where item = 3", 1)

    def test_rows_into_rows(self):
        db = self.db

        def move(hook):
            one, other = db.plain[1], db.stock[3]
            one.a = other.qty + one.b
            one.c = "from " + one.c
            hook()

        self.conflict(move, "update stock set qty = qty - 5 where item = 3", 1)
        self.conflict(move, "update plain set c = 'y', b = 4", 1)

    def test_a_number_for_a_key(self):
        db = self.db

        def order(hook):
            counter = db.plain[1]
            db.line.insert(cart=7, n=counter.a, item=1, many=counter.b * 2)
            counter.a += 1
            hook()

        self.conflict(order, "update plain set a = a + 1", 1)

    def test_a_row_that_may_be_null(self):
        db = self.db

        def note(hook):
            row = db.stock[2]
            if row.note is not None and row.note != "y":
                row.qty += 1
            hook()

        self.conflict(note, "update stock set note = 'z' where item = 2", 1)

    def test_which_rows(self):
        db = self.db

        def count(hook):
            for line in db.line.where(cart=1):
                line.many += 1
            hook()

        self.conflict(count, "update line set many = 50 where n = 2", 1)

    def test_loops_and_smallest(self):
        db = self.db

        def least(hook):
            best = min((row for row in db.stock), key=lambda row: row.qty)
            hook()
            db.plain[1].a = best.item

        self.conflict(least, "update stock set qty = 1 where item = 2", 1)

    def test_what_is_returned_is_read(self):
        db = self.db

        def take(hook):
            row = db.stock[3]
            row.qty -= 10
            hook()
            return {"left": [row.qty]}

        self.conflict(take, "update stock set qty = qty - 5 where item = 3", 2)

    def test_what_is_shown_is_read(self):
        db = self.db

        def show(hook):
            text = f"{db.stock[3].qty} left"
            hook()
            db.plain[1].c = text

        self.conflict(show, "update stock set qty = qty - 5 where item = 3", 2)

    def test_a_row_that_is_gone(self):
        db = self.db

        def take(hook):
            row = db.stock.get(2)
            if row is not None:
                row.qty += 1
            hook()

        self.conflict(take, "delete from stock where item = 2", 2)

    def test_everyone_wants_the_last_ones(self):
        db = self.db
        runs = []

        @db.transaction(side="futures")
        def reserve():
            runs.append(True)
            row = db.stock[1]
            fabius.require(row.qty > 0)
            row.qty -= 1

        db.execute("update stock set qty = 20 where item = 1")
        outcomes = crowd(reserve, 4)
        self.assertEqual((outcomes.count(True), len(outcomes)), (20, 40))
        self.assertEqual(db.execute("select qty from stock where item = 1").scalar(), 0)


class Statements(Futures):
    """What is sent."""

    def sent(self, function):
        texts = []
        send = Run.send

        def noted(run, text, parameters=None):
            texts.append((str(text), list(parameters or ())))
            return send(run, text, parameters)

        transaction = self.db.transaction(side="futures")(function)
        self.db.transaction(side="futures")(lambda: (self.db.stock[1], self.db.plain[1]) and None)()
        with mock.patch.object(Run, "send", noted):
            transaction()
        self.assertEqual(texts[0][0], "begin")
        return texts[1:]

    def test_a_hot_row(self):
        db = self.db

        def take():
            row = db.stock[3]
            fabius.require(row.qty >= 10)
            row.qty -= 10

        self.assertEqual(
            self.sent(take),
            [
                ('select "item" from "stock" where "item" = %s', [3]),
                (
                    'select ("qty"::bigint >= $1::bigint) from "stock" where "item" = $2',
                    [10, 3],
                ),
                ('update "stock" set "qty" = "qty" - $1::integer where "item" = $2', [10, 3]),
            ],
        )

    def test_what_is_not_used(self):
        db = self.db

        def nothing():
            row = db.stock[3]
            _ = (row.qty + 1) * 2 > row.qty

        self.assertEqual(len(self.sent(nothing)), 1)

    def test_what_is_read_is_read_once(self):
        db = self.db

        def twice():
            row = db.stock[3]
            assert int(row.qty) == 100 and str(row.qty) == "100" and row.qty + 1 == 101

        self.assertEqual(len(self.sent(twice)), 2)

    def test_other_rows(self):
        db = self.db

        def copied():
            db.plain[1].a = db.stock[3].qty * 2

        self.assertEqual(
            self.sent(copied)[-1],
            (
                'update "plain" set "a" = ((select "qty" from "stock" where "item" = $1)::bigint * $2::bigint)'
                ' where "id" = $3',
                [3, 2, 1],
            ),
        )

    def test_statements_that_change_nothing_of_what_is_held(self):
        db = self.db

        def several():
            row = db.stock[3]
            qty = row.qty
            db.execute("select count(*), max(n) from line where many > %s", (row.qty * 0,))
            db.execute("update line set many = many + 1")
            db.execute("insert into line (cart, n, item, many) values (9, 9, 1, 1)")
            del db.line[9, 9]
            qty + 1

        texts = [text for text, _ in self.sent(several)]
        self.assertEqual(
            [text for text in texts if '"qty"' in text],
            ['select ("qty"::bigint * $1::bigint) from "stock" where "item" = $2'],
        )


class Agreeing(shop.Agreeing):
    """Functions that do the same over futures and over values."""

    def agree(self, source, *calls, name="f", again=""):
        """Both give the same results, and leave the same rows. Says whether futures were enough."""
        in_client, in_futures = (defined(source, db, name) for db in (self.here, self.there))
        plain = self.here.transaction(side="client")(in_client)
        future = self.there.transaction(side="futures")(in_futures)
        was_enough = True
        for arguments in calls:
            shown = f"{again}\n{source}\n{arguments}"
            here = undone(lambda: plain(*copy.deepcopy(arguments)), in_client)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                there = undone(lambda: future(*copy.deepcopy(arguments)), in_futures)
            if said:
                # It has run twice, and printed twice; globals were what they had been.
                was_enough = False
                self.assertTrue(there.said.endswith(here.said), shown)
                there = there._replace(said=here.said)
            self.assertEqual(repr(there), repr(here), shown)
            self.assertEqual(there, here, shown)
            self.assertEqual(rows(self.there, self.model), rows(self.here, self.model), shown)
        return was_enough


class Compiled(Agreeing, test_compiled.Agreement):
    """What compiled functions are tested with."""

    def test_corners(self):
        for source, calls in test_corners.CASES:
            self.begin_again()
            with self.subTest(source=source):
                self.agree(source, *calls)

    def test_random_functions(self):
        count = int(os.environ.get("FABIUS_PYTHON_FUNCTIONS", "60"))
        seed = int(os.environ.get("FABIUS_PYTHON_SEED", "1"))
        enough = 0
        for number in range(seed, seed + count):
            writer = Writer(random.Random(number))
            source = writer.function()
            calls = [writer.arguments() for _ in range(3)]
            self.begin_again()
            again = f"FABIUS_PYTHON_SEED={number} FABIUS_PYTHON_FUNCTIONS=1"
            with self.subTest(seed=number):
                enough += self.agree(source, *calls, again=again)
        self.assertGreaterEqual(enough, count * 0.7)


class Agreement(Agreeing):
    """What futures are."""

    def setUp(self):
        super().setUp()
        for db in (self.here, self.there):
            db.script(TYPES)

    def begin_again(self):
        super().begin_again()
        for db in (self.here, self.there):
            db.script("drop table thing; drop type state")
            db.script(TYPES)

    def both(self, body, *calls):
        """A body agrees, and no value is wanted where there is a future."""
        lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
        self.begin_again()
        with self.subTest(body=body):
            self.assertTrue(self.agree(f"def f(*given):\n{lines}", *(calls or ((),))))

    def test_a_future_means_what_was_there(self):
        for body in (
            "row = db.stock[1]\na = row.qty\nrow.qty = 7\nreturn a, row.qty",
            "row = db.stock[1]\na = row.qty\nrow.qty -= 3\nreturn a, row.qty",
            "row = db.stock[1]\na = row.qty * 2\nrow.qty = a\nreturn a, row.qty",
            "row = db.stock[1]\na = row.qty + 1\nrow.qty = a\nrow.qty = a + 1\nreturn a, row.qty",
            "row = db.stock[1]\na = row.qty\nb = row.qty + a\nrow.qty = b\nc = row.qty\nrow.qty = a\nreturn a, b, c",
            "row = db.stock[1]\na = [row.qty]\nfor i in range(5):\n    row.qty += i\n    a.append(row.qty)\nreturn a",
            "a = db.stock[1]\nb = db.stock[1]\na.qty += 2\nreturn a.qty, b.qty",
            "a = db.stock[1]\nb = db.stock[1]\na.qty += 2\nb.qty += 1\nreturn a.qty, b.qty",
            "a = db.stock[1]\nb = db.stock[1]\na.note = 'new'\nb.qty += 1\nreturn a.note, b.note",
            "a = db.stock[1]\nb = db.stock[1]\na.note = 'new'\nreturn a.note, b.note, b.qty",
            "row = db.stock[1]\na = row.qty\ndb.execute('update stock set qty = 0')\n"
            "return a, row.qty, db.stock[1].qty",
            "row = db.stock[1]\ndb.execute('with x as (select 1) update stock set qty = 0')\nreturn row.qty",
            "row = db.stock[1]\na = row.qty > 3\nrow.qty = 1\nreturn a, row.qty > 3",
            "row = db.stock[1]\na = row.qty\ndel db.line[1, 1]\nrow.delete()\nreturn a",
            "row = db.stock[2]\na = row.qty\ndel db.stock[2]\nreturn a, row.note",
            "row = db.stock[2]\nrow.delete()\nreturn row.qty",
            "row = db.stock[2]\nrow.item = 9\nreturn row.qty, row.item, 2 in db.stock",
            "row = db.stock[2]\nother = db.stock[2]\nrow.item = 9\nreturn other.qty, other.item",
            "row = db.stock[2]\nother = db.stock.upsert(item=2, qty=8, price=1)\n"
            "return row.qty, other.qty, list(other)",
            "row = db.line[1, 1]\na = row.many\ndb.line[1, 1].many = a + row.many\n"
            "return a, row.many, db.line[1, 1].many",
            "rows = list(db.stock)\nfor row in rows:\n    db.stock[row.item].qty += 1\n"
            "return [row.qty for row in rows]",
            "for row in db.stock:\n    db.execute('update stock set qty = qty + 1')\n    db.plain[1].a += row.qty",
            "row = db.thing[1]\na = row.twice\nb = row.small\nrow.small += 1\nreturn a, b, row.twice",
            "row = db.thing[1]\nother = db.thing[1]\nrow.small = row.small * 5\n"
            "return other.twice, row.twice, other.small",
            "row = db.thing[1]\na = row.money\nrow.money -= Decimal('0.25')\nreturn a, row.money",
            "row = db.thing[1]\na = row.money\nrow.money -= Decimal('0.255')\nreturn a, row.money",
            "row = db.thing[1]\na = row.money - Decimal('0.255')\nrow.money = a\nreturn a, row.money",
            "row = db.thing[1]\na = row.money + Decimal('0.5')\nrow.money = a\nreturn a, row.money",
            "row = db.thing[1]\na = row.plain\nrow.plain = row.plain + Decimal('0.75')\nreturn a, row.plain",
            "row = db.thing[1]\nb = row.plain + Decimal('0.75')\nrow.plain = b\nreturn b, row.plain",
            "row = db.thing[1]\na = row.small + 5\nrow.money = a\nreturn a, row.money",
            "row = db.thing[1]\na = row.short + 'c '\nrow.short = a\nreturn a, row.short",
            "row = db.thing[1]\na = row.word + '!'\nrow.word = a\nreturn a, row.word",
        ):
            self.both(body)

    def test_parts(self):
        for body in (
            "row = db.stock[1]\na = row.qty\ntry:\n    part(lambda: setattr(row, 'qty', row.qty - 1), True)\n"
            "except ValueError:\n    pass\nreturn a, db.stock[1].qty",
            "row = db.stock[1]\na = row.qty\npart(lambda: setattr(row, 'qty', row.qty - 1), False)\nreturn a, row.qty",
            "row = db.stock[1]\na = row.qty\nb = a - 1\ntry:\n    part(lambda: setattr(row, 'qty', b), True)\n"
            "except ValueError:\n    pass\nrow.qty = b * 2\nreturn a, b, row.qty",
            "try:\n    part(lambda: raised(db.stock[1].qty), True)\nexcept KeyError as error:\n    return error.args",
            "return part(lambda: db.stock[1].qty + 1, False) * 2",
            "return part.client(lambda: db.stock[1].qty + 1, False) * 2",
        ):
            names = (
                "def f(*given):\n    @db.transaction(side=side)\n    def part(does, fails):\n        made = does()\n"
                "        if fails:\n            raise ValueError(str(made))\n        return made\n"
                "    def raised(value):\n        raise KeyError(value)\n"
            )
            lines = "".join(f"    {line}\n" for line in body.split("\n"))
            self.begin_again()
            results = []
            for db, side in ((self.here, "client"), (self.there, "futures")):
                function = defined(names.replace("side=side", f"side={side!r}") + lines, db)
                results.append(undone(lambda: db.transaction(side=side)(function)(), function))
            with self.subTest(body=body):
                self.assertEqual(repr(results[1]), repr(results[0]))
                self.assertEqual(rows(self.there, self.model), rows(self.here, self.model))

    def test_over_values_and_over_futures_in_turn(self):
        for outer, inner in (("client", "futures"), ("futures", "client"), ("futures", "database")):
            self.begin_again()
            db = self.there

            @db.transaction(side=inner)
            def take(item: int, n: int) -> int:
                row = db.stock[item]
                row.qty -= n
                return row.qty

            @db.transaction(side=outer)
            def both():
                row = db.stock[3]
                a = row.qty
                b = take(3, row.qty - 90)
                return a, b, type(b), row.qty, db.stock[3].qty

            with self.subTest(outer=outer, inner=inner):
                self.assertEqual(both(), (100, 90, int, 100, 90))

    def test_operators(self):
        columns = "small large money plain real state short word day moment mark done maybe many twice id".split()
        forms = [
            "row.{}",
            "bool(row.{})",
            "not row.{}",
            "-row.{}",
            "abs(row.{})",
            "row.{} == row.{}",
            "str(row.{})",
            "f'{{row.{}}}'",
            "[row.{}, (row.{},), {{1: row.{}}}]",
            "row.{} is None",
            "hash(row.{})",
            "len(row.{})",
            "round(row.{}, 1)",
            "float(row.{})",
            "int(row.{})",
            "row.{} in [3, 'open', 'ab']",
            "[x for x in row.{}]",
            "row.{}[0]",
            "{{row.{}: 1}}",
            "'%s' % row.{}",
            "row.{}.upper()",
            "row.{}.year",
            "range(row.{})",
        ]
        others = [
            "0",
            "3",
            "-2",
            "2.5",
            "Decimal('0.3')",
            "Decimal('-0')",
            "'open'",
            "''",
            "None",
            "True",
            "10**20",
            "2**63",
        ]
        others += ["other.small", "other.large", "other.money", "other.plain", "other.word", "other.real", "row.day"]
        for symbol in ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|"):
            forms += [f"row.{{}} {symbol} {other}" for other in others if symbol != "**" or len(other) < 3]
            # To what a text formats, an object with items is a mapping.
            forms += [
                f"{other} {symbol} row.{{}}" for other in others if symbol != "**" and (symbol, other[0]) != ("%", "'")
            ]
        for column in columns:
            said = [form.format(*[column] * 3) for form in forms]
            # There is no memory for that.
            is_text = [any(one in text for one in ("'", "word", "state", "short")) for text in said]
            said = [text for text, is_one in zip(said, is_text) if not (is_one and "large" in text and " * " in text)]
            codes = [compile(text, text, "eval") for text in said]

            def each(db, codes=codes):
                return [
                    self.told(lambda: eval(code, {"Decimal": Decimal, "row": db.thing[n], "other": db.thing[3 - n]}))
                    for code in codes
                    for n in (1, 2)
                ]

            here = self.here.transaction(side="client")(each)(self.here)
            there = self.there.transaction(side="futures")(each)(self.there)
            for number, text in enumerate(text for text in said for n in (1, 2)):
                if "Unread" not in there[number]:
                    self.assertEqual(there[number], here[number], text)

    def told(self, function):
        try:
            return repr(function())
        except Exception as error:
            # `a < b` may be said as `b > a`.
            said = str(error).split("\n")[0]
            return type(error).__name__ if "not supported between" in said else f"{type(error).__name__}: {said}"

    def test_assignments(self):
        values = [
            "row.small",
            "other.large + 1",
            "row.money",
            "row.plain",
            "row.real",
            "row.state",
            "row.short",
            "row.word",
        ]
        values += [
            "row.small - 1",
            "row.small * 20000",
            "row.large - 2**62",
            "row.large + 2**63",
            "other.money + 1",
            "row.done",
        ]
        values += [
            "row.word + row.short",
            "row.short + 'abc'",
            "row.small // other.small",
            "row.maybe",
            "row.many",
            "row.day",
        ]
        values += ["row.mark", "row.moment", "row.small > 0", "None", "row.small % -2", "row.large // -1", "row.twice"]
        for column in "small large money plain real state short word day moment mark done maybe many twice id".split():
            for value in values:
                for number in (1, 2):
                    source = (
                        f"def f():\n    row = db.thing[{number}]\n    other = db.thing[{3 - number}]\n"
                        f"    value = {value}\n    row.{column} = value\n    print(list(row))\n    print(value)\n"
                        "    raise ValueError\n"
                    )
                    results = []
                    for db, side in ((self.here, "client"), (self.there, "futures")):
                        printed = []
                        function = defined(source, db)
                        function.__globals__["print"] = lambda one, printed=printed: printed.append(
                            repr(one) if isinstance(one, list) else str(one)
                        )
                        results.append((self.told(db.transaction(side=side)(function)), printed))
                    self.assertEqual(results[1], results[0], source)

    def test_what_is_thrown_about(self):
        for body in (
            "row = db.stock[1]\n"
            "return sum([row.qty, 1, row.qty]), max(row.qty, 3), min(3, row.qty), sorted([row.qty, 1])",
            "row = db.stock[3]\ndb.execute('update line set many = %s', (row.qty,))\n"
            "return db.line.insert(cart=row.qty, n=1, many=2).cart",
            "row = db.stock[3]\nrow.note = f'{row.qty:05d}'\nreturn row.note.upper(), len(row.note), row.note[1:]",
            "row = db.stock[3]\ngiven[0].append(row.qty)\ngiven[1]['x'] = row.qty\nreturn given",
            "row = db.stock[3]\nreturn list(row), row._asdict(), repr(row), row == db.stock[row.item]",
            "return [row.item for row in db.stock.where(qty=db.stock[1].qty)], db.stock[1].qty in db.stock",
            "made = db.line.insert(cart=db.stock[1].qty, n=db.stock[3].qty, many=3)\n"
            "db.execute('update line set many = 9')\nreturn made.many",
            "made = db.line.insert(cart=db.stock[1].qty, n=2, many=3)\nmade.many += 1\n"
            "other = db.line[5, 2]\nother.many += 1\nreturn made.many, other.many",
            "row = db.stock[1]\nx = row.qty\nwhile x > 0:\n    x -= 2\n    row.qty += 1\nreturn x, row.qty",
            "row = db.stock[1]\n"
            "match row.qty:\n    case 5:\n        return 'five'\n    case _:\n        return 'other'",
            "row = db.stock[1]\nx = row.qty\nfor _ in range(200):\n    x = x + row.qty\nreturn x",
            "return 5 if db.stock[1].qty else 6, db.stock[1].qty and 3, db.stock[2].qty or db.stock[1].qty",
            "row = db.stock[1]\nrow.qty -= 50\n",
            "row = db.stock[1]\nassert row.qty > 7, f'only {row.qty}'",
            "raise fabius.Aborted(db.stock[1].qty)",
            "return (row for row in [db.stock[1]]).__next__().qty",
            "return [[row.item, row.qty] for row in sorted(db.stock, key=lambda row: -row.qty)]",
            "return {row.qty: row.note for row in db.stock}",
            "pair = (db.stock[1].qty, [])\npair[1].append(db.stock[3].qty)\nreturn [pair, pair, {1: pair}, {pair[0]}]",
            "x = db.stock[1].qty\n"
            "return x.bit_length(), x.real, round(x), divmod(x, 2), 2 ** x, x << 1, [1, 2, 3, 4, 5, 6][x]",
        ):
            self.both(body, ([], {}))

    def test_what_other_rows_do(self):
        for db in (self.here, self.there):
            db.script(
                """
                create table parent (id int primary key, code int unique not null);
                create table child (
                    id int primary key, n int not null,
                    parent int references parent on delete cascade on update cascade,
                    code int references parent (code) on update cascade on delete set null
                );
                insert into parent values (1, 10), (2, 20);
                insert into child values (1, 5, 1, 10), (2, 6, 2, 20), (3, 7, null, 20);
                """
            )
        for body in (
            "row = db.child[2]\ndb.parent[1].id = 9\nother = db.child[1]\nreturn row.parent, other.parent, other.n",
            "row = db.child[2]\ndb.parent[2].code += 5\nreturn row.code, db.child[2].code, db.child[3].code",
            "row = db.child[2]\ndb.execute('update parent set code = code + 1')\nreturn row.code, db.child[2].code",
            "row = db.child[3]\na = db.child[2].n\ndel db.parent[2]\nreturn row.code, a, 2 in db.child",
        ):
            self.both(body)

    def test_copies(self):
        db = self.there

        @db.transaction(side="futures")
        def copies():
            qty = db.stock[3].qty
            return copy.copy(qty), copy.deepcopy([qty]), pickle.loads(pickle.dumps(qty))

        self.assertEqual(copies(), (100, [100], 100))

    def test_what_takes_no_future_is_given_values(self):
        db = self.there

        @db.transaction(side="futures")
        def words():
            return ", ".join([row.word for row in db.thing])

        with self.assertWarns(UserWarning) as warned:
            self.assertEqual(words(), "wörter, Zoo")
        self.assertIn("expected str instance, Unread found", str(warned.warning))

    def test_what_outlives_its_transaction(self):
        db = self.there
        kept = []

        @db.transaction(side="futures")
        def keep(fails):
            kept.append(db.stock[3].qty)
            kept.append(db.stock[3])
            if fails:
                raise ValueError

        keep(False)
        self.assertEqual((kept[0], kept[1].qty, kept[1].note), (100, 100, ""))
        kept.clear()
        with self.assertRaises(ValueError):
            keep(True)
        self.assertEqual(kept[0], 100)
        with self.assertRaisesRegex(fabius.ProgrammingError, "not read in its transaction"):
            int(kept[1].price)

    def test_sides(self):
        db = self.there

        @db.transaction
        def qty(item: int) -> int:
            return db.stock[item].qty

        self.assertEqual((qty(3), qty.client(3), qty.futures(3)), (100, 100, 100))
        with mock.patch.object(fabius, "side", "futures"):
            self.assertEqual((qty(3), db.run(qty, 3), db.submit(qty, 3).result()), (100, 100, 100))
            with self.assertRaisesRegex(fabius.ProgrammingError, "only programs are explained"):
                qty.explain()
        with self.assertRaisesRegex(fabius.ProgrammingError, "not in 'future'"):
            db.transaction(side="future")
            db.transaction(side="future")(qty)

    def test_a_key_is_of_all_runs_of_a_function(self):
        db = self.there
        for side in ("client", "futures"):
            runs = []

            @db.transaction(side=side)
            def copied(runs=runs):
                seen = int(db.stock[3].qty)
                if not runs:
                    with db.connect(autocommit=True) as other:
                        other.execute("update stock set qty = qty + 1 where item = 3")
                runs.append(seen)
                db.stock[2].qty = seen

            with fabius.idempotent(f"copy {side}"):
                copied()
            self.assertEqual(len(runs), 2)
            self.assertEqual(db.outcome(f"copy {side}"), "committed")


if __name__ == "__main__":
    unittest.main()
