"""A ticket sale: events, orders, and as many buyers at once as want the last ticket.

pip install fastapi uvicorn
python service.py           # http://127.0.0.1:8000/docs; the database is in ./ticket-sale-data
"""

from typing import Annotated

import fabius
from fastapi import FastAPI, Header, HTTPException, Path, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

SCHEMA = """
    create table if not exists events (
        id bigint generated always as identity primary key,
        name text not null,
        seats bigint not null,
        sold bigint not null default 0,
        check (sold between 0 and seats)
    );
    create table if not exists orders (
        key text primary key,
        event bigint not null references events,
        seat bigint not null,
        buyer text not null,
        unique (event, seat)
    );
"""


class NewEvent(BaseModel):
    name: str
    seats: int = Field(gt=0, le=1_000_000)


class Event(BaseModel):
    id: int
    name: str
    seats: int
    left: int


class NewOrder(BaseModel):
    buyer: str


class Order(BaseModel):
    event: int
    seat: int
    buyer: str


#: The number of an event; what no column can hold is refused with 422.
EventId = Annotated[int, Path(ge=1, lt=2**63)]

#: The client's name for its order: whoever has had no answer sends the same again under the same key.
Key = Annotated[str, Header(alias="Idempotency-Key", min_length=8, max_length=200)]


def sale(db: fabius.Database) -> FastAPI:
    """The service over an open database, in which it makes its tables unless they are there."""
    db.script(SCHEMA)

    @db.transaction
    def reserve(event: int, buyer: str, key: str) -> int:
        for order in db.orders.where(key=key):
            fabius.require(order.event == event and order.buyer == buyer, "this key is that of another order")
            return order.seat
        row = db.events[event]
        fabius.require(row.sold < row.seats, f"{row.name} is sold out")
        row.sold += 1
        seat = row.sold
        db.orders.insert(key=key, event=event, seat=seat, buyer=buyer)
        return seat

    app = FastAPI(title="Ticket sale")

    # Endpoints are `def`, not `async def`: they wait for the disk in threads, of which FastAPI has 40.

    @app.post("/events", status_code=201)
    def post_event(new: NewEvent) -> Event:
        made = db.execute("insert into events (name, seats) values (%s, %s) returning id", (new.name, new.seats))
        return Event(id=made.scalar(), name=new.name, seats=new.seats, left=new.seats)

    @app.get("/events/{event}")
    def get_event(event: EventId) -> Event:
        row = db.execute("select id, name, seats, seats - sold as left from events where id = %s", (event,)).first()
        if row is None:
            raise HTTPException(404, f"there is no event {event}")
        return Event(**row._asdict())

    @app.post("/events/{event}/orders", status_code=201)
    def post_order(event: EventId, new: NewOrder, key: Key) -> Order:
        return Order(event=event, seat=reserve(event, new.buyer, key), buyer=new.buyer)

    @app.get("/events/{event}/orders")
    def get_orders(event: EventId) -> list[Order]:
        rows = db.execute("select event, seat, buyer from orders where event = %s order by seat", (event,))
        return [Order(**row._asdict()) for row in rows]

    # What ends a transaction ends the request: nothing of it has happened.

    @app.exception_handler(fabius.Aborted)
    def refused(request: Request, error: fabius.Aborted) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 409)

    @app.exception_handler(fabius.RowNotFound)
    def not_found(request: Request, error: fabius.RowNotFound) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 404)

    return app


if __name__ == "__main__":
    import uvicorn

    with fabius.open("ticket-sale-data") as database:
        uvicorn.run(sale(database))
