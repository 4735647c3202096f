//! Statements of any size: every production of the grammar that repeats, and every one that nests.

/// A statement of so many parts.
pub type Shape = (&'static str, fn(usize) -> String);

/// What the shapes are about.
pub const TABLES: &str = "CREATE TABLE t (a boolean, b integer, c integer, s text);
    INSERT INTO t VALUES (true, 1, 2, 'x'), (false, 2, 3, 'y'), (null, null, null, null);
    CREATE TABLE u (i integer); CREATE TABLE w (i integer); CREATE TABLE big (b integer);
    INSERT INTO big SELECT g FROM generate_series(1, 20000) AS g;
    CREATE TABLE k (i integer PRIMARY KEY, j integer); CREATE INDEX k_j ON k (j); INSERT INTO k VALUES (1, 1), (2, 1)";

/// PostgreSQL's longest list of what is selected.
const TARGETS: usize = 1600;
/// Tables that are joined at most, with room for what else stands there.
const TABLES_MAX: usize = 200;

fn list(count: usize, between: &str, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(between)
}

fn same(count: usize, between: &str, part: &str) -> String {
    vec![part; count].join(between)
}

/// `1`, `2`, ...
fn numbers(count: usize) -> String {
    list(count, ",", |i| i.to_string())
}

/// Different values of each row.
fn sums(count: usize) -> String {
    list(count, ",", |i| format!("b+{i}"))
}

fn all_of(count: usize) -> String {
    same(count, " AND ", "a")
}

fn nested(count: usize, (begin, inner, end): (&str, &str, &str)) -> String {
    format!("{}{inner}{}", begin.repeat(count), end.repeat(count))
}

/// Conditions, wherever they may stand.
pub const CONDITIONS: &[Shape] = &[
    ("AND without a table", |n| format!("SELECT 1 WHERE {}", same(n, " AND ", "true"))),
    ("AND", |n| format!("SELECT b FROM t WHERE {}", all_of(n))),
    ("AND of comparisons", |n| {
        format!("SELECT b FROM t WHERE {}", list(n, " AND ", |i| format!("b <> {i}")))
    }),
    ("OR", |n| format!("SELECT b FROM t WHERE {}", list(n, " OR ", |i| format!("b = {i}")))),
    ("AND of OR", |n| format!("SELECT b FROM t WHERE {}", list(n, " AND ", |i| format!("(b = {i} OR a)")))),
    ("AND NOT", |n| format!("SELECT b FROM t WHERE a AND {}", same(n, " AND ", "NOT a"))),
    ("BETWEEN", |n| {
        format!("SELECT 1 FROM t WHERE {}", list(n, " OR ", |i| format!("b BETWEEN {i} AND {i}+1")))
    }),
    ("LIKE", |n| format!("SELECT 1 FROM t WHERE {}", list(n, " OR ", |i| format!("s LIKE 'x{i}%'")))),
    ("EXISTS", |n| format!("SELECT b FROM t WHERE {}", same(n, " AND ", "EXISTS (SELECT 1)"))),
    ("EXISTS of a table", |n| {
        format!("SELECT b FROM t WHERE {}", same(n, " AND ", "EXISTS (SELECT 1 FROM t y WHERE y.b = t.b)"))
    }),
    ("IN of subqueries", |n| format!("SELECT b FROM t WHERE {}", same(n, " AND ", "b IN (SELECT b FROM t)"))),
    ("UPDATE", |n| format!("UPDATE t SET b = b WHERE {}", all_of(n))),
    ("DELETE", |n| format!("DELETE FROM t WHERE NOT a AND {}", all_of(n))),
    ("JOIN ON", |n| format!("SELECT 1 FROM t x JOIN t y ON {}", same(n, " AND ", "x.a"))),
    ("JOIN ON of both", |n| {
        let all = list(n, " AND ", |i| format!("x.b <> y.b + {i}"));
        format!("SELECT 1 FROM t x JOIN t y ON x.b = y.b AND {all}")
    }),
    ("HAVING", |n| {
        format!("SELECT b FROM t GROUP BY b HAVING {}", list(n, " AND ", |i| format!("sum(b) <> {i}")))
    }),
    ("FILTER", |n| {
        format!("SELECT sum(b) FILTER (WHERE {}) FROM t", list(n, " AND ", |i| format!("b <> {i}")))
    }),
    ("view", |n| format!("CREATE VIEW v{n} AS SELECT b FROM t WHERE {}", all_of(n))),
    ("reading the view", |n| format!("SELECT * FROM v{n}")),
    ("EXPLAIN", |n| format!("EXPLAIN SELECT b FROM t WHERE {}", all_of(n))),
    ("SQL function", |n| {
        let all = all_of(n);
        format!(
            "CREATE FUNCTION f{n}() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM t WHERE {all} $$"
        )
    }),
    ("calling the SQL function", |n| format!("SELECT f{n}()")),
    ("PL/pgSQL function", |n| {
        let head = format!("CREATE FUNCTION g{n}(a boolean) RETURNS boolean LANGUAGE plpgsql");
        format!("{head} AS $$ BEGIN RETURN {}; END $$", all_of(n))
    }),
    ("calling the PL/pgSQL function", |n| format!("SELECT g{n}(true)")),
    ("COPY", |n| format!("COPY (SELECT b FROM t WHERE {}) TO STDOUT", all_of(n))),
    ("cursor", |n| {
        format!("BEGIN; DECLARE c CURSOR FOR SELECT b FROM t WHERE {}; FETCH c; ROLLBACK", all_of(n))
    }),
    ("PREPARE", |n| format!("PREPARE p{n} AS SELECT b FROM t WHERE {}", all_of(n))),
    ("EXECUTE", |n| format!("EXECUTE p{n}")),
    ("in a transaction", |n| format!("BEGIN; SELECT b FROM t WHERE {}; ROLLBACK", all_of(n))),
    ("CHECK", |n| {
        format!("CREATE TABLE k{n} (b integer, CHECK ({}))", list(n, " AND ", |i| format!("b <> {i}")))
    }),
    ("INSERT with the CHECK", |n| format!("INSERT INTO k{n} VALUES (-1)")),
];

/// Lists of values and expressions.
pub const LISTS: &[Shape] = &[
    ("row <", |n| format!("SELECT 1 FROM t WHERE ({}) < ({})", same(n, ",", "b"), numbers(n))),
    ("row =", |n| format!("SELECT 1 FROM t WHERE ({}) = ({})", same(n, ",", "b"), numbers(n))),
    ("row IN", |n| format!("SELECT 1 FROM t WHERE (b, c) IN ({})", list(n, ",", |i| format!("({i},{i})")))),
    ("row IN of expressions", |n| {
        format!("SELECT 1 FROM t WHERE (b, c) IN ({})", list(n, ",", |i| format!("({i}+b,{i})")))
    }),
    ("IN", |n| format!("SELECT 1 FROM t WHERE b IN ({})", numbers(n))),
    ("IN of expressions", |n| format!("SELECT 1 FROM t WHERE c IN ({})", sums(n))),
    ("NOT IN", |n| format!("SELECT 1 FROM t WHERE b NOT IN ({})", numbers(n))),
    ("ANY", |n| format!("SELECT 1 FROM t WHERE b = ANY (ARRAY[{}])", numbers(n))),
    ("VALUES", |n| format!("VALUES {}", list(n, ",", |i| format!("({i})")))),
    ("VALUES of expressions", |n| format!("VALUES {}", list(n, ",", |i| format!("({i}+1)")))),
    ("wide VALUES", |n| format!("VALUES ({})", numbers(n))),
    ("INSERT", |n| format!("INSERT INTO u VALUES {}", list(n, ",", |i| format!("({i})")))),
    ("INSERT of expressions", |n| {
        format!("INSERT INTO u VALUES {}", list(n, ",", |i| format!("(length(md5({i}::text)))")))
    }),
    ("wide INSERT", |n| format!("INSERT INTO u VALUES ({})", numbers(n))),
    ("join with VALUES", |n| {
        let rows = list(n, ",", |i| format!("({i},{i})"));
        format!("SELECT count(*) FROM (VALUES {rows}) v(x, y) JOIN t ON x = b")
    }),
    ("UPDATE FROM VALUES", |n| {
        let rows = list(n, ",", |i| format!("({i},{i})"));
        format!("UPDATE t SET c = y FROM (VALUES {rows}) v(x, y) WHERE x = b")
    }),
    ("DELETE USING VALUES", |n| {
        let rows = list(n, ",", |i| format!("({i})"));
        format!("DELETE FROM u USING (VALUES {rows}) v(x) WHERE x = i")
    }),
    ("ARRAY", |n| format!("SELECT ARRAY[{}]", numbers(n))),
    ("ARRAY of expressions", |n| format!("SELECT ARRAY[{}] FROM t", sums(n))),
    ("ARRAY for many rows", |n| format!("SELECT ARRAY[{}] FROM big", sums(n))),
    ("ARRAY of aggregates", |n| format!("SELECT ARRAY[{}] FROM t", list(n, ",", |i| format!("sum(b+{i})")))),
    ("unnest", |n| format!("SELECT unnest(ARRAY[{}]) FROM t", sums(n))),
    ("CASE", |n| format!("SELECT CASE {} END FROM t", list(n, " ", |i| format!("WHEN b = {i} THEN {i}")))),
    ("CASE of a value", |n| {
        format!("SELECT CASE b {} END FROM t", list(n, " ", |i| format!("WHEN {i} THEN {i}")))
    }),
    ("CASE as a condition", |n| {
        format!("SELECT 1 FROM t WHERE CASE {} END", list(n, " ", |i| format!("WHEN b = {i} THEN a")))
    }),
    ("coalesce", |n| format!("SELECT coalesce({}) FROM t", list(n, ",", |i| format!("nullif(b,{i})")))),
    ("greatest", |n| format!("SELECT greatest({}) FROM t", sums(n))),
    ("concat", |n| format!("SELECT concat({}) FROM t", sums(n))),
    ("unknown function", |n| format!("SELECT nosuch({})", numbers(n))),
    ("jsonb_build_array", |n| format!("SELECT jsonb_build_array({}) FROM t", sums(n))),
    ("SELECT", |n| format!("SELECT {}", numbers(n))),
    ("SELECT of expressions", |n| format!("SELECT {} FROM t", sums(n.min(TARGETS)))),
    ("aggregates", |n| format!("SELECT {} FROM t", list(n.min(TARGETS), ",", |i| format!("sum(b+{i})")))),
    ("subqueries", |n| format!("SELECT {}", same(n.min(TARGETS), ",", "(SELECT max(b) FROM t)"))),
    ("correlated subqueries", |n| {
        let one = |i| format!("(SELECT max(y.b) FROM t y WHERE y.b < t.b + {i})");
        format!("SELECT {} FROM t", list(n.min(TARGETS), ",", one))
    }),
    ("set-returning functions", |n| format!("SELECT {}", same(n.min(TARGETS), ",", "generate_series(1, 2)"))),
    ("*", |n| format!("SELECT {} FROM t", same(n, ",", "*"))),
    ("ORDER BY", |n| format!("SELECT b FROM t ORDER BY {}", sums(n))),
    ("ORDER BY within the bound", |n| format!("SELECT b FROM t ORDER BY {}", sums(n.min(TARGETS)))),
    ("ORDER BY of one column", |n| format!("SELECT b FROM t ORDER BY {}", same(n, ",", "b"))),
    ("GROUP BY", |n| format!("SELECT 1 FROM t GROUP BY {}", sums(n))),
    ("GROUP BY within the bound", |n| format!("SELECT 1 FROM t GROUP BY {}", sums(n.min(TARGETS)))),
    ("GROUPING SETS", |n| {
        format!("SELECT 1 FROM t GROUP BY GROUPING SETS ({})", list(n, ",", |i| format!("(b+{i})")))
    }),
    ("CUBE", |n| format!("SELECT 1 FROM t GROUP BY CUBE ({})", sums(n))),
    ("ROLLUP", |n| format!("SELECT 1 FROM t GROUP BY ROLLUP ({})", sums(n))),
    ("DISTINCT ON", |n| format!("SELECT DISTINCT ON ({}) b FROM t", sums(n))),
    ("windows", |n| {
        let one = |i| format!("sum(b) OVER (ORDER BY b+{i})");
        format!("SELECT {} FROM t", list(n.min(TARGETS), ",", one))
    }),
    ("few windows", |n| {
        let one = |i| format!("sum(b) OVER (ORDER BY b+{i})");
        format!("SELECT {} FROM t", list(n.min(100), ",", one))
    }),
    ("one window", |n| {
        let one = |i| format!("sum(b+{i}) OVER (ORDER BY b)");
        format!("SELECT {} FROM t", list(n.min(TARGETS), ",", one))
    }),
    ("PARTITION BY", |n| format!("SELECT sum(b) OVER (PARTITION BY {}) FROM t", sums(n))),
    ("WINDOW", |n| format!("SELECT 1 FROM t WINDOW {}", list(n, ",", |i| format!("w{i} AS (ORDER BY b)")))),
    ("ORDER BY of an aggregate", |n| format!("SELECT string_agg(s, ',' ORDER BY {}) FROM t", sums(n))),
    ("parameters", |n| format!("SELECT {}", list(n, ",", |i| format!("${}", i + 1)))),
    ("commas", |n| format!("SELECT {}", ",".repeat(n))),
];

/// Tables, queries and definitions.
pub const RELATIONS: &[Shape] = &[
    ("tables", |n| format!("SELECT 1 FROM {}", list(n, ",", |i| format!("t t{i}")))),
    ("tables within the bound", |n| {
        format!("SELECT 1 FROM {}", list(n.min(TABLES_MAX), ",", |i| format!("t t{i}")))
    }),
    ("JOIN within the bound", |n| {
        let one = |i| format!("JOIN t t{} ON t{i}.b = t{}.b", i + 1, i + 1);
        format!("SELECT 1 FROM t t0 {}", list(n.min(TABLES_MAX), " ", one))
    }),
    ("JOIN", |n| format!("SELECT 1 FROM t {}", list(n, " ", |i| format!("JOIN t t{i} ON t.b = t{i}.b")))),
    ("LEFT JOIN along an index", |n| {
        let one = |i| format!("LEFT JOIN k k{i} ON k{i}.j = k.i");
        format!("SELECT 1 FROM k {} WHERE k.i = 2", list(n.min(40), " ", one))
    }),
    ("LEFT JOIN LATERAL along an index", |n| {
        let one = |i| format!("LEFT JOIN LATERAL (SELECT 1 FROM k WHERE j = o.i LIMIT 2) l{i} ON true");
        format!("SELECT 1 FROM k o {} WHERE o.i = 2", list(n.min(40), " ", one))
    }),
    ("UNION ALL along a key", |n| {
        let one = |i| format!("SELECT j FROM k WHERE i = {i}");
        format!("SELECT 1 FROM ({}) u LEFT JOIN k ON k.j = u.j", list(n.min(200), " UNION ALL ", one))
    }),
    ("GROUP BY along a key", |n| {
        let keys = list(n.min(1000), ", ", |i| format!("j + {i}"));
        format!("SELECT count(*) FROM k WHERE i = 1 GROUP BY {keys}")
    }),
    ("CROSS JOIN", |n| format!("SELECT 1 FROM t {}", list(n, " ", |i| format!("CROSS JOIN t t{i}")))),
    ("NATURAL JOIN", |n| format!("SELECT 1 FROM t {}", list(n, " ", |i| format!("NATURAL JOIN t t{i}")))),
    ("USING", |n| format!("SELECT 1 FROM t x JOIN t y USING ({})", same(n, ",", "b"))),
    ("LATERAL", |n| {
        let one = |i| format!("CROSS JOIN LATERAL (SELECT t.b + {i} AS z{i}) l{i}");
        format!("SELECT 1 FROM t {}", list(n.min(TABLES_MAX), " ", one))
    }),
    ("WITH", |n| format!("WITH {} SELECT 1", list(n, ",", |i| format!("c{i} AS (SELECT 1 AS x)")))),
    ("WITH, each of the one before", |n| {
        let one = |i| format!("c{} AS (SELECT x+1 AS x FROM c{i})", i + 1);
        format!("WITH c0 AS (SELECT 1 AS x), {} SELECT * FROM c{n}", list(n, ",", one))
    }),
    ("WITH, each twice of the one before", |n| {
        let one = |i| format!("c{} AS (SELECT p.x+1 AS x FROM c{i} p, c{i} q)", i + 1);
        format!("WITH c0 AS (SELECT 1 AS x), {} SELECT * FROM c{n}", list(n, ",", one))
    }),
    ("WITH, a few twice of the one before", |_| {
        let one = |i| format!("c{} AS (SELECT p.x+1 AS x FROM c{i} p, c{i} q)", i + 1);
        format!("WITH c0 AS (SELECT 1 AS x), {} SELECT * FROM c25", list(25, ",", one))
    }),
    ("UNION ALL", |n| list(n, " UNION ALL ", |i| format!("SELECT {i}"))),
    ("UNION", |n| list(n, " UNION ", |i| format!("SELECT {i}"))),
    ("INTERSECT", |n| list(n, " INTERSECT ", |i| format!("SELECT {i}"))),
    ("columns", |n| format!("CREATE TABLE columns{n} ({})", list(n, ",", |i| format!("c{i} integer")))),
    ("columns with defaults", |n| {
        format!("CREATE TABLE defaults{n} ({})", list(n, ",", |i| format!("c{i} integer DEFAULT {i}")))
    }),
    ("CHECKs", |n| {
        format!("CREATE TABLE checks{n} (b integer, {})", list(n, ",", |i| format!("CHECK (b <> {i})")))
    }),
    ("CHECKs of a column", |n| {
        format!("CREATE TABLE column{n} (b integer {})", same(n, " ", "CHECK (b > 0)"))
    }),
    ("UNIQUE", |n| format!("CREATE TABLE unique{n} (a integer, {})", same(n, ",", "UNIQUE (a)"))),
    ("FOREIGN KEY", |n| {
        format!("CREATE TABLE foreign{n} (a integer, {})", same(n, ",", "FOREIGN KEY (a) REFERENCES u (i)"))
    }),
    ("PRIMARY KEY", |n| format!("CREATE TABLE key{n} (a integer, PRIMARY KEY ({}))", same(n, ",", "a"))),
    ("INDEX", |n| format!("CREATE INDEX ON t ({})", same(n, ",", "b"))),
    ("ALTER TABLE", |n| format!("ALTER TABLE w {}", list(n, ",", |i| format!("ADD COLUMN c{i} integer")))),
    ("DROP TABLE", |n| format!("DROP TABLE IF EXISTS {}", list(n, ",", |i| format!("nosuch{i}")))),
    ("TRUNCATE", |n| format!("TRUNCATE {}", same(n, ",", "u"))),
    ("LOCK TABLE", |n| format!("BEGIN; LOCK TABLE {}; ROLLBACK", same(n, ",", "t"))),
    ("SET of columns", |n| format!("UPDATE t SET {}", same(n, ",", "b = b"))),
    ("SET of a row", |n| format!("UPDATE t SET ({}) = ({})", same(n, ",", "b"), same(n, ",", "b"))),
    ("RETURNING", |n| format!("UPDATE t SET b = b RETURNING {}", sums(n))),
    ("RETURNING within the bound", |n| format!("UPDATE t SET b = b RETURNING {}", sums(n.min(TARGETS)))),
    ("columns of INSERT", |n| format!("INSERT INTO t ({}) VALUES ({})", same(n, ",", "b"), numbers(n))),
    ("ON CONFLICT", |n| format!("INSERT INTO u VALUES (1) ON CONFLICT ({}) DO NOTHING", same(n, ",", "i"))),
    ("COPY of columns", |n| format!("COPY t ({}) TO STDOUT", same(n, ",", "b"))),
    ("statements of a block", |n| {
        let all = list(n, " ", |i| format!("x := x + {i};"));
        format!("DO $$ DECLARE x integer := 0; BEGIN {all} END $$")
    }),
    ("ELSIF", |n| {
        let all = list(n, " ", |i| format!("ELSIF x = {i} THEN x := 1;"));
        format!("DO $$ DECLARE x integer := -2; BEGIN IF x = -1 THEN NULL; {all} END IF; END $$")
    }),
    ("DECLARE", |n| {
        format!("DO $$ DECLARE {} BEGIN NULL; END $$", list(n, " ", |i| format!("x{i} integer := {i};")))
    }),
    ("SQL in a block", |n| {
        let all = list(n, " ", |i| format!("UPDATE u SET i = i WHERE i = -{i};"));
        format!("DO $$ BEGIN {all} END $$")
    }),
    ("parameters of a function", |n| {
        let all = list(n, ",", |i| format!("p{i} integer"));
        format!("CREATE FUNCTION h{n}({all}) RETURNS integer LANGUAGE sql AS 'SELECT 1'")
    }),
    ("search_path", |n| {
        format!("SET search_path = {}; RESET search_path", list(n, ",", |i| format!("s{i}")))
    }),
    ("statements", |n| same(n.min(30_000), ";", "SELECT 1")),
];

/// What nests, and what is as deep as it is long.
pub const NESTS: &[Shape] = &[
    ("parentheses", |n| format!("SELECT {}", nested(n, ("(", "1", ")")))),
    ("parentheses that are not closed", |n| format!("SELECT {}", "(".repeat(n))),
    ("calls", |n| format!("SELECT {} FROM t", nested(n, ("abs(", "b", ")")))),
    ("nested subqueries", |n| format!("SELECT {}", nested(n, ("(SELECT ", "1", ")")))),
    ("nested FROM", |n| format!("SELECT * FROM {}", nested(n, ("(SELECT * FROM ", "t", ") x")))),
    ("nested CASE", |n| format!("SELECT {} FROM t", nested(n, ("CASE WHEN a THEN ", "1", " END")))),
    ("nested ARRAY", |n| format!("SELECT {}", nested(n, ("ARRAY[", "1", "]")))),
    ("nested JOIN", |n| format!("SELECT 1 FROM {}", nested(n, ("(", "t", " CROSS JOIN t t1)")))),
    ("nested EXISTS", |n| format!("SELECT {}", nested(n, ("EXISTS (SELECT 1 WHERE ", "true", ")")))),
    ("nested IN", |n| format!("SELECT {}", nested(n, ("1 IN (SELECT ", "1", ")")))),
    ("nested AND and OR", |n| format!("SELECT 1 FROM t WHERE {}", nested(n, ("a AND (a OR (", "a", "))")))),
    ("nested CAST", |n| format!("SELECT {}", nested(n, ("CAST(", "1", " AS integer)")))),
    ("nested WITH", |n| nested(n, ("WITH a AS (", "SELECT 1", ") SELECT * FROM a"))),
    ("NOT", |n| format!("SELECT {}a FROM t", "NOT ".repeat(n))),
    ("minus", |n| format!("SELECT {}b FROM t", "- ".repeat(n))),
    ("nested blocks", |n| format!("DO $$ {} $$", nested(n, ("BEGIN ", "NULL;", " END;")))),
    ("nested IF", |n| format!("DO $$ BEGIN {} END $$", nested(n, ("IF true THEN ", "NULL;", " END IF;")))),
    ("nested loops", |n| {
        format!("DO $$ BEGIN {} END $$", nested(n, ("WHILE false LOOP ", "NULL;", " END LOOP;")))
    }),
    ("nested JSON", |n| format!("SELECT '{}'::jsonb", nested(n, ("[", "", "]")))),
    ("nested comments", |n| format!("{} SELECT 1", nested(n, ("/*", "", "*/")))),
    ("dimensions", |n| format!("SELECT 1::integer{}", "[]".repeat(n))),
    ("+", |n| format!("SELECT {} FROM t", same(n, " + ", "b"))),
    ("||", |n| format!("SELECT {}", same(n, " || ", "'x'"))),
    ("::", |n| format!("SELECT 1{}", "::integer".repeat(n))),
    ("IS NULL", |n| format!("SELECT 1{}", " IS NULL".repeat(n))),
    ("->", |n| format!("SELECT '{{}}'::jsonb{}", "->'a'".repeat(n))),
    ("=", |n| format!("SELECT {}", same(n, " = ", "1"))),
    ("many long sums", |n| {
        format!("SELECT {} FROM t", list((n / 200).clamp(1, TARGETS), ",", |_| same(200, "+", "b")))
    }),
    ("name", |n| format!("SELECT \"{}\"", "x".repeat(n))),
    ("parts of a name", |n| format!("SELECT {}", same(n, ".", "x"))),
    ("string", |n| format!("SELECT '{}'", "x".repeat(n * 100))),
    ("string without an end", |n| format!("SELECT '{}", "x".repeat(n))),
    ("number", |n| format!("SELECT {}", "9".repeat(n))),
    ("number of a parameter", |n| format!("SELECT ${}", "1".repeat(n))),
    ("comment", |n| format!("COMMENT ON TABLE t IS '{}'", "x".repeat(n))),
];
