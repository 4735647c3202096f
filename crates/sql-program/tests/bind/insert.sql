> INSERT INTO t VALUES (1, 2, 3, 'x')

procedure statement(p1: int, p2: int, p3: bigint, p4: text) -> bigint {
    var count: bigint = 0
    insert t { id: p1, v: p2, w: p3, s: p4 }
    count += 1::bigint
    return count
}
arguments Constant(Int(1))
          Constant(Int(2))
          Constant(BigInt(3))
          Constant(Text("x"))

> INSERT INTO t (id, v) VALUES ($1, $2) RETURNING id, s

procedure statement(p1: int, p2: int) -> (count: bigint, rows: list of (c1: int, c2: text null)) {
    var count: bigint = 0
    var returned_1: list of (c1: int, c2: text null) = []
    insert t { id: p1, v: p2 }
    count += 1::bigint
    append returned_1 (p1, null::text)
    return count, returned_1
}
arguments Parameter(0)
          Parameter(1)
parameters integer, integer

> INSERT INTO t (id, v) VALUES (1, 2), (3, 4), (5, 6), ($1, $2)

procedure statement(rows1: list of (c1: int, c2: int)) -> bigint {
    var count: bigint = 0
    for each_2 in rows1 {
        insert t { id: each_2.c1, v: each_2.c2 }
        count += 1::bigint
    }
    return count
}
arguments Rows([[Constant(Int(1)), Constant(Int(2))], [Constant(Int(3)), Constant(Int(4))], [Constant(Int(5)), Constant(Int(6))], [Parameter(0), Parameter(1)]])
parameters integer, integer

> INSERT INTO orders (shop, item) VALUES (1, 2)

procedure statement(p1: int, p2: bigint, p3: int, now4: timestamp, p5: text) -> bigint {
    var count: bigint = 0
    require exists stock[p3], "insert or update on table ""orders"" violates foreign key constraint ""orders_item_fkey""", sqlstate '23503', detail 'Key (item)=(' || p3::text || ') is not present in table "stock".'
    insert orders { shop: p1, number: p2, item: p3, at: now4, note: p5 }
    count += 1::bigint
    return count
}
arguments Constant(Int(1))
          NextValue(ObjectName { schema: "public", name: "orders_number_seq" })
          Constant(Int(2))
          TransactionTime
          Constant(Text("none"))

> INSERT INTO orders (shop, item) VALUES (1, 2), (1, 3), (1, 4), (1, DEFAULT)

procedure statement(rows1: list of (c1: int, c2: int null, c3: bigint), now2: timestamp, p3: text) -> bigint {
    var count: bigint = 0
    for each_2 in rows1 {
        require each_2.c2 is null or exists stock[each_2.c2], "insert or update on table ""orders"" violates foreign key constraint ""orders_item_fkey""", sqlstate '23503', detail 'Key (item)=(' || each_2.c2::text || ') is not present in table "stock".'
        insert orders { shop: each_2.c1, number: each_2.c3, item: each_2.c2, at: now2, note: p3 }
        count += 1::bigint
    }
    return count
}
arguments Rows([[Constant(Int(1)), Constant(Int(2)), NextValue(ObjectName { schema: "public", name: "orders_number_seq" })], [Constant(Int(1)), Constant(Int(3)), NextValue(ObjectName { schema: "public", name: "orders_number_seq" })], [Constant(Int(1)), Constant(Int(4)), NextValue(ObjectName { schema: "public", name: "orders_number_seq" })], [Constant(Int(1)), Constant(Null), NextValue(ObjectName { schema: "public", name: "orders_number_seq" })]])
          TransactionTime
          Constant(Text("none"))

> INSERT INTO stock VALUES (1, 2, 3.456, 'abc')

procedure statement(p1: int, p2: int, p3: numeric(12, 2), p4: varchar(10)) -> bigint {
    var count: bigint = 0
    require p2 >= 0::int, "new row for relation ""stock"" violates check constraint ""stock_qty_check""", sqlstate '23514', detail 'Failing row contains (' || p1::text || ', ' || p2::text || ', ' || p3::text || ', ' || p4::text || ').'
    insert stock { id: p1, qty: p2, price: p3, code: p4 }
    count += 1::bigint
    return count
}
arguments Constant(Int(1))
          Constant(Int(2))
          Constant(Numeric(Decimal { mantissa: 346, scale: 2 }))
          Constant(Text("abc"))

> INSERT INTO t (id, v) VALUES (1, 2) ON CONFLICT DO NOTHING

procedure statement(p1: int, p2: int) -> bigint {
    var count: bigint = 0
    if not exists t[p1] {
        insert t { id: p1, v: p2 }
        count += 1::bigint
    }
    return count
}
arguments Constant(Int(1))
          Constant(Int(2))

> INSERT INTO t (id, v) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v WHERE t.v < 10 RETURNING v

procedure statement(p1: int, p2: int, p3: int) -> (count: bigint, rows: list of (c1: int)) {
    var count: bigint = 0
    var returned_1: list of (c1: int) = []
    if exists t[p1] {
        if t[p1].v < p3 {
            update t[p1] { v: t[p1].v + p2 }
            count += 1::bigint
            append returned_1 (t[p1].v)
        }
    } else {
        insert t { id: p1, v: p2 }
        count += 1::bigint
        append returned_1 (p2)
    }
    return count, returned_1
}
arguments Constant(Int(1))
          Constant(Int(2))
          Constant(Int(10))

> INSERT INTO stock VALUES (1, 2, 3, 'abc') ON CONFLICT (code) DO UPDATE SET qty = stock.qty + excluded.qty

procedure statement(p1: int, p2: int, p3: numeric(12, 2), p4: varchar(10)) -> bigint {
    var count: bigint = 0
    require p2 >= 0::int, "new row for relation ""stock"" violates check constraint ""stock_qty_check""", sqlstate '23514', detail 'Failing row contains (' || p1::text || ', ' || p2::text || ', ' || p3::text || ', ' || p4::text || ').'
    var existing_2: list of (k1: int) = []
    for row_3 in stock by stock_code[p4] {
        append existing_2 (row_3.id)
    }
    for each_4 in existing_2 {
        require stock[each_4.k1].qty + p2 >= 0::int, "new row for relation ""stock"" violates check constraint ""stock_qty_check""", sqlstate '23514', detail null::text
        update stock[each_4.k1] { qty: stock[each_4.k1].qty + p2 }
        count += 1::bigint
    }
    if count(existing_2) = 0 {
        insert stock { id: p1, qty: p2, price: p3, code: p4 }
        count += 1::bigint
    }
    return count
}
arguments Constant(Int(1))
          Constant(Int(2))
          Constant(Numeric(Decimal { mantissa: 300, scale: 2 }))
          Constant(Text("abc"))

> INSERT INTO t (id, v) SELECT id + 100, v FROM t WHERE id < 5

procedure statement(p1: int, p2: int) -> bigint {
    var count: bigint = 0
    var result_2: list of (c1: int, c2: int) = []
    for row_5 in t[..< p1] {
        append result_2 (row_5.id + p2, row_5.v)
    }
    for each_6 in result_2 {
        insert t { id: each_6.c1, v: each_6.c2 }
        count += 1::bigint
    }
    return count
}
arguments Constant(Int(5))
          Constant(Int(100))

> INSERT INTO keyless VALUES (1, 'x')

procedure statement(p1: int, p2: text, p3: bigint) -> bigint {
    var count: bigint = 0
    insert keyless { a: p1, b: p2, `fabius row number`: p3 }
    count += 1::bigint
    return count
}
arguments Constant(Int(1))
          Constant(Text("x"))
          NextValue(ObjectName { schema: "public", name: "5 row number" })

> INSERT INTO t (id) VALUES (1)

procedure statement(p1: int) -> bigint {
    var count: bigint = 0
    let v_2: int null = null::int
    require v_2 is not null, "null value in column ""v"" of relation ""t"" violates not-null constraint", sqlstate '23502', detail 'Failing row contains (' || p1::text || ', ' || 'null' || ', ' || 'null' || ', ' || 'null' || ').'
    insert t { id: p1, v: coalesce(v_2, 0::int) }
    count += 1::bigint
    return count
}
arguments Constant(Int(1))

> INSERT INTO t (id, v) VALUES (1)

42601 at 31: INSERT has more target columns than expressions

> INSERT INTO lines VALUES (1, 2, 3, 4.5)

procedure statement(p1: int, p2: bigint, p3: int, p4: numeric(12, 2)) -> bigint {
    var count: bigint = 0
    require exists orders[p1, p2], "insert or update on table ""lines"" violates foreign key constraint ""lines_order_fkey""", sqlstate '23503', detail 'Key (shop, number)=(' || p1::text || ', ' || p2::text || ') is not present in table "orders".'
    insert lines { shop: p1, number: p2, position: p3, amount: p4 }
    count += 1::bigint
    return count
}
arguments Constant(Int(1))
          Constant(BigInt(2))
          Constant(Int(3))
          Constant(Numeric(Decimal { mantissa: 450, scale: 2 }))

> INSERT INTO kinds VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', true, '2026-01-02', '2026-01-02 10:00', 1.5, 3, 'ab', '{"a": 1}')

procedure statement(p1: bytea, p2: date, p3: timestamp, p4: double precision, p5: smallint, p6: char(4), p7: text) -> bigint {
    var count: bigint = 0
    insert kinds { id: p1, flag: true, day: p2, moment: p3, ratio: p4, small: p5, c: p6, j: p7 }
    count += 1::bigint
    return count
}
arguments Constant(Bytea([160, 238, 188, 153, 156, 11, 78, 248, 187, 109, 107, 185, 189, 56, 10, 17]))
          Constant(Date(20455))
          Constant(Timestamp(1767348000000000))
          Constant(Double(1.5))
          Constant(SmallInt(3))
          Constant(Text("ab"))
          Constant(Text("{\"a\": 1}"))

> INSERT INTO t (id, v, w, s) SELECT $1, '7', NULL, $2 FROM t WHERE id = $1

procedure statement(p1: int, p2: int, p3: text) -> bigint {
    var count: bigint = 0
    var result_2: list of (c1: int, c2: int, c3: bigint null, c4: text) = []
    if exists t[p1] {
        append result_2 (p1, p2, null::bigint, p3)
    }
    for each_5 in result_2 {
        insert t { id: each_5.c1, v: each_5.c2, w: each_5.c3, s: each_5.c4 }
        count += 1::bigint
    }
    return count
}
arguments Parameter(0)
          Constant(Int(7))
          Parameter(1)
parameters integer, text

