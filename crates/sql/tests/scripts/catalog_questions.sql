# What programs that look into a database ask.

> CREATE TABLE parts (id int PRIMARY KEY, kind text NOT NULL, code varchar(10))
CREATE TABLE
> CREATE INDEX parts_by_kind ON parts (kind, code)
CREATE INDEX

# Operators by their full names; vectors of numbers without braces.

> SELECT relname FROM pg_catalog.pg_class c WHERE c.relname OPERATOR(pg_catalog.~) '^parts' AND c.relkind OPERATOR(pg_catalog.=) ANY (array['r', 'i']) ORDER BY 1
relname
parts
parts_by_kind
parts_pkey
SELECT 3
> SELECT indkey, indoption, indkey::text AS text, indkey[0] AS first FROM pg_index WHERE indexrelid = 'parts_by_kind'::regclass
indkey | indoption | text | first
2 3 | 0 0 | 2 3 | 2
SELECT 1
> SELECT tableoid::regclass AS relation, nspname FROM pg_namespace WHERE nspname = 'public'
relation | nspname
pg_namespace | public
SELECT 1
> SELECT count(acldefault('n', nspowner)) > 5 AS are_many FROM pg_namespace
are_many
f
SELECT 1
> SELECT option_name, option_value FROM pg_options_to_table(ARRAY['a=1', 'b=x=y']) ORDER BY 1
option_name | option_value
a | 1
b | x=y
SELECT 2
> SELECT count(*) FROM pg_transform
count
0
SELECT 1

# An escape of one's own.

> INSERT INTO parts VALUES (1, 'a_b', '10%'), (2, 'axb', '100')
INSERT 0 2
> SELECT id FROM parts WHERE kind LIKE 'a/_b' ESCAPE '/'
id
1
SELECT 1
> SELECT id FROM parts WHERE code || '' NOT LIKE '10!%' || '' ESCAPE '!'
id
2
SELECT 1
> SELECT 'a\b' LIKE 'a\b' ESCAPE '' AS plain
plain
t
SELECT 1

# A limit behind the lock.

> SELECT id FROM parts WHERE id = (SELECT id FROM parts ORDER BY id FOR UPDATE OF parts LIMIT 1)
id
1
SELECT 1

# A cast in parentheses.

> ALTER TABLE parts ALTER COLUMN code TYPE varchar(300) USING ("code"::varchar(300))
ALTER TABLE
> DROP TABLE parts
DROP TABLE
