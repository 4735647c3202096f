"""Runs the functions of `docs/python-comparison.md` as they stand there, from 32 threads that want one row.

    pip install "psycopg[binary]" redis sqlalchemy     # and Fabius, a PostgreSQL, a Redis: for tests only
    python examples/comparison.py "host=127.0.0.1 user=postgres dbname=postgres" 6379

Its tables are in a schema `comparison`, which is dropped at the end; in Redis, the key `stock:5` is overwritten.
"""

import contextlib
import io
import pathlib
import re
import sys
import tempfile
import threading
import types
from itertools import count

import fabius
import psycopg
import redis
import sqlalchemy

PAGE = pathlib.Path(__file__).parent.parent / "docs/python-comparison.md"
THREADS, CALLS_EACH, STOCK = 32, 20, 500

TABLES = """
    drop schema if exists comparison cascade;
    create schema comparison;
    create table comparison.stock (item bigint primary key, qty bigint not null check (qty >= 0));
    create table comparison.counted_stock (item bigint primary key, qty bigint not null, version int not null);
    insert into comparison.counted_stock values (5, 500, 1);
"""


def module(name, source):
    """What a block of the page defines."""
    made = sys.modules[name] = types.ModuleType(name)
    exec(source, made.__dict__)
    return made


def rush(name, connected, left, refusals, tries=None):
    """Calls a function from all threads, each with what `connected` gives it; checks that the stock was sold once."""
    answers, refused = [], []

    def work():
        call = connected()
        for _ in range(CALLS_EACH):
            try:
                answers.append(call(5, 1))
            except refusals as refusal:
                refused.append(refusal)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    calls = THREADS * CALLS_EACH
    # Each answer is what was left then: none comes twice, and none is missing.
    assert sorted(answers) == list(range(STOCK)), f"{name}: {len(set(answers))} answers of {len(answers)}"
    assert len(refused) == calls - STOCK and left() == 0, f"{name}: {len(refused)} refused, {left()} left"
    tried = "" if tries is None else f", {next(tries) / calls:.1f} tries for each call"
    print(f"{name:28} {len(answers)} sold, {len(refused)} refused{tried}")


def main(conninfo, redis_port):
    here = f"{conninfo} options='-c search_path=comparison'"
    admin = psycopg.connect(conninfo, autocommit=True)
    text = PAGE.read_text()
    (ours,) = re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
    loop, at_once, lua, locked, counted = re.findall(r"^```py\n(.*?)^```", text, re.S | re.M)

    def restock():
        admin.execute("delete from comparison.stock")
        admin.execute("insert into comparison.stock values (5, %s)", (STOCK,))

    def left(table="stock"):
        return admin.execute(f"select qty from comparison.{table} where item = 5").fetchone()[0]

    with tempfile.TemporaryDirectory() as folder:
        # A file of its own: what is compiled is read again.
        pathlib.Path(folder, "page.py").write_text(ours.replace('"shop"', repr(f"{folder}/shop")))
        sys.path.insert(0, folder)
        with contextlib.redirect_stdout(io.StringIO()):
            import page

        page.db.execute("update stock set qty = %s", (STOCK,))
        rush("Fabius", lambda: page.reserve, lambda: page.db.execute("select qty from stock").scalar(), fabius.Aborted)
        page.db.close()

    admin.execute(TABLES)
    tries = count()

    class Counting(psycopg.Connection):
        def transaction(self, *args, **kwargs):
            next(tries)
            return super().transaction(*args, **kwargs)

    def serializable():
        connection = Counting.connect(here, autocommit=True)
        connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        return lambda item, n: looping.reserve(connection, item, n)

    def read_committed():
        connection = psycopg.connect(here, autocommit=True)
        return lambda item, n: single.reserve_at_once(connection, item, n)

    restock()
    looping = module("looping", loop.replace('"dbname=shop"', repr(here)))
    rush("psycopg, SERIALIZABLE", serializable, left, ValueError, tries)
    restock()
    single = module("single", at_once)
    rush("psycopg, one statement", read_committed, left, ValueError)

    scripted = module("scripted", lua.replace("redis.Redis()", f"redis.Redis(port={redis_port})"))
    scripted.client.set("stock:5", STOCK)
    rush("Redis, Lua", lambda: scripted.reserve, lambda: int(scripted.client.get("stock:5")), redis.ResponseError)

    restock()
    url = '"postgresql+psycopg://", creator=lambda: __import__("psycopg").connect(HERE)'
    orm = module("orm", f"HERE = {here!r}\n" + locked.replace('"postgresql+psycopg:///shop"', url))
    rush("SQLAlchemy, FOR UPDATE", lambda: orm.reserve, left, ValueError)
    exec(counted, orm.__dict__)
    tries = count()
    sqlalchemy.event.listen(orm.engine, "begin", lambda connection: next(tries))
    rush("SQLAlchemy, version counter", lambda: orm.reserve_counted, lambda: left("counted_stock"), ValueError, tries)

    orm.engine.dispose()
    looping.connection.close()
    admin.execute("drop schema comparison cascade")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
