"""The tables of `examples/tpcc.sql` as a model, and what the statements of `examples/tpcc.py` mean there.

Columns that have the time are left out, and so are foreign keys, which the calls come to only by rows that are not
there.
"""

from collections import namedtuple
from decimal import Decimal

from model import Answer, Column, Model, Table

WHOLE, TEXT = Column(int, bits=32), Column(str)
RATE, MONEY, AMOUNT, PRICE = (Column(Decimal, digits=digits) for digits in ((4, 4), (12, 2), (6, 2), (5, 2)))

#: Tables: the columns of their keys, and the others.
TABLES = {
    "warehouse": ({"w_id": WHOLE}, {"w_name": TEXT, "w_tax": RATE, "w_ytd": MONEY}),
    "district": (
        {"d_w_id": WHOLE, "d_id": WHOLE},
        {"d_name": TEXT, "d_tax": RATE, "d_ytd": MONEY, "d_next_o_id": WHOLE},
    ),
    "customer": (
        {"c_w_id": WHOLE, "c_d_id": WHOLE, "c_id": WHOLE},
        {
            **{"c_first": TEXT, "c_last": TEXT, "c_credit": TEXT, "c_discount": RATE, "c_balance": MONEY},
            **{"c_ytd_payment": MONEY, "c_payment_cnt": WHOLE, "c_delivery_cnt": WHOLE, "c_data": TEXT},
        },
    ),
    "history": (
        {"h_id": Column(int)},
        {
            **{"h_c_id": WHOLE, "h_c_d_id": WHOLE, "h_c_w_id": WHOLE, "h_d_id": WHOLE, "h_w_id": WHOLE},
            **{"h_amount": AMOUNT, "h_data": TEXT},
        },
    ),
    "item": ({"i_id": WHOLE}, {"i_name": TEXT, "i_price": PRICE, "i_data": TEXT}),
    "stock": (
        {"s_w_id": WHOLE, "s_i_id": WHOLE},
        {"s_quantity": WHOLE, "s_ytd": WHOLE, "s_order_cnt": WHOLE, "s_remote_cnt": WHOLE, "s_data": TEXT},
    ),
    "orders": (
        {"o_w_id": WHOLE, "o_d_id": WHOLE, "o_id": WHOLE},
        {
            **{"o_c_id": WHOLE, "o_carrier_id": WHOLE._replace(is_optional=True)},
            **{"o_ol_cnt": WHOLE, "o_all_local": Column(bool)},
        },
    ),
    "new_orders": ({"no_w_id": WHOLE, "no_d_id": WHOLE, "no_o_id": WHOLE}, {}),
    "order_line": (
        {"ol_w_id": WHOLE, "ol_d_id": WHOLE, "ol_o_id": WHOLE, "ol_number": WHOLE},
        {"ol_i_id": WHOLE, "ol_supply_w_id": WHOLE, "ol_quantity": WHOLE, "ol_amount": AMOUNT},
    ),
}


def _order(db, *values):
    names = ("o_w_id", "o_d_id", "o_id", "o_c_id", "o_ol_cnt", "o_all_local")
    db.orders.insert(**dict(zip(names, values)))
    return Answer(changed=1)


def _paid(db, *values):
    names = ("h_c_d_id", "h_c_w_id", "h_c_id", "h_d_id", "h_w_id", "h_amount", "h_data")
    db.history.insert(h_id=len(db.history.rows) + 1, **dict(zip(names, values)))
    return Answer(changed=1)


def _called(db, w_id, d_id, last):
    found = db.customer.where(c_w_id=w_id, c_d_id=d_id, c_last=last)
    customer = namedtuple("Customer", "c_id")
    return Answer(customer(row.c_id) for row in sorted(found, key=lambda row: row.c_first))


def _remembered(db, ids, amount, *key):
    row = db.customer.get(key)
    if row is None or row.c_credit != "BC":
        return Answer(changed=0)
    # A Decimal has no zeros at its end.
    row.c_data = f"{ids}|{amount.normalize():f}|{row.c_data}"[:500]
    return Answer(changed=1)


def _last_order(db, w_id, d_id, c_id):
    found = [row for row in db.orders.where(o_w_id=w_id, o_d_id=d_id, o_c_id=c_id)]
    order = namedtuple("Order", "o_id o_carrier_id")
    return Answer(order(row.o_id, row.o_carrier_id) for row in found[-1:])


def _oldest(db, w_id, d_id):
    order = namedtuple("Order", "no_o_id")
    return Answer([order(row.no_o_id) for row in db.new_orders.where(no_w_id=w_id, no_d_id=d_id)][:1])


def _lines(db, w_id, d_id, o_id):
    return list(db.order_line.where(ol_w_id=w_id, ol_d_id=d_id, ol_o_id=o_id))


def _short(db, s_w_id, w_id, d_id, first, last, threshold):
    lines = [row for row in db.order_line.where(ol_w_id=w_id, ol_d_id=d_id) if first <= row.ol_o_id <= last]
    items = {row.ol_i_id for row in lines}
    return Answer([(sum(db.stock[s_w_id, item].s_quantity < threshold for item in items),)])


#: What each statement means, by how it begins.
STATEMENTS = {
    "insert into orders ": _order,
    "insert into history ": _paid,
    "select c_id from customer ": _called,
    "update customer set c_data ": _remembered,
    "select o_id, o_carrier_id from orders ": _last_order,
    "select no_o_id from new_orders ": _oldest,
    "update order_line set ol_delivery_d ": lambda db, *order: Answer(changed=len(_lines(db, *order))),
    "select coalesce(sum(ol_amount), 0) ": lambda db, *order: Answer(
        [(sum((row.ol_amount for row in _lines(db, *order)), Decimal(0)),)]
    ),
    "select count(distinct s_i_id) ": _short,
}


def warehouses():
    """The tables and rows of `tpcc.sql`."""
    tables = [Table(name, tuple(key), key | others) for name, (key, others) in TABLES.items()]
    made = Model(tables, STATEMENTS)
    for w in (1, 2):
        made.warehouse.insert(w_id=w, w_name=f"house{w}", w_tax=Decimal("0.1"), w_ytd=0)
        for d in range(1, 11):
            counts = {"d_ytd": 0, "d_next_o_id": 1}
            made.district.insert(d_w_id=w, d_id=d, d_name=f"district{d}", d_tax=Decimal("0.05"), **counts)
            for c in range(1, 31):
                names = {"c_first": f"first{31 - c:02}", "c_last": f"last{c % 10}", "c_data": "data"}
                credit = {"c_credit": "GC" if c % 10 else "BC", "c_discount": Decimal("0.02")}
                counts = {"c_balance": -10, "c_ytd_payment": 10, "c_payment_cnt": 1, "c_delivery_cnt": 0}
                made.customer.insert(c_w_id=w, c_d_id=d, c_id=c, **names, **credit, **counts)
    for i in range(1, 101):
        made.item.insert(i_id=i, i_name=f"item{i}", i_price=Decimal(i % 90) + Decimal("1.25"), i_data="data")
        for w in (1, 2):
            counts = {"s_quantity": 20 + i % 80, "s_ytd": 0, "s_order_cnt": 0, "s_remote_cnt": 0}
            made.stock.insert(s_w_id=w, s_i_id=i, s_data="data", **counts)
    return made
