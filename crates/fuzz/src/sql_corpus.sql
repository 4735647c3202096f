SELECT * FROM items

SELECT id, name FROM items WHERE id = 1

SELECT i.name, count(*) AS n, sum(o.total) FROM items i JOIN orders o ON o.item = i.id WHERE o.paid GROUP BY i.name HAVING count(*) > 0 ORDER BY n DESC, 1 LIMIT 10 OFFSET 1

SELECT i.*, o.client FROM items AS i LEFT JOIN orders AS o ON i.id = o.item AND o.paid IS NOT TRUE ORDER BY i.id NULLS FIRST

SELECT DISTINCT ON (item) item, client, at FROM orders ORDER BY item, at DESC

SELECT id, price * qty AS worth, CASE WHEN qty > 5 THEN 'many' WHEN qty = 0 THEN 'none' ELSE 'few' END FROM items WHERE price BETWEEN 1 AND 100.5

SELECT coalesce(qty, 0) + 1, nullif(name, 'pen'), greatest(1, qty, 3), least(price, 2.5) FROM items

SELECT name FROM items WHERE name LIKE 'p%' OR name ILIKE '%N_' OR name ~ '^[a-c]' ORDER BY lower(name)

SELECT id FROM items WHERE id IN (1, 2, NULL) AND qty NOT IN (SELECT item FROM orders WHERE item IS NOT NULL)

SELECT name, (SELECT max(total) FROM orders WHERE item = items.id) FROM items WHERE EXISTS (SELECT 1 FROM orders WHERE item = items.id)

WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT sum(i), avg(i), min(i), max(i) FROM n

WITH paid AS (SELECT * FROM orders WHERE paid) SELECT item, row_number() OVER (PARTITION BY item ORDER BY id), lag(total) OVER w, sum(total) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM paid WINDOW w AS (ORDER BY id)

SELECT id FROM items UNION SELECT item FROM orders EXCEPT SELECT 3 INTERSECT ALL SELECT 2 ORDER BY 1

SELECT * FROM generate_series(1, 5) AS g (i) CROSS JOIN (VALUES (1, 'a'), (2, 'b')) AS v (n, t) WHERE g.i = v.n

SELECT substring('hello' FROM 2 FOR 3), upper('a') || 'b', length('xyz'), trim(BOTH 'x' FROM 'xax'), position('l' IN 'hello'), replace('aa', 'a', 'b'), split_part('a,b', ',', 2), lpad('1', 5, '0'), repeat('ab', 3), left('abc', -1), reverse('abc')

SELECT 7 / 2, 7 % 3, 7.0 / 2, -7 / 2, 2 ^ 10, abs(-5), round(2.567, 2), floor(-1.5), ceil(1.2), trunc(9.99, 1), sqrt(2), mod(10, 3), power(2, 3), 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 4

SELECT CAST('42' AS int) + '1'::int, 3.7::int, 'true'::boolean, 1::text, '2024-02-29'::date + 1, '12:34'::time, '1 day'::interval, ARRAY[1, 2, 3], '{1,2}'::int[]

SELECT now() > '2020-01-01', current_date - made, extract(year FROM made), date_trunc('month', at), at + interval '1 month 2 days', age(at, '2000-01-01'), to_char(at, 'YYYY-MM-DD HH24:MI:SS') FROM items JOIN orders ON item = items.id

SELECT data -> 'a' -> 0, data ->> 'a', data @> '{"a": [1]}', jsonb_build_object('k', note), to_jsonb(note), jsonb_array_length(data -> 'a') FROM notes

SELECT string_agg(name, ', ' ORDER BY id), array_agg(qty), bool_and(qty > 0), count(DISTINCT price), count(*) FILTER (WHERE qty = 0), stddev(qty) FROM items

SELECT 1 WHERE NULL IS NULL AND NOT (NULL = 1) IS TRUE AND 1 IS DISTINCT FROM NULL

SELECT id = ANY (ARRAY[1, 2]), id <> ALL ('{1,2}'), (id, qty) = (1, 10), ROW (1, 2) < ROW (1, 3) FROM items

SELECT * FROM items FOR UPDATE

SELECT name FROM cheap WHERE id < $1

SELECT note, at AT TIME ZONE 'UTC' FROM notes ORDER BY note COLLATE "C" DESC FETCH FIRST 2 ROWS ONLY

VALUES (1, 'a'), (2, NULL) ORDER BY 1 DESC

TABLE items

INSERT INTO items VALUES (10, 'cup', 3, 9.99, '2024-05-05')

INSERT INTO items (id, name) VALUES (11, 'bag'), (12, 'box'), (13, 'jar'), (14, 'can'), (15, 'pot') RETURNING *

INSERT INTO items (id, name, qty) VALUES (1, 'pen', 1) ON CONFLICT (id) DO UPDATE SET qty = items.qty + excluded.qty WHERE items.qty < 100 RETURNING id, qty

INSERT INTO items (id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING

INSERT INTO orders (item, client, total) SELECT id, 'c', price * 2 FROM items WHERE price IS NOT NULL

INSERT INTO orders (item) VALUES (99)

INSERT INTO notes SELECT name, now(), NULL FROM items WHERE id = $1

INSERT INTO notes DEFAULT VALUES

UPDATE items SET qty = qty - 1, price = price * 1.1 WHERE id = 1 AND qty >= 1

UPDATE items SET qty = DEFAULT, name = name || '!' WHERE name > 'c' RETURNING id, name AS called

UPDATE items SET qty = (SELECT count(*) FROM orders WHERE item = items.id), made = made + 1

UPDATE items SET price = o.total FROM orders o WHERE o.item = items.id AND o.total > 2

UPDATE items SET id = id + 100 WHERE id = 3

DELETE FROM orders WHERE at IS NULL OR total > 100 RETURNING *

DELETE FROM items USING orders WHERE orders.item = items.id AND orders.paid

DELETE FROM items WHERE id = 1

BEGIN; UPDATE items SET qty = qty + 1 WHERE id = 1; SAVEPOINT s; DELETE FROM items; ROLLBACK TO s; RELEASE s; COMMIT

BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY; SELECT count(*) FROM items; UPDATE items SET qty = 1; ROLLBACK

START TRANSACTION; INSERT INTO notes (note) VALUES ('x'); SELECT * FROM notes; COMMIT AND CHAIN; ABORT

CREATE TABLE extra (a int, b text DEFAULT 'x', c numeric(5, 2) CHECK (c > 0), d serial, PRIMARY KEY (a, b))

CREATE TABLE IF NOT EXISTS child (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item int REFERENCES items ON DELETE SET NULL ON UPDATE CASCADE, UNIQUE (item))

CREATE TABLE copied AS SELECT id, name FROM items WHERE qty > 0

CREATE TEMPORARY TABLE t (a int) ON COMMIT DROP

CREATE UNIQUE INDEX CONCURRENTLY items_unique ON items (name, qty DESC)

CREATE OR REPLACE VIEW cheap AS SELECT id, name, price AS cost FROM items WHERE price < 5

ALTER TABLE items ADD COLUMN colour varchar(20) DEFAULT 'red', ALTER COLUMN qty SET NOT NULL

ALTER TABLE items ALTER COLUMN qty TYPE bigint USING qty * 2

ALTER TABLE items RENAME COLUMN name TO called; SELECT called FROM items

ALTER TABLE orders DROP CONSTRAINT orders_item_fkey, DROP COLUMN paid CASCADE

ALTER TABLE notes ADD PRIMARY KEY (note)

DROP TABLE IF EXISTS orders, nothing CASCADE; SELECT * FROM orders

DROP INDEX items_name; DROP VIEW cheap; DROP SEQUENCE numbers

TRUNCATE items, orders RESTART IDENTITY CASCADE

CREATE SCHEMA other; CREATE TABLE other.t (id int PRIMARY KEY); INSERT INTO other.t VALUES (1); SET search_path TO other, public; SELECT * FROM t; DROP SCHEMA other CASCADE

SELECT nextval('numbers'), currval('numbers'), setval('numbers', 10), lastval()

CREATE SEQUENCE s START 5 INCREMENT BY -1 MINVALUE -10 MAXVALUE 5 CYCLE; SELECT nextval('s') FROM generate_series(1, 20)

CREATE FUNCTION add(a int, b int DEFAULT 1) RETURNS int LANGUAGE plpgsql AS $$ DECLARE c int := 0; BEGIN c := a + b; IF c > 10 THEN RAISE EXCEPTION 'too large: %', c USING ERRCODE = '22003'; END IF; RETURN c; END $$; SELECT add(1, 2), add(5); SELECT add(10, 10)

CREATE PROCEDURE buy(i int, n int) LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN SELECT * INTO STRICT r FROM items WHERE id = i; IF r.qty < n THEN RAISE EXCEPTION 'sold out'; END IF; UPDATE items SET qty = qty - n WHERE id = i; INSERT INTO orders (item, total) VALUES (i, n); EXCEPTION WHEN no_data_found THEN RAISE NOTICE 'no item %', i; END $$; CALL buy(1, 1); CALL buy(9, 1)

CREATE FUNCTION names() RETURNS TABLE (n text) LANGUAGE plpgsql AS $$ DECLARE i record; BEGIN FOR i IN SELECT name FROM items ORDER BY id LOOP n := i.name; RETURN NEXT; END LOOP; FOR k IN 1..3 LOOP EXIT WHEN k = 2; END LOOP; WHILE false LOOP NULL; END LOOP; END $$; SELECT * FROM names()

CREATE FUNCTION twice(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x * 2'; SELECT twice(qty) FROM items

DO $$ BEGIN UPDATE items SET qty = 7 WHERE id = 1; PERFORM 1; END $$

PREPARE p (int) AS SELECT name FROM items WHERE id = $1; EXECUTE p (1); DEALLOCATE p

BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM items ORDER BY id; FETCH 2 FROM c; MOVE BACKWARD 1 IN c; FETCH ALL FROM c; CLOSE c; END

COPY items (id, name) FROM STDIN WITH (FORMAT csv, HEADER false, NULL 'x')

COPY (SELECT * FROM items WHERE qty > 1) TO STDOUT WITH CSV HEADER DELIMITER ';'

COPY notes TO STDOUT

SET statement_timeout = '5s'; SHOW statement_timeout; RESET ALL; SHOW ALL

SET LOCAL fabius.concurrency = 'pessimistic'; BEGIN; SET LOCAL lock_timeout = 100; SELECT * FROM items WHERE id = 1 FOR SHARE; COMMIT

LOCK TABLE items IN ACCESS EXCLUSIVE MODE

EXPLAIN SELECT * FROM items WHERE id = 1

EXPLAIN (ANALYZE, COSTS OFF) UPDATE items SET qty = 1 WHERE id = 2

SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1, a.attnum

SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'

SELECT pg_backend_pid(), version(), current_user, current_setting('search_path'), 'items'::regclass::oid, pg_get_indexdef(indexrelid) FROM pg_index

COMMENT ON TABLE items IS 'things'; SELECT obj_description('items'::regclass, 'pg_class')

VACUUM ANALYZE items; ANALYZE; CHECKPOINT; DISCARD ALL

GRANT SELECT ON items TO public

LISTEN x; NOTIFY x, 'y'

MERGE INTO items USING orders ON items.id = orders.item WHEN MATCHED THEN UPDATE SET qty = 0 WHEN NOT MATCHED THEN DO NOTHING

SELECT U&'\0041', E'a\nb', $tag$quoted$tag$, B'101', X'1F', 'it''s', "items"."id" FROM items

SELECT /* a /* nested */ comment */ 1 -- and the rest
