"""A small database, functions that texts define, and whether all ways of running them agree."""

import contextlib
import dataclasses
import datetime
import decimal
import enum
import io
import linecache
import logging
import random
import subprocess
import tempfile
import threading
import unittest
import urllib.request
import uuid
from typing import Any, NamedTuple

import fabius

from model import Column, Model, Table

SCHEMA = """
    create table stock (
        item int primary key, qty int not null check (qty >= 0), price numeric(8, 2) not null, note text
    );
    create table plain (id int primary key, a int not null, b int not null, c text);
    create table line (cart bigint, n int, item int references stock, many bigint not null, primary key (cart, n));
    create table shift (id int primary key, worked interval not null, pause interval);
"""

ROWS = """
    insert into stock values (1, 5, 1.50, null), (2, 0, 0.10, 'x'), (3, 100, 99.99, '');
    insert into line values (1, 1, 1, 7), (1, 2, 3, -2);
    insert into plain values (1, 10, 20, 'x');
    insert into shift values (1, '8 hours', null), (2, '1 year 2 mons -3 days 04:05:06.7', '30 minutes');
"""

EMPTY = "delete from line; delete from stock; delete from plain; delete from shift"


def shop(statements=None):
    """`SCHEMA` and `ROWS` as a model, and what statements mean there."""
    number, text = Column(int, bits=32), Column(str, is_optional=True)
    stock = Table(
        "stock",
        ("item",),
        {"item": number, "qty": number, "price": Column(decimal.Decimal, digits=(8, 2)), "note": text},
        checks={"stock_qty_check": lambda row: row["qty"] >= 0},
    )
    plain = Table("plain", ("id",), {"id": number, "a": number, "b": number, "c": text})
    line = Table(
        "line",
        ("cart", "n"),
        {"cart": Column(int), "n": number, "item": number._replace(is_optional=True), "many": Column(int)},
        references={"item": stock},
    )
    span = Column(datetime.timedelta)
    shift = Table("shift", ("id",), {"id": number, "worked": span, "pause": span._replace(is_optional=True)})
    made = Model([stock, line, plain, shift], statements)
    for item, qty, price, note in ((1, 5, "1.50", None), (2, 0, "0.10", "x"), (3, 100, "99.99", "")):
        stock.insert(item=item, qty=qty, price=decimal.Decimal(price), note=note)
    line.insert(cart=1, n=1, item=1, many=7)
    line.insert(cart=1, n=2, item=3, many=-2)
    plain.insert(id=1, a=10, b=20, c="x")
    shift.insert(id=1, worked=datetime.timedelta(hours=8))
    long = datetime.timedelta(days=422, hours=4, minutes=5, seconds=6, milliseconds=700)
    shift.insert(id=2, worked=long, pause=datetime.timedelta(minutes=30))
    return made


#: A moment that functions know.
BEGIN = datetime.datetime(2024, 2, 28, 22, 59, 3, 250, tzinfo=datetime.timezone.utc)


@dataclasses.dataclass
class Point:
    x: int


@dataclasses.dataclass(frozen=True)
class Place:
    x: int
    y: int = 7
    name: str | None = None


class Size(enum.IntEnum):
    """Numbers with names."""

    SMALL = 1
    LARGE = 7


class Mine(ValueError):
    """An exception that is made by code of its own."""

    def __init__(self, n):
        super().__init__(f"n={n}")


#: A function that takes some of an item, if there is enough.
TAKE = (
    "def f(item: int, n: int) -> int:\n"
    "    row = db.stock[item]\n"
    "    fabius.require(row.qty >= n, f'only {row.qty} left')\n"
    "    row.qty -= n\n"
    "    return row.qty\n"
)


def defined(source, db, name="f", count=[0]):
    """The function of a name that a text defines, as if it stood in a file."""
    count[0] += 1
    file = f"<generated {count[0]}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {
        "db": db,
        "fabius": fabius,
        "Decimal": decimal.Decimal,
        "random": random,
        "logging": logging,
        "BEGIN": BEGIN,
        "Point": Point,
        "Place": Place,
    }
    names |= {"dataclass": dataclasses.dataclass}
    names |= {name: getattr(datetime, name) for name in ("date", "datetime", "time", "timedelta", "timezone")}
    names |= {"UUID": uuid.UUID, "Mine": Mine, "subprocess": subprocess, "urllib": urllib}
    names |= {"SIZES": {"a": 1}, "NOTHING": None, "Size": Size}
    exec(compile(source, file, "exec"), names)
    return names[name]


def crowd(call, clients):
    """Threads that make a call ten times each, all at once: of each call whether it was let through."""
    outcomes = []

    def client():
        for _ in range(10):
            try:
                call()
                outcomes.append(True)
            except fabius.Aborted:
                outcomes.append(False)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


class Outcome(NamedTuple):
    """What a call did for its caller."""

    #: What it gave, with classes; or the class of what ended it, and its arguments.
    result: Any
    #: What it printed and logged, in this order.
    said: str
    #: Globals of its file afterwards.
    names: dict[str, Any]


def outcome(call, function):
    """What a call of a function did for its caller, and whether it ended by an exception."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
    logger, level = logging.getLogger(), logging.getLogger().level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with contextlib.redirect_stdout(said):
            result, has_ended = with_classes(call()), False
    except Exception as error:
        result, has_ended = ending(error), True
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    return Outcome(result, said.getvalue(), globals_of(function)), has_ended


def with_classes(value):
    """A value and its class, by which `True` is another than `1`."""
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [with_classes(part) for part in value]
    return type(value).__name__, value


def ending(error):
    """Why a call ended."""
    for kind in (ZeroDivisionError, OverflowError, TypeError):
        # Their words are each side's own.
        if isinstance(error, kind):
            return kind.__name__
    if isinstance(error, fabius.Error):
        return type(error).__name__, error.sqlstate, [str(argument) for argument in error.args]
    return type(error).__name__, error.args


def globals_of(function):
    """The globals of the file that a function stands in, as far as they are simple values."""
    kinds = (bool, int, str, float, decimal.Decimal)
    names = function.__globals__.items()
    return {name: value for name, value in names if type(value) in kinds and not name.startswith("__")}


def undone(call, function):
    """What a call in this process did; where an exception ended it, what it said and its globals are taken back, which
    plain Python does not do."""
    before = globals_of(function)
    done, has_ended = outcome(call, function)
    if has_ended:
        function.__globals__.update(before)
        done = done._replace(said="", names=before)
    return done


def rows(db, model):
    """The rows of all tables that a model has, in a database or in the model itself."""
    if db is model:
        return [[tuple(row.values()) for _, row in sorted(table.rows.items())] for table in model.tables.values()]
    return [
        [
            tuple(row)
            for row in db.execute(f"select {', '.join(table.columns)} from {name} order by {', '.join(table.key)}")
        ]
        for name, table in model.tables.items()
    ]


class Agreeing(unittest.TestCase):
    """Functions that do the same as programs, in the client's process, and as plain Python over dictionaries."""

    #: What statements mean over dictionaries.
    STATEMENTS: dict[str, Any] = {}

    def setUp(self):
        self.begin(SCHEMA + ROWS, shop(self.STATEMENTS))

    def begin(self, script, model):
        """Two databases that a script makes, and the model that is the same."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.here, self.there = fabius.open(durability="none"), fabius.open(directory.name, durability="none")
        self.model = model
        for db in (self.here, self.there):
            self.addCleanup(db.close)
            db.script(script)
            self.assertEqual(rows(db, model), rows(model, model))

    def begin_again(self):
        """All have the rows that they began with."""
        for db in (self.here, self.there):
            db.script(EMPTY)
            db.script(ROWS)
        # What is replayed begins here.
        self.there.checkpoint()
        self.model = shop(self.STATEMENTS)

    def agree(self, source, *calls, name="f", again=""):
        """All ways of running give the same results, and leave the same rows."""
        databases = (self.model, self.here, self.there)
        in_model, in_client, as_program = (defined(source, db, name) for db in databases)
        client = self.here.transaction(side="client")(in_client)
        program = self.there.transaction(as_program)
        self.assertFalse(client.compiled)
        self.assertTrue(program.compiled)
        for arguments in calls:
            shown = f"{again}\n{source}\n{arguments}"
            model = undone(lambda: self.model.call(in_model, *arguments), in_model)
            here = undone(lambda: client(*arguments), in_client)
            there, _ = outcome(lambda: program(*arguments), as_program)
            seq = self.there.last_seq()
            self.assertEqual(here, model, f"client and plain Python: {shown}")
            self.assertEqual(there, model, f"program and plain Python: {shown}")
            after = rows(self.model, self.model)
            self.assertEqual(rows(self.here, self.model), after, f"rows of client and plain Python: {shown}")
            self.assertEqual(rows(self.there, self.model), after, f"rows of program and plain Python: {shown}")
            if seq is not None:
                with self.there.replay(seq) as replay:
                    again, _ = outcome(replay.run, as_program)
                self.assertEqual(again[:2], there[:2], f"replay and program: {shown}")
        return there
