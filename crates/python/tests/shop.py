"""A small database, functions that texts define, and whether both ways of running them agree."""

import contextlib
import decimal
import io
import linecache
import random
import unittest

import fabius

SCHEMA = """
    create table stock (
        item int primary key, qty int not null check (qty >= 0), price numeric(8, 2) not null, note text
    );
    create table plain (id int primary key, a int not null, b int not null, c text);
    create table line (cart bigint, n int, item int references stock, many bigint not null, primary key (cart, n));
"""

ROWS = """
    insert into stock values (1, 5, 1.50, null), (2, 0, 0.10, 'x'), (3, 100, 99.99, '');
    insert into line values (1, 1, 1, 7), (1, 2, 3, -2);
    insert into plain values (1, 10, 20, 'x');
"""


#: A function that takes some of an item, if there is enough.
TAKE = (
    "def f(item: int, n: int) -> int:\n"
    "    row = db.stock[item]\n"
    "    fabius.require(row.qty >= n, f'only {row.qty} left')\n"
    "    row.qty -= n\n"
    "    return row.qty\n"
)


def defined(source, db, count=[0]):
    """A function that a text defines, as if it stood in a file."""
    count[0] += 1
    file = f"<generated {count[0]}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"db": db, "fabius": fabius, "Decimal": decimal.Decimal, "random": random}
    exec(compile(source, file, "exec"), names)
    return names["f"]


def outcome(call):
    """What a call gave, or why it ended; and what it printed, if it did not end so."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            result = call()
    except ZeroDivisionError:
        return "ZeroDivisionError"
    except OverflowError:
        return "OverflowError"
    except fabius.Error as error:
        return type(error).__name__, error.sqlstate, [str(argument) for argument in error.args]
    except TypeError:
        return "TypeError"
    except (ValueError, LookupError, AssertionError) as error:
        return type(error).__name__, error.args
    return result, printed.getvalue()


def rows(db):
    return [db.execute(f"select * from {table} order by 1, 2")[:] for table in ("stock", "line", "plain")]


class Agreeing(unittest.TestCase):
    """Functions that do the same as programs and in the client's process."""

    def setUp(self):
        self.here, self.there = fabius.open(durability="none"), fabius.open(durability="none")
        self.addCleanup(self.here.close)
        self.addCleanup(self.there.close)
        for db in (self.here, self.there):
            db.script(SCHEMA + ROWS)

    def begin_again(self):
        """Both databases have the rows that they began with."""
        for db in (self.here, self.there):
            db.script("delete from line; delete from stock; delete from plain")
            db.script(ROWS)

    def agree(self, source, *calls):
        """Both ways of running give the same results, and leave the same rows."""
        plain = self.here.transaction(side="client")(defined(source, self.here))
        program = self.there.transaction(defined(source, self.there))
        self.assertFalse(plain.compiled)
        self.assertTrue(program.compiled)
        for arguments in calls:
            here, there = outcome(lambda: plain(*arguments)), outcome(lambda: program(*arguments))
            self.assertEqual(there, here, f"{source}\n{arguments}")
            self.assertIs(type(there[0]), type(here[0]), f"{source}\n{arguments}")
        self.assertEqual(rows(self.there), rows(self.here), source)
        return there
