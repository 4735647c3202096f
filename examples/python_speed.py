"""How fast calls from Python are: the lines of `docs/measurements.md`, "From Python".

    python examples/python_speed.py                             one at a time, submitted, TPC-C beside PL/pgSQL
    python examples/python_speed.py postgresql://u@host:5433/d  to a server: a function beside PL/pgSQL by psycopg

Each line is measured in turns, so that what else the machine does meets all of them; medians of the rounds.
"""

import argparse
import collections
import pathlib
import random
import re
import statistics
import sys
import threading
import time
from decimal import Decimal

import fabius

STOCK = """
    create table speed_stock (item int primary key, qty int not null);
    insert into speed_stock values (5, 2000000000);
"""

PLPGSQL = """
    create or replace function speed_reserve(p_item int, p_n int) returns int language plpgsql as $$
    declare v_qty int;
    begin
        select qty into strict v_qty from speed_stock where item = p_item;
        if v_qty < p_n then raise exception 'only % left', v_qty; end if;
        update speed_stock set qty = qty - p_n where item = p_item;
        return v_qty - p_n;
    end $$;
"""

#: How many calls are under way when they are submitted.
UNDER_WAY = 10_000

#: TPC-C's mix (clause 5.2.3), of 100 calls.
MIX = {"new_order": 45, "payment": 43, "order_status": 4, "delivery": 4, "stock_level": 4}

#: The same as procedures; new_order and payment give what they return by two OUT parameters.
CALLS = {
    "new_order": "call new_order($1, $2, $3, $4, $5, $6, NULL, NULL)",
    "payment": "call payment($1, $2, $3, $4, $5, $6, $7, NULL)",
    "order_status": "select * from order_status($1, $2, $3)",
    "delivery": "select delivery($1, $2)",
    "stock_level": "select stock_level($1, $2, $3)",
}


def reserving(db):
    """The function of the first screen."""

    @db.transaction
    def reserve(item: int, n: int) -> int:
        row = db.speed_stock[item]
        fabius.require(row.qty >= n, f"only {row.qty} left")
        row.qty -= n
        return row.qty

    return reserve


def rate(call, seconds):
    """Calls a second of one thread."""
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        for _ in range(50):
            call()
        count += 50
    return count / (time.perf_counter() - begin)


def submitted(db, reserve, seconds):
    """Calls a second that one thread hands in."""
    begin, count, pending = time.perf_counter(), 0, collections.deque()
    while time.perf_counter() - begin < seconds:
        while len(pending) < UNDER_WAY:
            pending.append(db.submit(reserve, 5, 1))
        for _ in range(UNDER_WAY // 10):
            pending.popleft().result()
        count += UNDER_WAY // 10
    while pending:
        pending.popleft().result()
        count += 1
    return count / (time.perf_counter() - begin)


def crowd(calls, seconds):
    """Calls a second of a thread for each of these."""
    counts, begin = [0] * len(calls), time.perf_counter()

    def client(place):
        while time.perf_counter() - begin < seconds:
            calls[place]()
            counts[place] += 1

    threads = [threading.Thread(target=client, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)


def arguments(name, chance):
    """Those of a TPC-C transaction, on the rows of `tpcc.sql`."""
    house, district, customer = chance.randint(1, 2), chance.randint(1, 10), chance.randint(1, 30)
    if name == "new_order":
        items = sorted(chance.sample(range(1, 101), chance.randint(5, 15)))
        quantities = [chance.randint(1, 10) for _ in items]
        return house, district, customer, items, [house] * len(items), quantities
    if name == "payment":
        by_name = chance.random() < 0.6
        who = (None, f"last{customer % 10}") if by_name else (customer, "")
        return house, district, house, district, *who, Decimal(chance.randint(100, 500_000)) / 100
    return {
        "order_status": (house, district, customer),
        "delivery": (house, chance.randint(1, 10)),
        "stock_level": (house, district, chance.randint(10, 20)),
    }[name]


def tpcc():
    """TPC-C in Python and in PL/pgSQL: for each what makes calls ready, and a call of what is ready; as users write
    them, and as they go to the database, where both are programs."""
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    import tpcc as functions

    plain = fabius.open(durability="none")
    plain.script(pathlib.Path(__file__).with_name("tpcc.sql").read_text())
    session, plain_session = functions.db._native.connect(), plain._native.connect()

    def of_function(name, values):
        program = getattr(functions, name).program()
        return session, program.statement, program.arguments(values, {})

    def answered(to, text, values):
        answer = to.execute_each(text, (values,))[0]
        if isinstance(answer, BaseException):
            raise answer

    return {
        "as written": (
            (lambda name, values: (getattr(functions, name), *values), lambda function, *values: function(*values)),
            (lambda name, values: (re.sub(r"\$\d+", "%s", CALLS[name]), values), plain.execute),
        ),
        "in the database": (
            (of_function, answered),
            (lambda name, values: (plain_session, CALLS[name], values), answered),
        ),
    }


def mixed(side, kind, seed, seconds):
    """Calls a second of the mix, or of one kind."""
    ready, call = side
    chance = random.Random(seed)
    names = [name for name, weight in MIX.items() for _ in range(weight)]
    made = [ready(name, arguments(name, chance)) for name in (kind or chance.choice(names) for _ in range(2_000))]
    turn = iter(made * 1_000)
    return rate(lambda: call(*next(turn)), seconds)


def shown(what, rates):
    """A line, with what the rounds differ by."""
    low, high = min(rates), max(rates)
    print(f"{what:50} {statistics.median(rates):>10,.0f} calls/s   ({low:,.0f} to {high:,.0f})", flush=True)


def beside(what, ours, theirs):
    """Two lines, and the first as a multiple of the second in the same round."""
    for name, rates in (ours, theirs):
        shown(f"{what}: {name}", rates)
    ratio = statistics.median(one / other for one, other in zip(ours[1], theirs[1]))
    print(f"{'':50} {ratio:>10.2f} times", flush=True)


def in_process(rounds, seconds):
    db = fabius.open(durability="none")
    db.script(STOCK)
    reserve = reserving(db)
    ones, many = [], []
    for _ in range(rounds):
        ones.append(rate(lambda: reserve(5, 1), seconds))
        many.append(submitted(db, reserve, seconds))
    shown("one at a time", ones)
    shown(f"submitted, {UNDER_WAY:,} under way", many)
    # Deliveries alone would soon have nothing to deliver.
    for way, (python, plpgsql) in tpcc().items():
        for kind in (None, "new_order", "payment", "order_status", "stock_level"):
            ours, theirs = [], []
            for number in range(rounds):
                ours.append(mixed(python, kind, number, seconds))
                theirs.append(mixed(plpgsql, kind, number, seconds))
            beside(f"TPC-C {way}, {kind or 'mix'}", ("Python", ours), ("PL/pgSQL", theirs))


def to_server(url, rounds, seconds):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop table if exists speed_stock")
        for text in STOCK.split(";")[:-1] + [PLPGSQL]:
            connection.execute(text)
    db = fabius.connect(url)
    reserve = reserving(db)
    for clients in (1, 32):
        cursors = [psycopg.connect(url, autocommit=True).cursor() for _ in range(clients)]
        text = "select speed_reserve(%s, %s)"
        theirs = [lambda cursor=cursor: cursor.execute(text, (5, 1)).fetchone() for cursor in cursors]
        ours = [lambda: reserve(5, 1)] * clients
        functions, procedures = [], []
        for _ in range(rounds):
            functions.append(crowd(ours, seconds))
            procedures.append(crowd(theirs, seconds))
        beside(f"{clients} threads", ("fabius.connect", functions), ("psycopg, PL/pgSQL", procedures))
        for cursor in cursors:
            cursor.connection.close()
    db.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="a server that holds nothing else; a table speed_stock is made there")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each line in each round")
    given = parser.parse_args()
    if given.url:
        to_server(given.url, given.rounds, given.seconds)
    else:
        in_process(given.rounds, given.seconds)
