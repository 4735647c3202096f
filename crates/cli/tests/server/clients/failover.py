"""psycopg 3 over failovers: commits numbers one after the other, wherever the leader is, and says each that is acknowledged."""

import sys
import psycopg

conninfo, last = sys.argv[1], int(sys.argv[2])
acknowledged = 0
while acknowledged < last:
    try:
        with psycopg.connect(conninfo, connect_timeout=2) as connection:
            query = "SELECT coalesce(max(number), 0) FROM ledger WHERE client = 1"
            there = connection.execute(query).fetchone()[0]
            connection.commit()
            assert there in (acknowledged, acknowledged + 1), f"{acknowledged} acknowledged, {there} there"
            acknowledged = there
            while acknowledged < last:
                with connection.transaction():
                    connection.execute("UPDATE hot SET total = total + 1 WHERE id = 1")
                    connection.execute("INSERT INTO ledger VALUES (1, %s)", (acknowledged + 1,))
                acknowledged += 1
                print(acknowledged, flush=True)
    except (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction) as error:
        print("again:", str(error).replace("\n", " "), flush=True)
