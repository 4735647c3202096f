"""TPC-C's five transactions in Python, on the tables and rows of `tpcc.sql`, which has them in PL/pgSQL.

python examples/tpcc.py          runs each once, and says what of it is decided now and what may wait
"""

import pathlib
from decimal import Decimal

import fabius

db = fabius.open(durability="none")
db.script(pathlib.Path(__file__).with_name("tpcc.sql").read_text())


class InvalidItem(Exception):
    """Clause 2.4.1.4: one order in a hundred names an item that is not there."""


# Clause 2.4: an order of 5 to 15 items, of which some may come from other warehouses.
@db.transaction
def new_order(
    w_id: int, d_id: int, c_id: int, items: list[int], suppliers: list[int], quantities: list[int]
) -> tuple[int, Decimal]:
    warehouse = db.warehouse[w_id]
    district = db.district[w_id, d_id]
    district.d_next_o_id += 1
    number = district.d_next_o_id - 1
    customer = db.customer[w_id, d_id, c_id]
    is_local = all(supplier == w_id for supplier in suppliers)
    db.execute(
        "insert into orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) "
        "values (%s, %s, %s, %s, now(), %s, %s)",
        (w_id, d_id, number, c_id, len(items), is_local),
    )
    db.new_orders.insert(no_w_id=w_id, no_d_id=d_id, no_o_id=number)
    total = Decimal(0)
    for place, (item_id, supplier, quantity) in enumerate(zip(items, suppliers, quantities), 1):
        item = db.item.get(item_id)
        if item is None:
            raise InvalidItem(f"item {item_id}")
        stock = db.stock[supplier, item_id]
        left = stock.s_quantity - quantity
        stock.s_quantity = left if left >= 10 else left + 91
        stock.s_ytd += quantity
        stock.s_order_cnt += 1
        stock.s_remote_cnt += 0 if supplier == w_id else 1
        amount = quantity * item.i_price
        db.order_line.insert(
            ol_w_id=w_id,
            ol_d_id=d_id,
            ol_o_id=number,
            ol_number=place,
            ol_i_id=item_id,
            ol_supply_w_id=supplier,
            ol_quantity=quantity,
            ol_amount=amount,
        )
        total += amount
    return number, round(total * (1 - customer.c_discount) * (1 + warehouse.w_tax + district.d_tax), 2)


# Clause 2.5: a customer, by number or by last name, pays. Of several of one name it is the one in the middle.
@db.transaction
def payment(
    w_id: int, d_id: int, c_w_id: int, c_d_id: int, c_id: int | None, last: str, amount: Decimal
) -> tuple[int, Decimal]:
    warehouse = db.warehouse[w_id]
    warehouse.w_ytd += amount
    district = db.district[w_id, d_id]
    district.d_ytd += amount
    if c_id is None:
        found = [
            row.c_id
            for row in db.execute(
                "select c_id from customer where c_w_id = %s and c_d_id = %s and c_last = %s order by c_first",
                (c_w_id, c_d_id, last),
            )
        ]
        fabius.require(found, f"no customer is called {last}")
        number = found[(len(found) - 1) // 2]
    else:
        number = c_id
    customer = db.customer[c_w_id, c_d_id, number]
    customer.c_balance -= amount
    customer.c_ytd_payment += amount
    customer.c_payment_cnt += 1
    db.execute(
        "update customer set c_data = substr(%s || '|' || %s::numeric || '|' || c_data, 1, 500) "
        "where c_w_id = %s and c_d_id = %s and c_id = %s and c_credit = 'BC'",
        (f"{number} {c_d_id} {c_w_id} {d_id} {w_id}", amount, c_w_id, c_d_id, number),
    )
    db.execute(
        "insert into history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) "
        "values (%s, %s, %s, %s, %s, now(), %s, %s)",
        (c_d_id, c_w_id, number, d_id, w_id, amount, f"{warehouse.w_name}    {district.d_name}"),
    )
    return number, customer.c_balance


# Clause 2.6: a customer's last order: its number, its carrier, and how many lines it has.
@db.transaction
def order_status(w_id: int, d_id: int, c_id: int) -> tuple[int, int, int]:
    for order in db.execute(
        "select o_id, o_carrier_id from orders where o_w_id = %s and o_d_id = %s and o_c_id = %s "
        "order by o_id desc limit 1",
        (w_id, d_id, c_id),
    ):
        lines = [line.ol_i_id for line in db.order_line.where(ol_w_id=w_id, ol_d_id=d_id, ol_o_id=order.o_id)]
        return order.o_id, order.o_carrier_id if order.o_carrier_id is not None else 0, len(lines)
    return 0, 0, 0


# Clause 2.7: the oldest order of each district is delivered.
@db.transaction
def delivery(w_id: int, carrier_id: int) -> int:
    delivered = 0
    for d_id in range(1, 11):
        for oldest in db.execute(
            "select no_o_id from new_orders where no_w_id = %s and no_d_id = %s order by no_o_id limit 1", (w_id, d_id)
        ):
            del db.new_orders[w_id, d_id, oldest.no_o_id]
            order = db.orders[w_id, d_id, oldest.no_o_id]
            order.o_carrier_id = carrier_id
            db.execute(
                "update order_line set ol_delivery_d = now() where ol_w_id = %s and ol_d_id = %s and ol_o_id = %s",
                (w_id, d_id, oldest.no_o_id),
            )
            total = db.execute(
                "select coalesce(sum(ol_amount), 0) from order_line "
                "where ol_w_id = %s and ol_d_id = %s and ol_o_id = %s",
                (w_id, d_id, oldest.no_o_id),
            ).scalar()
            customer = db.customer[w_id, d_id, order.o_c_id]
            customer.c_balance += total
            customer.c_delivery_cnt += 1
            delivered += 1
    return delivered


# Clause 2.8: how many of the items of the last 20 orders are short.
@db.transaction
def stock_level(w_id: int, d_id: int, threshold: int) -> int:
    following = db.district[w_id, d_id].d_next_o_id
    return db.execute(
        "select count(distinct s_i_id) from order_line join stock on s_w_id = %s and s_i_id = ol_i_id "
        "where ol_w_id = %s and ol_d_id = %s and ol_o_id between %s and %s and s_quantity < %s",
        (w_id, w_id, d_id, following - 20, following - 1, threshold),
    ).scalar()


CALLS = [
    (new_order, (1, 1, 1, [1, 2], [1, 1], [5, 3])),
    (payment, (1, 1, 1, 1, None, "last3", Decimal("12.50"))),
    (order_status, (1, 1, 1)),
    (delivery, (1, 7)),
    (stock_level, (1, 1, 50)),
]

if __name__ == "__main__":
    for function, arguments in CALLS:
        phase = next(line.strip() for line in function.explain().splitlines() if "Phase:" in line)
        print(f"{function.__name__}: {function(*arguments)} ({phase})")
