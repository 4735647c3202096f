> DELETE FROM t WHERE id = $1

procedure statement(p1: int) -> bigint {
    var count: bigint = 0
    if exists t[p1] {
        count += 1::bigint
        delete t[p1]
    }
    return count
}
arguments Parameter(0)
parameters integer

> DELETE FROM stock WHERE id = 1 RETURNING qty

procedure statement(p1: int) -> (count: bigint, rows: list of (c1: int)) {
    var count: bigint = 0
    var returned_1: list of (c1: int) = []
    if exists stock[p1] {
        let old_2: int = stock[p1].id
        var found_3: boolean = false
        for row_4 in orders by orders_item[old_2] limit 1 {
            found_3 = true
        }
        require not found_3, "update or delete on table ""stock"" violates foreign key constraint ""orders_item_fkey"" on table ""orders""", sqlstate '23503', detail 'Key (id)=(' || old_2::text || ') is still referenced from table "orders".'
        count += 1::bigint
        append returned_1 (stock[p1].qty)
        delete stock[p1]
    }
    return count, returned_1
}
arguments Constant(Int(1))

> DELETE FROM orders WHERE shop = 1

procedure statement(p1: int) -> bigint {
    var count: bigint = 0
    for row_2 in orders[p1] {
        var referring_3: list of (k1: int, k2: bigint, k3: int) = []
        for row_4 in lines[row_2.shop, row_2.number] {
            append referring_3 (row_4.shop, row_4.number, row_4.position)
        }
        for each_5 in referring_3 {
            if exists lines[each_5.k1, each_5.k2, each_5.k3] {
                delete lines[each_5.k1, each_5.k2, each_5.k3]
            }
        }
        count += 1::bigint
        delete row_2
    }
    return count
}
arguments Constant(Int(1))

> DELETE FROM t USING orders o WHERE o.shop = 3 AND o.number = t.id

procedure statement(p1: int) -> bigint {
    var count: bigint = 0
    var gone_2: list of (k1: int) = []
    for row_3 in orders[p1] {
        let key_4: int null = if row_3.number between -2147483648 and 2147483647 then row_3.number::int else null::int
        if exists t[key_4] {
            append gone_2 (t[key_4].id)
        }
    }
    for each_5 in gone_2 {
        if exists t[each_5.k1] {
            count += 1::bigint
            delete t[each_5.k1]
        }
    }
    return count
}
arguments Constant(Int(3))

> DELETE FROM keyless

procedure statement() -> bigint {
    var count: bigint = 0
    for row_2 in keyless {
        count += 1::bigint
        delete row_2
    }
    return count
}

> DELETE FROM lines WHERE (shop, number) IN (SELECT o.shop, o.number FROM orders o WHERE o.shop = 3)

procedure statement(p1: int) -> bigint {
    var count: bigint = 0
    var gone_2: list of (k1: int, k2: bigint, k3: int) = []
    var found_3: list of (f1: int, f2: bigint) = []
    for row_6 in orders[p1] {
        append found_3 (row_6.shop, row_6.number)
    }
    var keys_7: list of (f1: int, f2: bigint) = []
    sort found_3 by f1, f2
    var last_9: int null = null::int
    var last_10: bigint null = null::bigint
    for key_8 in found_3 {
        if key_8.f1 is distinct from last_9 or key_8.f2 is distinct from last_10 {
            last_9 = key_8.f1
            last_10 = key_8.f2
            append keys_7 (key_8.f1, key_8.f2)
        }
    }
    for key_11 in keys_7 {
        for row_12 in lines[key_11.f1, key_11.f2] {
            append gone_2 (row_12.shop, row_12.number, row_12.position)
        }
    }
    for each_13 in gone_2 {
        if exists lines[each_13.k1, each_13.k2, each_13.k3] {
            count += 1::bigint
            delete lines[each_13.k1, each_13.k2, each_13.k3]
        }
    }
    return count
}
arguments Constant(Int(3))

