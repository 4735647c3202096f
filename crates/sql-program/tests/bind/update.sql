> UPDATE t SET v = v + 1 WHERE id = 5

procedure statement(p1: int, p2: int) -> bigint {
    var count: bigint = 0
    if exists t[p1] {
        update t[p1] { v: t[p1].v + p2 }
        count += 1::bigint
    }
    return count
}
arguments Constant(Int(5))
          Constant(Int(1))

> UPDATE stock SET qty = qty - 1 WHERE id = $1 AND qty >= 1

procedure statement(p1: int, p2: int, p3: int) -> bigint {
    var count: bigint = 0
    if exists stock[p1] {
        if stock[p1].qty >= p2 {
            require stock[p1].qty - p3 >= 0::int, "new row for relation ""stock"" violates check constraint ""stock_qty_check""", sqlstate '23514', detail null::text
            update stock[p1] { qty: stock[p1].qty - p3 }
            count += 1::bigint
        }
    }
    return count
}
arguments Parameter(0)
          Constant(Int(1))
          Constant(Int(1))
parameters integer

> UPDATE t SET w = w + $2 WHERE id = $1 RETURNING w, v

procedure statement(p1: int, p2: bigint) -> (count: bigint, rows: list of (c1: bigint null, c2: int)) {
    var count: bigint = 0
    var returned_1: list of (c1: bigint null, c2: int) = []
    if exists t[p1] {
        update t[p1] { w: t[p1].w + p2 }
        count += 1::bigint
        append returned_1 (t[p1].w, t[p1].v)
    }
    return count, returned_1
}
arguments Parameter(0)
          Parameter(1)
parameters integer, bigint

> UPDATE t SET s = 'x' WHERE v BETWEEN 3 AND 8

procedure statement(p1: int, p2: int, p3: text) -> bigint {
    var count: bigint = 0
    for row_2 in t by t_v[p1 .. p2] {
        update row_2 { s: p3 }
        count += 1::bigint
    }
    return count
}
arguments Constant(Int(3))
          Constant(Int(8))
          Constant(Text("x"))

> UPDATE t SET v = v + 1 WHERE v = 4

procedure statement(p1: int, p2: int) -> bigint {
    var count: bigint = 0
    var changes_3: list of (k1: int, k2: int) = []
    for row_4 in t by t_v[p1] {
        append changes_3 (row_4.id, row_4.v + p2)
    }
    for each_5 in changes_3 {
        update t[each_5.k1] { v: each_5.k2 }
        count += 1::bigint
    }
    return count
}
arguments Constant(Int(4))
          Constant(Int(1))

> UPDATE t SET id = id + 100 WHERE id < 10

procedure statement(p1: int, p2: int) -> bigint {
    var count: bigint = 0
    var changes_2: list of (k1: int, k2: int) = []
    for row_3 in t[..< p1] {
        append changes_2 (row_3.id, row_3.id + p2)
    }
    var moved_4: list of (c1: int, c2: int, c3: bigint null, c4: text null) = []
    for each_5 in changes_2 {
        if exists t[each_5.k1] {
            append moved_4 (each_5.k2, t[each_5.k1].v, t[each_5.k1].w, t[each_5.k1].s)
            delete t[each_5.k1]
        }
    }
    for each_6 in moved_4 {
        insert t { id: each_6.c1, v: each_6.c2, w: each_6.c3, s: each_6.c4 }
        count += 1::bigint
    }
    return count
}
arguments Constant(Int(10))
          Constant(Int(100))

> UPDATE stock SET id = 7 WHERE id = 6

procedure statement(p1: int, p2: int) -> bigint {
    var count: bigint = 0
    var changes_2: list of (k1: int, k2: int) = []
    if exists stock[p1] {
        append changes_2 (stock[p1].id, p2)
    }
    var moved_3: list of (c1: int, c2: int, c3: numeric(12, 2), c4: varchar(10) null) = []
    for each_4 in changes_2 {
        if exists stock[each_4.k1] {
            if stock[each_4.k1].id <> each_4.k2 {
                let old_5: int = stock[each_4.k1].id
                var referring_6: list of (k1: int, k2: bigint) = []
                for row_7 in orders by orders_item[old_5] {
                    append referring_6 (row_7.shop, row_7.number)
                }
                for each_8 in referring_6 {
                    update orders[each_8.k1, each_8.k2] { item: each_4.k2 }
                }
            }
            append moved_3 (each_4.k2, stock[each_4.k1].qty, stock[each_4.k1].price, stock[each_4.k1].code)
            delete stock[each_4.k1]
        }
    }
    for each_9 in moved_3 {
        require each_9.c2 >= 0::int, "new row for relation ""stock"" violates check constraint ""stock_qty_check""", sqlstate '23514', detail null::text
        insert stock { id: each_9.c1, qty: each_9.c2, price: each_9.c3, code: each_9.c4 }
        count += 1::bigint
    }
    return count
}
arguments Constant(Int(6))
          Constant(Int(7))

> UPDATE stock SET price = price * 1.1, code = NULL

procedure statement(p1: numeric(18, 1)) -> bigint {
    var count: bigint = 0
    for row_2 in stock {
        update row_2 { price: (row_2.price * p1)::numeric(12, 2), code: null::text }
        count += 1::bigint
    }
    return count
}
arguments Constant(Numeric(Decimal { mantissa: 11, scale: 1 }))

> UPDATE t SET w = o.number FROM orders o WHERE o.shop = t.id AND o.number = 3

procedure statement(p1: bigint) -> bigint {
    var count: bigint = 0
    var changes_2: list of (k1: int, k2: bigint) = []
    for row_3 in t {
        if exists orders[row_3.id, p1] {
            append changes_2 (row_3.id, orders[row_3.id, p1].number)
        }
    }
    for each_4 in changes_2 {
        update t[each_4.k1] { w: each_4.k2 }
        count += 1::bigint
    }
    return count
}
arguments Constant(BigInt(3))

> UPDATE t SET (v, s) = (1, DEFAULT) WHERE id IN (1, 2, 3)

procedure statement(rows1: list of (f1: int), p2: int) -> bigint {
    var count: bigint = 0
    for key_2 in rows1 {
        if exists t[key_2.f1] {
            update t[key_2.f1] { v: p2, s: null::text }
            count += 1::bigint
        }
    }
    return count
}
arguments Set([[Constant(Int(1))], [Constant(Int(2))], [Constant(Int(3))]])
          Constant(Int(1))

> UPDATE orders SET item = 4 WHERE shop = 1 AND number = 2

procedure statement(p1: int, p2: bigint, p3: int) -> bigint {
    var count: bigint = 0
    if exists orders[p1, p2] {
        require exists stock[p3], "insert or update on table ""orders"" violates foreign key constraint ""orders_item_fkey""", sqlstate '23503', detail 'Key (item)=(' || p3::text || ') is not present in table "stock".'
        update orders[p1, p2] { item: p3 }
        count += 1::bigint
    }
    return count
}
arguments Constant(Int(1))
          Constant(BigInt(2))
          Constant(Int(4))

> UPDATE t SET v = NULL WHERE id = 1

procedure statement(p1: int) -> bigint {
    var count: bigint = 0
    if exists t[p1] {
        let v_2: int null = null::int
        require v_2 is not null, "null value in column ""v"" of relation ""t"" violates not-null constraint", sqlstate '23502', detail null::text
        update t[p1] { v: coalesce(v_2, 0::int) }
        count += 1::bigint
    }
    return count
}
arguments Constant(Int(1))

> UPDATE t SET v = 'abc' WHERE id = 1

22P02 at 18: invalid input syntax for type integer: "abc"

> UPDATE t SET nosuch = 1

42703 at 14: column "nosuch" of relation "t" does not exist

> UPDATE nosuch SET a = 1

42P01 at 8: relation "nosuch" does not exist

> UPDATE t SET v = true

42804 at 18: column "v" is of type integer but expression is of type boolean

> UPDATE keyless SET a = a + 1 WHERE b = 'x'

procedure statement(p1: text, p2: int) -> bigint {
    var count: bigint = 0
    for row_2 in keyless where row_2.b = p1 {
        update row_2 { a: row_2.a + p2 }
        count += 1::bigint
    }
    return count
}
arguments Constant(Text("x"))
          Constant(Int(1))

> UPDATE t SET v = 0 WHERE id IN (SELECT id FROM t WHERE v = 5 ORDER BY id LIMIT 1)

procedure statement(p1: bigint, p2: int, p3: int) -> bigint {
    var count: bigint = 0
    var changes_10: list of (k1: int, k2: int) = []
    var found_11: list of (f1: int) = []
    for row_14 in t by t_v[p2] limit p1 {
        append found_11 (row_14.id)
    }
    var keys_15: list of (f1: int) = []
    sort found_11 by f1
    var last_17: int null = null::int
    for key_16 in found_11 {
        if key_16.f1 is distinct from last_17 {
            last_17 = key_16.f1
            append keys_15 (key_16.f1)
        }
    }
    for key_18 in keys_15 {
        if exists t[key_18.f1] {
            append changes_10 (t[key_18.f1].id, p3)
        }
    }
    for each_19 in changes_10 {
        update t[each_19.k1] { v: each_19.k2 }
        count += 1::bigint
    }
    return count
}
arguments Constant(BigInt(1))
          Constant(Int(5))
          Constant(Int(0))

> UPDATE t SET v = (SELECT max(position) FROM lines WHERE shop = 3)

procedure statement(p1: int) -> bigint {
    var count: bigint = 0
    var changes_9: list of (k1: int, k2: int null) = []
    var value_11: int null = null
    var rows_12: bigint = 0
    var asked_15 = false
    for row_10 in t {
        if not asked_15 {
            asked_15 = true
            var sum_13: int null = null
            for row_14 in lines[p1] {
                sum_13 = greatest(sum_13, row_14.position)
            }
            rows_12 += 1::bigint
            value_11 = sum_13
        }
        append changes_9 (row_10.id, value_11)
    }
    for each_16 in changes_9 {
        let v_17: int null = each_16.k2
        require v_17 is not null, "null value in column ""v"" of relation ""t"" violates not-null constraint", sqlstate '23502', detail null::text
        update t[each_16.k1] { v: coalesce(v_17, 0::int) }
        count += 1::bigint
    }
    return count
}
arguments Constant(Int(3))

> UPDATE t SET v = 1 WHERE w > (SELECT qty FROM stock WHERE id = 3) AND s IS NULL

procedure statement(p1: int, p2: int) -> bigint {
    var count: bigint = 0
    var changes_8: list of (k1: int, k2: int) = []
    var value_10: int null = null
    var rows_11: bigint = 0
    var asked_14 = false
    for row_9 in t where row_9.s is null {
        if not asked_14 {
            asked_14 = true
            if exists stock[p1] {
                rows_11 += 1::bigint
                value_10 = stock[p1].qty
            }
        }
        if row_9.w > value_10 {
            append changes_8 (row_9.id, p2)
        }
    }
    for each_15 in changes_8 {
        update t[each_15.k1] { v: each_15.k2 }
        count += 1::bigint
    }
    return count
}
arguments Constant(Int(3))
          Constant(Int(1))

