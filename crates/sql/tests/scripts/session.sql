# The usual round: a table, rows, a transaction.

> CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL, qty int DEFAULT 5)
CREATE TABLE
> INSERT INTO items VALUES (1, 'a', 10), (2, 'b', 20)
INSERT 0 2
> INSERT INTO items (id, name) VALUES (3, 'c')
INSERT 0 1
> SELECT * FROM items WHERE id = 1
id | name | qty
1 | a | 10
SELECT 1
> SELECT * FROM items ORDER BY id
id | name | qty
1 | a | 10
2 | b | 20
3 | c | 5
SELECT 3
> UPDATE items SET qty = qty - 1 WHERE id = 1 AND qty >= 1
UPDATE 1
> INSERT INTO items VALUES (1, 'again', 1)
23505 duplicate key value violates unique constraint "items_pkey"
> INSERT INTO items (id) VALUES (9)
23502 null value in column "name" of relation "items" violates not-null constraint
> BEGIN
BEGIN
> UPDATE items SET qty = qty + 100 WHERE id = 2
UPDATE 1
> SAVEPOINT a
SAVEPOINT
> DELETE FROM items WHERE id = 1
DELETE 1
> SELECT count(*) FROM items
count
2
SELECT 1
> ROLLBACK TO a
ROLLBACK
> COMMIT
COMMIT
> SELECT id, qty FROM items ORDER BY id
id | qty
1 | 9
2 | 120
3 | 5
SELECT 3
> BEGIN
BEGIN
> SELECT * FROM nothing
42P01 relation "nothing" does not exist
> SELECT 1
25P02 current transaction is aborted, commands ignored until end of transaction block
> COMMIT
ROLLBACK
> CREATE TABLE items (id int)
42P07 relation "items" already exists
> CREATE TABLE IF NOT EXISTS items (id int)
CREATE TABLE
NOTICE: relation "items" already exists, skipping
> CREATE TABLE log (at serial, what text)
CREATE TABLE
> INSERT INTO log (what) VALUES ('x'), ('y') RETURNING at
at
1
2
INSERT 0 2
> SELECT nextval('log_at_seq')
nextval
3
SELECT 1
> SELECT currval('log_at_seq')
currval
3
SELECT 1
> SELECT setval('log_at_seq', 100)
setval
100
SELECT 1
> INSERT INTO log (what) VALUES ('z') RETURNING *
at | what
101 | z
INSERT 0 1
> ALTER TABLE log ADD PRIMARY KEY (at)
ALTER TABLE
> ALTER TABLE log ADD COLUMN size bigint DEFAULT 7
ALTER TABLE
> SELECT * FROM log ORDER BY at
at | what | size
1 | x | 7
2 | y | 7
101 | z | 7
SELECT 3
> CREATE UNIQUE INDEX ON log (size)
23505 could not create unique index "log_size_idx"
> CREATE INDEX log_what ON log (what)
CREATE INDEX
> SELECT at FROM log WHERE what = 'y'
at
2
SELECT 1
> TRUNCATE log RESTART IDENTITY
TRUNCATE TABLE
> SELECT count(*) FROM log
count
0
SELECT 1
> INSERT INTO log (what) VALUES ('new') RETURNING at
at
1
INSERT 0 1
> DROP TABLE log, items
DROP TABLE
> SELECT * FROM items
42P01 relation "items" does not exist
> SET timezone = 'Europe/Berlin'
SET
> SHOW timezone
TimeZone
Europe/Berlin
SHOW 1
> SHOW search_path
search_path
"$user", public
SHOW 1
> SET LOCAL x.y = '1'
SET
WARNING: SET LOCAL can only be used in transaction blocks
> SELEC 1
42601 syntax error at or near "SELEC"
> COMMIT
COMMIT
WARNING: there is no transaction in progress
