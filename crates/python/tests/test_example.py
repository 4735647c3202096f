"""The ticket sale of `examples/ticket_sale` sells each ticket once, however many want it."""

import asyncio
import collections
import importlib.util
import pathlib
import tempfile
import unittest

import fabius

try:
    import fastapi
    import httpx
except ImportError:
    fastapi = httpx = None

SERVICE = pathlib.Path(__file__).parents[3] / "examples/ticket_sale/service.py"

#: Clients at once.
CLIENTS = 64

#: How long the requests of a test may take together: whoever gets no ticket is told so, and waits for nobody.
SECONDS_MAX = 20


@unittest.skipIf(fastapi is None, "there is no FastAPI or no httpx: `cargo xtask clients` installs them")
class TicketSale(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        spec = importlib.util.spec_from_file_location("ticket_sale", SERVICE)
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)

    def visit(self, steps):
        """Opens the database, gives the steps a client of the service, and closes the database."""

        async def run(app):
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://sale") as client:
                return await asyncio.wait_for(steps(client), SECONDS_MAX)

        with fabius.open(self.folder) as db:
            return asyncio.run(run(self.module.sale(db)))

    def test_the_last_ticket_goes_to_one_of_many(self):
        async def rush(client):
            event = (await client.post("/events", json={"name": "Last Night", "seats": 1})).json()["id"]
            answers = await asyncio.gather(
                *(order(client, event, f"buyer {n}", f"order-{n:04}") for n in range(CLIENTS))
            )
            return event, answers

        event, answers = self.visit(rush)
        codes = collections.Counter(answer.status_code for answer in answers)
        self.assertEqual(codes, {201: 1, 409: CLIENTS - 1})
        refused = {answer.json()["detail"] for answer in answers if answer.status_code == 409}
        self.assertEqual(refused, {"Last Night is sold out"})
        sold = next(answer for answer in answers if answer.status_code == 201)

        async def afterwards(client):
            kept = (await client.get(f"/events/{event}/orders")).json()
            left = (await client.get(f"/events/{event}")).json()["left"]
            number = [answer is sold for answer in answers].index(True)
            again = await order(client, event, f"buyer {number}", f"order-{number:04}")
            return kept, left, again

        kept, left, again = self.visit(afterwards)
        self.assertEqual((kept, left), ([sold.json()], 0))
        self.assertEqual((again.status_code, again.json()), (201, sold.json()))

    def test_an_order_that_is_sent_twice_is_one_order(self):
        async def steps(client):
            event = (await client.post("/events", json={"name": "Matinee", "seats": CLIENTS})).json()["id"]
            # Every second request is the one before it, sent again before that is answered.
            numbers = [n // 2 for n in range(CLIENTS)]
            answers = await asyncio.gather(*(order(client, event, f"buyer {n}", f"order-{n:04}") for n in numbers))
            self.assertEqual({answer.status_code for answer in answers}, {201})
            self.assertEqual([a.json() for a in answers[::2]], [a.json() for a in answers[1::2]])
            self.assertEqual({answer.json()["seat"] for answer in answers}, set(range(1, CLIENTS // 2 + 1)))
            self.assertEqual((await client.get(f"/events/{event}")).json()["left"], CLIENTS // 2)

        self.visit(steps)

    def test_what_is_wrong_has_a_status(self):
        async def steps(client):
            event = (await client.post("/events", json={"name": "Gala", "seats": 2})).json()["id"]
            self.assertEqual((await order(client, event, "Ada", "order-of-ada")).json()["seat"], 1)
            for answer, code, detail in (
                (await order(client, 99, "Ada", "another-order"), 404, "there is no row of events with id = 99"),
                (await client.get("/events/99"), 404, "there is no event 99"),
                (await order(client, event, "Bob", "order-of-ada"), 409, "this key is that of another order"),
            ):
                self.assertEqual((answer.status_code, answer.json()["detail"]), (code, detail))
            unnamed = await client.post(f"/events/{event}/orders", json={"buyer": "Ada"})
            self.assertEqual(unnamed.status_code, 422)
            self.assertEqual((await client.get(f"/events/{event}")).json()["left"], 1)

        self.visit(steps)


def order(client, event, buyer, key):
    """A request for a ticket."""
    return client.post(f"/events/{event}/orders", json={"buyer": buyer}, headers={"Idempotency-Key": key})


if __name__ == "__main__":
    unittest.main()
