"""asyncpg against a server: arguments are the host and the port."""

import asyncio
import datetime
import decimal
import sys

import asyncpg


async def main():
    connection = await asyncpg.connect(host=sys.argv[1], port=int(sys.argv[2]), user="tester", database="fabius")
    await connection.execute("DROP TABLE IF EXISTS asyncpg_items")
    await connection.execute(
        "CREATE TABLE asyncpg_items (id bigint PRIMARY KEY, name varchar(40), price numeric(10, 2), made timestamp)"
    )
    made = datetime.datetime(2024, 5, 6, 7, 8, 9)
    status = await connection.execute(
        "INSERT INTO asyncpg_items VALUES ($1, $2, $3, $4)", 1, "one", decimal.Decimal("1.50"), made
    )
    assert status == "INSERT 0 1", status
    row = await connection.fetchrow("SELECT * FROM asyncpg_items WHERE id = $1", 1)
    assert tuple(row) == (1, "one", decimal.Decimal("1.50"), made), row

    await connection.executemany(
        "INSERT INTO asyncpg_items (id, name) VALUES ($1, $2)", [(number, f"n{number}") for number in range(2, 50)]
    )
    assert await connection.fetchval("SELECT count(*) FROM asyncpg_items") == 49

    async with connection.transaction():
        # A cursor is a portal that is run for some rows at a time.
        seen = 0
        async for row in connection.cursor("SELECT id FROM asyncpg_items ORDER BY id", prefetch=10):
            seen += 1
            assert row["id"] == seen
        assert seen == 49, seen

    try:
        async with connection.transaction():
            await connection.execute("UPDATE asyncpg_items SET name = 'gone' WHERE id = 2")
            raise KeyError("roll back")
    except KeyError:
        pass
    assert await connection.fetchval("SELECT name FROM asyncpg_items WHERE id = 2") == "n2"

    records = [(number, f"c{number}") for number in range(100, 200)]
    await connection.copy_records_to_table("asyncpg_items", records=records, columns=["id", "name"])
    assert await connection.fetchval("SELECT count(*) FROM asyncpg_items WHERE id >= 100") == 100

    try:
        await connection.execute("INSERT INTO asyncpg_items (id) VALUES (1)")
    except asyncpg.UniqueViolationError:
        pass
    else:
        raise AssertionError("a key twice")
    await connection.reset()
    await connection.execute("DROP TABLE asyncpg_items")
    await connection.close()


asyncio.run(main())
print("ok")
