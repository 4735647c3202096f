"""psycopg 3 against a server: argument 1 is the connection string."""

import datetime
import decimal
import sys
import uuid

import psycopg

with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    connection.execute("DROP TABLE IF EXISTS psycopg_items")
    connection.execute(
        "CREATE TABLE psycopg_items (id integer PRIMARY KEY, name text NOT NULL, price numeric(10, 2), made date,"
        " seen timestamptz, code uuid, raw bytea, good boolean, ratio double precision)"
    )
    row = (
        1,
        "naïve 'quoted'",
        decimal.Decimal("12.50"),
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.timezone.utc),
        uuid.UUID("12345678-1234-5678-1234-567812345678"),
        b"\x00\xff",
        True,
        -0.1,
    )
    connection.execute("INSERT INTO psycopg_items VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)", row)
    for binary in (False, True):
        cursor = connection.cursor(binary=binary)
        got = cursor.execute("SELECT * FROM psycopg_items WHERE id = %s", (1,)).fetchone()
        assert got == row, (binary, got)
        assert cursor.description[1].name == "name"

    # Named statements come after five uses.
    for number in range(2, 20):
        connection.execute("INSERT INTO psycopg_items (id, name) VALUES (%s, %s)", (number, f"n{number}"))
    assert connection.execute("SELECT count(*) FROM psycopg_items").fetchone() == (19,)

    with connection.transaction():
        assert connection.execute("UPDATE psycopg_items SET name = 'x' WHERE id < 4").rowcount == 3
        try:
            with connection.transaction():
                connection.execute("INSERT INTO psycopg_items (id, name) VALUES (1, 'again')")
        except psycopg.errors.UniqueViolation as error:
            assert error.diag.sqlstate == "23505", error.diag.sqlstate
        else:
            raise AssertionError("a key twice")
    assert connection.execute("SELECT name FROM psycopg_items WHERE id = 3").fetchone() == ("x",)

    cursor = connection.cursor()
    with cursor.copy("COPY psycopg_items (id, name) FROM STDIN") as copy:
        for number in range(100, 200):
            copy.write_row((number, f"tab\t{number}"))
    assert cursor.rowcount == 100, cursor.rowcount
    with cursor.copy("COPY (SELECT id, name FROM psycopg_items WHERE id >= 100 ORDER BY id) TO STDOUT") as copy:
        rows = list(copy.rows())
    assert len(rows) == 100 and rows[0] == ("100", "tab\t100"), rows[:2]

    with connection.pipeline():
        cursors = [connection.execute("SELECT id FROM psycopg_items WHERE id = %s", (n,)) for n in (1, 2, 3)]
    assert [cursor.fetchone() for cursor in cursors] == [(1,), (2,), (3,)]

    # A cursor of the server is described as a portal.
    with connection.transaction(), connection.cursor(name="walk") as walk:
        walk.execute("SELECT id FROM psycopg_items WHERE id < 20 ORDER BY id")
        assert walk.description[0].name == "id"
        assert [len(walk.fetchmany(8)) for _ in range(3)] == [8, 8, 3]

    cursor.executemany("UPDATE psycopg_items SET good = %s WHERE id = %s", [(True, 100), (False, 101)])
    try:
        connection.execute("SELECT * FROM nowhere")
    except psycopg.errors.UndefinedTable as error:
        assert "nowhere" in str(error)
    else:
        raise AssertionError("a table that is not there")
    connection.execute("DROP TABLE psycopg_items")
print("ok")
