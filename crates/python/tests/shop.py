"""A small database, and functions that texts define."""

import decimal
import linecache
import random

import fabius

SCHEMA = """
    create table stock (
        item int primary key, qty int not null check (qty >= 0), price numeric(8, 2) not null, note text
    );
    create table line (cart bigint, n int, item int references stock, many bigint not null, primary key (cart, n));
"""

ROWS = """
    insert into stock values (1, 5, 1.50, null), (2, 0, 0.10, 'x'), (3, 100, 99.99, '');
    insert into line values (1, 1, 1, 7), (1, 2, 3, -2);
"""


def defined(source, db, count=[0]):
    """A function that a text defines, as if it stood in a file."""
    count[0] += 1
    file = f"<generated {count[0]}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"db": db, "fabius": fabius, "Decimal": decimal.Decimal, "random": random}
    exec(compile(source, file, "exec"), names)
    return names["f"]
