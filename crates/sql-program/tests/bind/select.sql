> SELECT * FROM t WHERE id = $1

procedure statement(p1: int) -> list of (c1: int, c2: int, c3: bigint null, c4: text null) {
    var result_1: list of (c1: int, c2: int, c3: bigint null, c4: text null) = []
    if exists t[p1] {
        append result_1 (t[p1].id, t[p1].v, t[p1].w, t[p1].s)
    }
    return result_1
}
arguments Parameter(0)
parameters integer

> SELECT v, s FROM t WHERE id IN (1, 2, $1)

procedure statement(rows1: list of (f1: int)) -> list of (c1: int, c2: text null) {
    var result_1: list of (c1: int, c2: text null) = []
    for key_4 in rows1 {
        if exists t[key_4.f1] {
            append result_1 (t[key_4.f1].v, t[key_4.f1].s)
        }
    }
    return result_1
}
arguments Set([[Constant(Int(1))], [Constant(Int(2))], [Parameter(0)]])
parameters integer

> SELECT id FROM t WHERE id = ANY($1)

procedure statement(rows1: list of (f1: int)) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    for key_4 in rows1 {
        if exists t[key_4.f1] {
            append result_1 (t[key_4.f1].id)
        }
    }
    return result_1
}
arguments Elements(0)
parameters integer[]

> SELECT id FROM t WHERE v = 3 AND s = 'x' ORDER BY id LIMIT 5

procedure statement(p1: bigint, p2: int, p3: text) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    for row_4 in t by t_v[p2] where row_4.s = p3 limit p1 {
        append result_1 (row_4.id)
    }
    return result_1
}
arguments Constant(BigInt(5))
          Constant(Int(3))
          Constant(Text("x"))

> SELECT id FROM t ORDER BY v DESC LIMIT 3 OFFSET 2

procedure statement(p1: bigint, p2: bigint) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    var taken_2: bigint = 0::bigint
    var skipped_3: bigint = 0::bigint
    require coalesce(p1 >= 0, true), "LIMIT must not be negative", sqlstate '2201W', detail null::text
    require coalesce(p2 >= 0, true), "OFFSET must not be negative", sqlstate '2201X', detail null::text
    for row_4 in t by t_v descending limit p1 + p2 {
        if skipped_3 < coalesce(p2, 0) {
            skipped_3 += 1::bigint
        } else {
            if coalesce(taken_2 < p1, true) {
                taken_2 += 1::bigint
                append result_1 (row_4.id)
            }
        }
    }
    return result_1
}
arguments Constant(BigInt(3))
          Constant(BigInt(2))

> SELECT id FROM t ORDER BY s

no program

> SELECT count(*), sum(v), max(w) FROM t WHERE id > 3

procedure statement(p1: int) -> list of (c1: bigint, c2: bigint null, c3: bigint null) {
    var result_1: list of (c1: bigint, c2: bigint null, c3: bigint null) = []
    var sum_2: bigint = 0::bigint
    var sum_3: bigint null = null
    var sum_4: bigint null = null
    for row_5 in t[p1 <..] {
        sum_2 += 1::bigint
        sum_3 = (coalesce(sum_3, 0::bigint) + row_5.v::bigint)::bigint
        sum_4 = greatest(sum_4, row_5.w)
    }
    append result_1 (sum_2, sum_3, sum_4)
    return result_1
}
arguments Constant(Int(3))

> SELECT max(id) FROM t

procedure statement() -> list of (c1: int null) {
    var result_1: list of (c1: int null) = []
    var sum_2: int null = null
    for row_3 in t descending limit 1::bigint {
        sum_2 = greatest(sum_2, row_3.id)
    }
    append result_1 (sum_2)
    return result_1
}

> SELECT count(DISTINCT v) FROM t

procedure statement() -> list of (c1: bigint) {
    var result_1: list of (c1: bigint) = []
    var sum_2: list of (c1: int) = []
    for row_3 in t {
        append sum_2 (row_3.v)
    }
    append result_1 (count(distinct sum_2.c1))
    return result_1
}

> SELECT t.id, o.number FROM t JOIN orders o ON t.id = o.number

procedure statement() -> list of (c1: int, c2: bigint) {
    var result_1: list of (c1: int, c2: bigint) = []
    for row_4 in orders {
        let key_5: int null = if row_4.number between -2147483648 and 2147483647 then row_4.number::int else null::int
        if exists t[key_5] {
            append result_1 (t[key_5].id, row_4.number)
        }
    }
    return result_1
}

> SELECT o.number, s.price FROM orders o JOIN stock s ON s.id = o.item WHERE o.shop = 1

procedure statement(p1: int) -> list of (c1: bigint, c2: numeric(12, 2)) {
    var result_1: list of (c1: bigint, c2: numeric(12, 2)) = []
    for row_4 in orders[p1] {
        if exists stock[row_4.item] {
            append result_1 (row_4.number, stock[row_4.item].price)
        }
    }
    return result_1
}
arguments Constant(Int(1))

> SELECT t.id, o.number FROM t LEFT JOIN orders o ON o.shop = t.id AND o.number = 1 WHERE t.id < 5

procedure statement(p1: int, p2: bigint) -> list of (c1: int, c2: bigint null) {
    var result_1: list of (c1: int, c2: bigint null) = []
    for row_4 in t[..< p1] {
        append result_1 (row_4.id, orders[row_4.id, p2]?.number)
    }
    return result_1
}
arguments Constant(Int(5))
          Constant(BigInt(1))

> SELECT id, (SELECT count(*) FROM orders WHERE shop = t.id) FROM t WHERE id = 1

procedure statement(p1: int) -> list of (c1: int, c2: bigint null) {
    var result_1: list of (c1: int, c2: bigint null) = []
    if exists t[p1] {
        var value_4: bigint null = null
        var rows_5: bigint = 0
        var sum_6: bigint = 0::bigint
        let key_7: int = t[p1].id
        for row_8 in orders[key_7] {
            sum_6 += 1::bigint
        }
        rows_5 += 1::bigint
        value_4 = sum_6
        append result_1 (t[p1].id, value_4)
    }
    return result_1
}
arguments Constant(Int(1))

> SELECT id FROM t WHERE EXISTS (SELECT 1 FROM stock WHERE stock.id = t.v)

procedure statement() -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    for row_8 in t {
        var found_9: boolean = false
        if exists stock[row_8.v] {
            found_9 = true
        }
        if found_9 {
            append result_1 (row_8.id)
        }
    }
    return result_1
}

> SELECT 1, 'a', NULL, now(), $1::int + 2

procedure statement(p1: int, p2: text, now3: timestamp, p4: int, p5: int) -> list of (c1: int, c2: text, c3: text null, c4: timestamp, c5: int) {
    var result_1: list of (c1: int, c2: text, c3: text null, c4: timestamp, c5: int) = []
    append result_1 (p1, p2, null::text, now3, p4 + p5)
    return result_1
}
arguments Constant(Int(1))
          Constant(Text("a"))
          TransactionTime
          Parameter(0)
          Constant(Int(2))
parameters integer

> SELECT id FROM t WHERE s LIKE 'ab%' AND v IS DISTINCT FROM 4

procedure statement(p1: text, p2: int) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    for row_4 in t where substring(row_4.s, 1, 2) = p1 and row_4.v <> p2 {
        append result_1 (row_4.id)
    }
    return result_1
}
arguments Constant(Text("ab"))
          Constant(Int(4))

> SELECT CASE WHEN v > 0 THEN 'plus' ELSE 'minus' END AS sign, coalesce(w, 0) FROM t WHERE id = 1 FOR UPDATE

procedure statement(p1: int, p2: int, p3: text, p4: text, p5: bigint) -> list of (c1: text, c2: bigint) {
    var result_1: list of (c1: text, c2: bigint) = []
    if exists t[p1] {
        append result_1 (if t[p1].v > p2 then p3 else p4, coalesce(t[p1].w, p5))
    }
    return result_1
}
arguments Constant(Int(1))
          Constant(Int(0))
          Constant(Text("plus"))
          Constant(Text("minus"))
          Constant(BigInt(0))

> SELECT id FROM t WHERE v = 'x'

22P02 at 28: invalid input syntax for type integer: "x"

> SELECT id FROM t WHERE s = 5

42883 at 24: operator does not exist: text = integer

> SELECT nosuch FROM t

42703 at 8: column "nosuch" does not exist

> SELECT id FROM t GROUP BY id

no program

> SELECT id FROM t WHERE (id = 1 OR id = 2)

procedure statement(rows1: list of (f1: int)) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    for key_4 in rows1 {
        if exists t[key_4.f1] {
            append result_1 (t[key_4.f1].id)
        }
    }
    return result_1
}
arguments Set([[Constant(Int(1))], [Constant(Int(2))]])

> SELECT shop FROM orders WHERE (shop, number) IN ((1, 2), (3, 4))

procedure statement(rows1: list of (f1: int, f2: bigint)) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    for key_4 in rows1 {
        if exists orders[key_4.f1, key_4.f2] {
            append result_1 (orders[key_4.f1, key_4.f2].shop)
        }
    }
    return result_1
}
arguments Set([[Constant(Int(1)), Constant(BigInt(2))], [Constant(Int(3)), Constant(BigInt(4))]])

> SELECT day + 1, moment + interval '1 day', day - day FROM kinds WHERE id = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'

procedure statement(p1: bytea, p2: int) -> list of (c1: date null, c2: timestamp null, c3: int null) {
    var result_1: list of (c1: date null, c2: timestamp null, c3: int null) = []
    if exists kinds[p1] {
        append result_1 (kinds[p1].day + p2, add_micros(kinds[p1].moment, 86400000000::bigint), kinds[p1].day - kinds[p1].day)
    }
    return result_1
}
arguments Constant(Bytea([160, 238, 188, 153, 156, 11, 78, 248, 187, 109, 107, 185, 189, 56, 10, 17]))
          Constant(Int(1))

> SELECT moment + (- interval '1 day'), moment - interval '1 day' FROM kinds WHERE id = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'

procedure statement(p1: bytea) -> list of (c1: timestamp null, c2: timestamp null) {
    var result_1: list of (c1: timestamp null, c2: timestamp null) = []
    if exists kinds[p1] {
        append result_1 (add_micros(kinds[p1].moment, (-86400000000)::bigint), add_micros(kinds[p1].moment, (-86400000000)::bigint))
    }
    return result_1
}
arguments Constant(Bytea([160, 238, 188, 153, 156, 11, 78, 248, 187, 109, 107, 185, 189, 56, 10, 17]))

> SELECT c FROM kinds WHERE small = $1 AND flag

procedure statement(p1: smallint) -> list of (c1: char(4) null) {
    var result_1: list of (c1: char(4) null) = []
    for row_4 in kinds where row_4.small = p1 and row_4.flag {
        append result_1 (row_4.c)
    }
    return result_1
}
arguments Parameter(0)
parameters smallint

> SELECT id FROM t WHERE v = 3 ORDER BY id DESC LIMIT 1

procedure statement(p1: bigint, p2: int) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    for row_4 in t by t_v[p2] descending limit p1 {
        append result_1 (row_4.id)
    }
    return result_1
}
arguments Constant(BigInt(1))
          Constant(Int(3))

> SELECT id FROM t WHERE id = $1 LIMIT 1

procedure statement(p1: bigint, p2: int) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    var taken_2: bigint = 0::bigint
    require coalesce(p1 >= 0, true), "LIMIT must not be negative", sqlstate '2201W', detail null::text
    if exists t[p2] {
        if coalesce(taken_2 < p1, true) {
            taken_2 += 1::bigint
            append result_1 (t[p2].id)
        }
    }
    return result_1
}
arguments Constant(BigInt(1))
          Parameter(0)
parameters integer

> SELECT id FROM t WHERE v > 3 OFFSET 2

procedure statement(p1: bigint, p2: int) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    var skipped_3: bigint = 0::bigint
    require coalesce(p1 >= 0, true), "OFFSET must not be negative", sqlstate '2201X', detail null::text
    for row_4 in t by t_v[p2 <..] {
        if skipped_3 < coalesce(p1, 0) {
            skipped_3 += 1::bigint
        } else {
            append result_1 (row_4.id)
        }
    }
    return result_1
}
arguments Constant(BigInt(2))
          Constant(Int(3))

> SELECT sum(w) FROM t WHERE v = 1 HAVING count(*) > 2

procedure statement(p1: int, p2: int) -> list of (c1: numeric(38, 0) null) {
    var result_1: list of (c1: numeric(38, 0) null) = []
    var sum_2: numeric(38, 0) null = null
    var sum_3: bigint = 0::bigint
    for row_4 in t by t_v[p1] {
        if row_4.w is not null {
            sum_2 = (coalesce(sum_2, 0::numeric(38, 0)) + row_4.w::numeric(38, 0))::numeric(38, 0)
        }
        sum_3 += 1::bigint
    }
    if sum_3 > p2 {
        append result_1 (sum_2)
    }
    return result_1
}
arguments Constant(Int(1))
          Constant(Int(2))

> SELECT id FROM t WHERE v IN (SELECT qty FROM stock WHERE id < 3)

no program

> SELECT a.id FROM t a, t b WHERE a.id = 1 AND b.id = a.v

procedure statement(p1: int) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    if exists t[p1] {
        let key_4: int = t[p1].v
        if exists t[key_4] {
            append result_1 (t[p1].id)
        }
    }
    return result_1
}
arguments Constant(Int(1))

> SELECT v FROM t WHERE id IN (SELECT number FROM orders WHERE shop = $1)

procedure statement(p1: int) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    var found_4: list of (f1: int) = []
    for row_7 in orders[p1] {
        let key_8: int null = if row_7.number between -2147483648 and 2147483647 then row_7.number::int else null::int
        if key_8 is not null {
            append found_4 (coalesce(key_8, 0::int))
        }
    }
    var keys_9: list of (f1: int) = []
    sort found_4 by f1
    var last_11: int null = null::int
    for key_10 in found_4 {
        if key_10.f1 is distinct from last_11 {
            last_11 = key_10.f1
            append keys_9 (key_10.f1)
        }
    }
    for key_12 in keys_9 {
        if exists t[key_12.f1] {
            append result_1 (t[key_12.f1].v)
        }
    }
    return result_1
}
arguments Parameter(0)
parameters integer

> SELECT s FROM t WHERE EXISTS (SELECT FROM orders o WHERE o.shop = 7 AND o.number = t.id)

procedure statement(p1: int) -> list of (c1: text null) {
    var result_1: list of (c1: text null) = []
    var found_4: list of (f1: int) = []
    for row_7 in orders[p1] {
        let key_8: int null = if row_7.number between -2147483648 and 2147483647 then row_7.number::int else null::int
        if key_8 is not null {
            append found_4 (coalesce(key_8, 0::int))
        }
    }
    var keys_9: list of (f1: int) = []
    sort found_4 by f1
    var last_11: int null = null::int
    for key_10 in found_4 {
        if key_10.f1 is distinct from last_11 {
            last_11 = key_10.f1
            append keys_9 (key_10.f1)
        }
    }
    for key_12 in keys_9 {
        if exists t[key_12.f1] {
            append result_1 (t[key_12.f1].s)
        }
    }
    return result_1
}
arguments Constant(Int(7))

> SELECT v FROM t WHERE t.s = 'x' AND id IN (SELECT number FROM orders o WHERE shop = 4 AND EXISTS (SELECT 1 FROM stock s WHERE s.id = o.item))

procedure statement(p1: int, p2: text) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    var found_4: list of (f1: int) = []
    for row_7 in orders[p1] {
        var found_8: boolean = false
        if exists stock[row_7.item] {
            found_8 = true
        }
        if found_8 {
            let key_11: int null = if row_7.number between -2147483648 and 2147483647 then row_7.number::int else null::int
            if key_11 is not null {
                append found_4 (coalesce(key_11, 0::int))
            }
        }
    }
    var keys_12: list of (f1: int) = []
    sort found_4 by f1
    var last_14: int null = null::int
    for key_13 in found_4 {
        if key_13.f1 is distinct from last_14 {
            last_14 = key_13.f1
            append keys_12 (key_13.f1)
        }
    }
    for key_15 in keys_12 {
        if exists t[key_15.f1] {
            if t[key_15.f1].s = p2 {
                append result_1 (t[key_15.f1].v)
            }
        }
    }
    return result_1
}
arguments Constant(Int(4))
          Constant(Text("x"))

> SELECT o.number, s.code FROM orders o JOIN stock s ON s.id = o.item ORDER BY o.shop DESC, o.number DESC LIMIT 5

procedure statement(p1: bigint) -> list of (c1: bigint, c2: varchar(10) null) {
    var result_1: list of (c1: bigint, c2: varchar(10) null) = []
    for row_4 in orders where row_4.item is not null descending limit p1 {
        if exists stock[row_4.item] {
            append result_1 (row_4.number, stock[row_4.item].code)
        }
    }
    return result_1
}
arguments Constant(BigInt(5))

> SELECT l.amount, o.note, s.code FROM lines l JOIN orders o ON o.shop = l.shop AND o.number = l.number LEFT JOIN stock s ON s.id = o.item WHERE l.shop = 3 ORDER BY l.number, l.position LIMIT 5 OFFSET 1

procedure statement(p1: bigint, p2: bigint, p3: int) -> list of (c1: numeric(12, 2), c2: text null, c3: varchar(10) null) {
    var result_1: list of (c1: numeric(12, 2), c2: text null, c3: varchar(10) null) = []
    var taken_2: bigint = 0::bigint
    var skipped_3: bigint = 0::bigint
    require coalesce(p1 >= 0, true), "LIMIT must not be negative", sqlstate '2201W', detail null::text
    require coalesce(p2 >= 0, true), "OFFSET must not be negative", sqlstate '2201X', detail null::text
    for row_4 in lines[p3] limit p1 + p2 {
        if exists orders[row_4.shop, row_4.number] {
            let key_5: int null = orders[row_4.shop, row_4.number].item
            if skipped_3 < coalesce(p2, 0) {
                skipped_3 += 1::bigint
            } else {
                if coalesce(taken_2 < p1, true) {
                    taken_2 += 1::bigint
                    append result_1 (row_4.amount, orders[row_4.shop, row_4.number].note, stock[key_5]?.code)
                }
            }
        }
    }
    return result_1
}
arguments Constant(BigInt(5))
          Constant(BigInt(1))
          Constant(Int(3))

> SELECT max(item), min(item) FROM orders

procedure statement() -> list of (c1: int null, c2: int null) {
    var result_1: list of (c1: int null, c2: int null) = []
    var sum_2: int null = null
    var sum_3: int null = null
    for row_4 in orders by orders_item where row_4.item is not null descending limit 1::bigint {
        sum_2 = greatest(sum_2, row_4.item)
    }
    for row_5 in orders by orders_item limit 1::bigint {
        sum_3 = least(sum_3, row_5.item)
    }
    append result_1 (sum_2, sum_3)
    return result_1
}

> SELECT v FROM t WHERE id = (SELECT id FROM stock WHERE code = 'x')

procedure statement(p1: text) -> list of (c1: int) {
    var result_1: list of (c1: int) = []
    var value_4: int null = null
    var rows_5: bigint = 0
    for row_8 in stock by stock_code[p1] {
        rows_5 += 1::bigint
        value_4 = row_8.id
    }
    if exists t[value_4] {
        append result_1 (t[value_4].v)
    }
    return result_1
}
arguments Constant(Text("x"))

> SELECT number, item FROM orders WHERE item IN (1, 2) ORDER BY shop DESC, number DESC LIMIT 3 OFFSET 1

procedure statement(p1: bigint, p2: bigint, p3: int, p4: int) -> list of (c1: bigint, c2: int null) {
    var result_1: list of (c1: bigint, c2: int null) = []
    var taken_2: bigint = 0::bigint
    var skipped_3: bigint = 0::bigint
    require coalesce(p1 >= 0, true), "LIMIT must not be negative", sqlstate '2201W', detail null::text
    require coalesce(p2 >= 0, true), "OFFSET must not be negative", sqlstate '2201X', detail null::text
    for row_4 in orders where row_4.item = p3 or row_4.item = p4 descending limit p1 + p2 {
        if skipped_3 < coalesce(p2, 0) {
            skipped_3 += 1::bigint
        } else {
            if coalesce(taken_2 < p1, true) {
                taken_2 += 1::bigint
                append result_1 (row_4.number, row_4.item)
            }
        }
    }
    return result_1
}
arguments Constant(BigInt(3))
          Constant(BigInt(1))
          Constant(Int(1))
          Constant(Int(2))

> SELECT t.id, s.code FROM t LEFT JOIN LATERAL (SELECT code, id FROM stock WHERE code = t.s ORDER BY id LIMIT 1) s ON s.id > 2

procedure statement(p1: bigint, p2: int) -> list of (c1: int, c2: varchar(10) null) {
    var result_1: list of (c1: int, c2: varchar(10) null) = []
    for row_8 in t {
        var found_9: boolean = false
        let key_12: varchar(10) null = if length(row_8.s) <= 10 then row_8.s::varchar(10) else null::varchar(10)
        for row_13 in stock by stock_code[key_12] limit p1 {
            if row_13.id > p2 {
                found_9 = true
                append result_1 (row_8.id, row_13.code)
            }
        }
        if not found_9 {
            append result_1 (row_8.id, null::varchar(10))
        }
    }
    return result_1
}
arguments Constant(BigInt(1))
          Constant(Int(2))

> SELECT item, count(*) AS c, sum(number) FROM orders WHERE shop = 7 GROUP BY item HAVING count(*) > 1 ORDER BY c DESC LIMIT 5

procedure statement(p1: bigint, p2: int, p3: int) -> list of (c1: int null, c2: bigint, c3: numeric(38, 0) null) {
    var result_1: list of (c1: int null, c2: bigint, c3: numeric(38, 0) null) = []
    var rows_4: list of (c1: int null, c2: bigint) = []
    for row_5 in orders[p2] {
        append rows_4 (row_5.item, row_5.number)
    }
    sort rows_4 by c1
    var last_9: int null = null::int
    var sum_2: bigint = 0::bigint
    var sum_3: numeric(38, 0) null = null
    var has_last_8 = false
    var groups_7: list of (c1: int null, c2: bigint, c3: numeric(38, 0) null) = []
    for each_6 in rows_4 {
        if not has_last_8 or each_6.c1 is distinct from last_9 {
            if has_last_8 {
                append groups_7 (last_9, sum_2, sum_3)
            }
            last_9 = each_6.c1
            sum_2 = 0::bigint
            sum_3 = null
            has_last_8 = true
        }
        sum_2 += 1::bigint
        sum_3 = (coalesce(sum_3, 0::numeric(38, 0)) + each_6.c2::numeric(38, 0))::numeric(38, 0)
    }
    if has_last_8 {
        append groups_7 (last_9, sum_2, sum_3)
    }
    var sorted_11: list of (c1: int null, c2: bigint, c3: numeric(38, 0) null) = []
    for group_10 in groups_7 {
        if group_10.c2 > p3 {
            append sorted_11 (group_10.c1, group_10.c2, group_10.c3)
        }
    }
    sort sorted_11 by c2 descending
    var taken_13: bigint = 0::bigint
    require coalesce(p1 >= 0, true), "LIMIT must not be negative", sqlstate '2201W', detail null::text
    for each_12 in sorted_11 {
        if coalesce(taken_13 < p1, true) {
            taken_13 += 1::bigint
            append result_1 (each_12.c1, each_12.c2, each_12.c3)
        }
    }
    return result_1
}
arguments Constant(BigInt(5))
          Constant(Int(7))
          Constant(Int(1))

> SELECT count(*) FROM (SELECT item FROM orders WHERE shop = 7) x GROUP BY x.item

procedure statement(p1: int) -> list of (c1: bigint) {
    var result_1: list of (c1: bigint) = []
    var rows_6: list of (c1: int null) = []
    for row_9 in orders[p1] {
        append rows_6 (row_9.item)
    }
    sort rows_6 by c1
    var last_13: int null = null::int
    var sum_5: bigint = 0::bigint
    var has_last_12 = false
    var groups_11: list of (c1: int null, c2: bigint) = []
    for each_10 in rows_6 {
        if not has_last_12 or each_10.c1 is distinct from last_13 {
            if has_last_12 {
                append groups_11 (last_13, sum_5)
            }
            last_13 = each_10.c1
            sum_5 = 0::bigint
            has_last_12 = true
        }
        sum_5 += 1::bigint
    }
    if has_last_12 {
        append groups_11 (last_13, sum_5)
    }
    for group_14 in groups_11 {
        append result_1 (group_14.c2)
    }
    return result_1
}
arguments Constant(Int(7))

