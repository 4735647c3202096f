> SELECT upper(s), left(s, 2), trim(both ' ' from s), position('a' in s), replace(s, 'a', $1) FROM t WHERE id = 1

procedure statement(p1: int, p2: int, p3: text, p4: text, p5: text, p6: text) -> list of (c1: text null, c2: text null, c3: text null, c4: int null, c5: text null) {
    var result_1: list of (c1: text null, c2: text null, c3: text null, c4: int null, c5: text null) = []
    if exists t[p1] {
        append result_1 (upper(t[p1].s), left(t[p1].s, p2), trim(t[p1].s, p3), strpos(t[p1].s, p4), replace(t[p1].s, p5, p6))
    }
    return result_1
}
arguments Constant(Int(1))
          Constant(Int(2))
          Constant(Text(" "))
          Constant(Text("a"))
          Constant(Text("a"))
          Parameter(0)
parameters text

> SELECT round(price, 1), floor(price), extract(year from moment), moment + interval '1 month', date_trunc('day', moment) FROM kinds, stock WHERE kinds.id = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' AND stock.id = 1

procedure statement(p1: bytea, p2: int, p3: text) -> list of (c1: numeric(38, 1), c2: numeric(38, 0), c3: numeric(38, 0) null, c4: timestamp null, c5: timestamp null) {
    var result_1: list of (c1: numeric(38, 1), c2: numeric(38, 0), c3: numeric(38, 0) null, c4: timestamp null, c5: timestamp null) = []
    if exists kinds[p1] {
        if exists stock[p2] {
            let moment_4: timestamp null = kinds[p1].moment
            append result_1 (round(stock[p2].price, 1), floor(stock[p2].price), if moment_4 = timestamp 'infinity' then (extract('year', moment_4)::double precision * '0'::double precision + 'inf'::double precision)::numeric(38, 0) else (if moment_4 = timestamp '-infinity' then (extract('year', moment_4)::double precision * '0'::double precision + '-inf'::double precision)::numeric(38, 0) else extract('year', moment_4)), add_months(kinds[p1].moment, 1), date_trunc(p3, kinds[p1].moment))
        }
    }
    return result_1
}
arguments Constant(Bytea([160, 238, 188, 153, 156, 11, 78, 248, 187, 109, 107, 185, 189, 56, 10, 17]))
          Constant(Int(1))
          Constant(Text("day"))

> SELECT id FROM t WHERE s LIKE '%a_b%' OR s ILIKE $1

procedure statement(p1: text, p2: text) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    for row_4 in t where like(row_4.s, p1) or ilike(row_4.s, p2) {
        append result_1 (row_4.id)
    }
    return result_1
}
arguments Constant(Text("%a_b%"))
          Parameter(0)
parameters text

> SELECT now() - interval '1 day', current_date, nextval('orders_number_seq'), random() < 0.5, gen_random_uuid()

procedure statement(now1: timestamp, p2: bigint, p3: double precision, p4: numeric(18, 1), p5: bytea) -> list of (c1: timestamp, c2: date, c3: bigint, c4: boolean, c5: bytea) {
    var result_1: list of (c1: timestamp, c2: date, c3: bigint, c4: boolean, c5: bytea) = []
    append result_1 (add_micros(now1, (-86400000000)::bigint), now1::date, p2, p3 < p4, p5)
    return result_1
}
arguments TransactionTime
          NextValue(ObjectName { schema: "public", name: "orders_number_seq" })
          Random
          Constant(Numeric(Decimal { mantissa: 5, scale: 1 }))
          RandomUuid

> SELECT v::text, s::int, '5'::bigint, 1.5::int, cast($1 as numeric(10,2)) FROM t WHERE id = 1

procedure statement(p1: int, p2: bigint, p3: int, p4: numeric(38, 10)) -> list of (c1: text, c2: int null, c3: bigint, c4: int, c5: numeric(10, 2)) {
    var result_1: list of (c1: text, c2: int null, c3: bigint, c4: int, c5: numeric(10, 2)) = []
    if exists t[p1] {
        append result_1 (t[p1].v::text, t[p1].s::int, p2, p3, p4::numeric(10, 2))
    }
    return result_1
}
arguments Constant(Int(1))
          Constant(BigInt(5))
          Constant(Int(2))
          Parameter(0)
parameters numeric

> SELECT price / 3 FROM stock WHERE id = 1

no program

> SELECT v / 2, price * 2, v % 2, -v, w + 1.5 FROM t JOIN stock USING (id) WHERE id = 1

procedure statement(p1: int, p2: int, p3: int, p4: int, p5: numeric(18, 1)) -> list of (c1: int, c2: numeric(38, 2), c3: int, c4: int, c5: numeric(21, 1) null) {
    var result_1: list of (c1: int, c2: numeric(38, 2), c3: int, c4: int, c5: numeric(21, 1) null) = []
    if exists t[p1] {
        let key_4: int = t[p1].id
        if exists stock[key_4] {
            append result_1 (t[p1].v / p2, stock[key_4].price * p3, t[p1].v % p4, -t[p1].v, t[p1].w + p5)
        }
    }
    return result_1
}
arguments Constant(Int(1))
          Constant(Int(2))
          Constant(Int(2))
          Constant(Int(2))
          Constant(Numeric(Decimal { mantissa: 15, scale: 1 }))

> SELECT v BETWEEN 1 AND 3, v IN (1, 2), w IS NULL, s IS NOT DISTINCT FROM 'x', NOT (v = 1), w IS DISTINCT FROM v FROM t WHERE id = 1

procedure statement(p1: int, p2: int, p3: int, p4: int, p5: int, p6: text, p7: int) -> list of (c1: boolean, c2: boolean, c3: boolean, c4: boolean, c5: boolean, c6: boolean) {
    var result_1: list of (c1: boolean, c2: boolean, c3: boolean, c4: boolean, c5: boolean, c6: boolean) = []
    if exists t[p1] {
        append result_1 (t[p1].v >= p2 and t[p1].v <= p3, t[p1].v = p4 or t[p1].v = p5, t[p1].w is null, t[p1].s is not distinct from p6, not t[p1].v = p7, t[p1].w is distinct from t[p1].v)
    }
    return result_1
}
arguments Constant(Int(1))
          Constant(Int(1))
          Constant(Int(3))
          Constant(Int(1))
          Constant(Int(2))
          Constant(Text("x"))
          Constant(Int(1))

> SELECT nullif(v, 0), greatest(v, w, 3), least(1, $1), concat(s, v, 'x'), s || v FROM t WHERE id = 1

procedure statement(p1: int, p2: int, p3: bigint, p4: int, p5: int, p6: text, p7: text, p8: text, p9: text, p10: text) -> list of (c1: int null, c2: bigint, c3: int, c4: text, c5: text null) {
    var result_1: list of (c1: int null, c2: bigint, c3: int, c4: text, c5: text null) = []
    if exists t[p1] {
        append result_1 (if t[p1].v = p2 then null::int else t[p1].v, greatest(t[p1].v::bigint, t[p1].w, p3), least(p5, p4), p7 || coalesce(t[p1].s, p6) || coalesce(t[p1].v::text, p8) || coalesce(p9, p10), t[p1].s || t[p1].v::text)
    }
    return result_1
}
arguments Constant(Int(1))
          Constant(Int(0))
          Constant(BigInt(3))
          Parameter(0)
          Constant(Int(1))
          Constant(Text(""))
          Constant(Text(""))
          Constant(Text(""))
          Constant(Text("x"))
          Constant(Text(""))
parameters integer

> SELECT v + s FROM t

42883 at 8: operator does not exist: integer + text

> SELECT v + '1', '1' + v FROM t WHERE id = 1

procedure statement(p1: int, p2: int, p3: int) -> list of (c1: int, c2: int) {
    var result_1: list of (c1: int, c2: int) = []
    if exists t[p1] {
        append result_1 (t[p1].v + p2, p3 + t[p1].v)
    }
    return result_1
}
arguments Constant(Int(1))
          Constant(Int(1))
          Constant(Int(1))

> SELECT CASE WHEN v = 1 THEN 'a' ELSE 2 END FROM t WHERE id = 1

22P02 at 29: invalid input syntax for type integer: "a"

