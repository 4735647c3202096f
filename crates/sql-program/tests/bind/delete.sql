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

