# The usual round: a table, rows, a transaction.

> CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL, qty int DEFAULT 5)
> INSERT INTO items VALUES (1, 'a', 10), (2, 'b', 20)
> INSERT INTO items (id, name) VALUES (3, 'c')
> SELECT * FROM items WHERE id = 1
> SELECT * FROM items ORDER BY id
> UPDATE items SET qty = qty - 1 WHERE id = 1 AND qty >= 1
> INSERT INTO items VALUES (1, 'again', 1)
> INSERT INTO items (id) VALUES (9)
> BEGIN
> UPDATE items SET qty = qty + 100 WHERE id = 2
> SAVEPOINT a
> DELETE FROM items WHERE id = 1
> SELECT count(*) FROM items
> ROLLBACK TO a
> COMMIT
> SELECT id, qty FROM items ORDER BY id
> BEGIN
> SELECT * FROM nothing
> SELECT 1
> COMMIT
> CREATE TABLE items (id int)
> CREATE TABLE IF NOT EXISTS items (id int)
> CREATE TABLE log (at serial, what text)
> INSERT INTO log (what) VALUES ('x'), ('y') RETURNING at
> SELECT nextval('log_at_seq')
> SELECT currval('log_at_seq')
> SELECT setval('log_at_seq', 100)
> INSERT INTO log (what) VALUES ('z') RETURNING *
> ALTER TABLE log ADD PRIMARY KEY (at)
> ALTER TABLE log ADD COLUMN size bigint DEFAULT 7
> SELECT * FROM log ORDER BY at
> CREATE UNIQUE INDEX ON log (size)
> CREATE INDEX log_what ON log (what)
> SELECT at FROM log WHERE what = 'y'
> TRUNCATE log RESTART IDENTITY
> SELECT count(*) FROM log
> INSERT INTO log (what) VALUES ('new') RETURNING at
> DROP TABLE log, items
> SELECT * FROM items
> SET timezone = 'Europe/Berlin'
> SHOW timezone
> SHOW search_path
> SET LOCAL x.y = '1'
> SELEC 1
> COMMIT
