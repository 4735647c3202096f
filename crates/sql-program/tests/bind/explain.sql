> EXPLAIN UPDATE t SET v = v + 1 WHERE id = 5

Row of t by primary key (id)

statement: everything is done now

1  procedure statement(p1: int, p2: int) -> bigint {
2      var count: bigint = 0                          now    results at hand
3      if exists t[p1] {                              now    indexed column t.v
4          update t[p1] { v: t[p1].v + p2 }           now    indexed column t.v
5          count += 1::bigint                         now    results at hand
6      }
7      return count                                   now    results at hand
8  }

keys
  t[p1]   now   from arguments   may be missing   reads v, writes v

relied on
  p2    in [-10000, 10000]
  t.v   in [-10000, 10000]

record actions
  1   t[p1]   decides   reads v, writes v

> EXPLAIN UPDATE stock SET price = price - $1 WHERE id = 1

Row of stock by primary key (id)

statement: values are computed later

1  procedure statement(p1: int, p2: numeric(38, 10)) -> bigint {
2      var count: bigint = 0                                                   now    results at hand
3      if exists stock[p1] {                                                   both   later: value of stock.price
4          update stock[p1] { price: (stock[p1].price - p2)::numeric(12, 2) }  later  value of stock.price
5          count += 1::bigint                                                  now    results at hand
6      }
7      return count                                                            now    results at hand
8  }

keys
  stock[p1]   now   from arguments   may be missing   reads price, writes price

captured for later
  stock[p1]          row
  exists stock[p1]   value

relied on
  p2            in [-0.0000010000, 0.0000010000]
  stock.price   in [-100.00, 100.00]

record actions
  1   stock[p1]   decides   reads price, writes price

> EXPLAIN UPDATE stock SET qty = qty - 1 WHERE id = $1 AND qty >= 1

Row of stock by primary key (id)

statement: everything is done now

 1  procedure statement(p1: int, p2: int, p3: int) -> bigint {
 2      var count: bigint = 0                                                             now    results at hand
 3      if exists stock[p1] {                                                             now    key of a write to stock; decides a write to stock
 4          if stock[p1].qty >= p2 {                                                      now    decides a write to stock
 5              require stock[p1].qty - p3 >= 0::int, "new row for relation ""stock"" …   now    decides the outcome (require)
 6              update stock[p1] { qty: stock[p1].qty - p3 }                              free   values at hand
 7              count += 1::bigint                                                        now    results at hand
 8          }
 9      }
10      return count                                                                      now    results at hand
11  }

keys
  stock[p1]   now   from arguments   may be missing   reads qty, writes qty

relied on
  p3          in [-10000, 10000]
  stock.qty   in [-10000, 10000]

record actions
  1   stock[p1]   decides   reads qty, writes qty

> EXPLAIN INSERT INTO t (id, v) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v


statement: everything is done now

 1  procedure statement(p1: int, p2: int) -> bigint {
 2      var count: bigint = 0                          now    results at hand
 3      if exists t[p1] {                              now    decides an insert into t
 4          update t[p1] { v: t[p1].v + p2 }           now    indexed column t.v
 5          count += 1::bigint                         now    results at hand
 6      } else {
 7          insert t { id: p1, v: p2 }                 now    values at hand
 8          count += 1::bigint                         now    results at hand
 9      }
10      return count                                   now    results at hand
11  }

keys
  t[p1]   now   from arguments   may be missing   reads v, writes v
  t[p1]   now   from arguments   is added

relied on
  p2    in [-10000, 10000]
  t.v   in [-10000, 10000]

record actions
  1   t[p1]   decides   inserts, reads v

> EXPLAIN SELECT s FROM t WHERE v = 3

Rows of t by index t_v (v)

statement: read only

1  procedure statement(p1: int) -> list of (c1: text null) {
2      var result_1: list of (c1: text null) = []             later  result
3      for row_4 in t by t_v[p1] {                            later  result
4          append result_1 (row_4.s)                          later  result
5      }
6      return result_1                                        later  result
7  }

keys
  t by t_v[p1, ..]   later   from arguments   range   reads s

record actions
  1   t by t_v[p1, ..]   reads s

> EXPLAIN UPDATE stock SET price = price - 1.5 WHERE id = 1

Row of stock by primary key (id)

statement: everything is done now, but for deltas, which are stored now and applied when someone reads

1  procedure statement(p1: int, p2: numeric(18, 1)) -> bigint {
2      var count: bigint = 0                                                   now    results at hand
3      if exists stock[p1] {                                                   now    key of a write to stock; decides a write to stock
4          update stock[p1] { price: (stock[p1].price - p2)::numeric(12, 2) }  delta  adds -p2 to stock.price
5          count += 1::bigint                                                  now    results at hand
6      }
7      return count                                                            now    results at hand
8  }

keys
  stock[p1]   now   from arguments   may be missing   reads price, writes price

deltas
  stock.price   +=   -p2   line 4

splittable
  stock.price   add

relied on
  p2            in [-1000.0, 1000.0]
  stock.price   in [-100.00, 100.00]

record actions
  1   stock[p1]   decides   reads price, writes price

