//! The scripts that peers are measured at.

use super::script::{Script, Transaction};
use super::tpcc;

/// A table of many rows.
const MANY_ROWS: &str = "DROP TABLE IF EXISTS r;\n\
                         CREATE TABLE r (id int PRIMARY KEY, v bigint NOT NULL);\n\
                         INSERT INTO r SELECT i, 0 FROM generate_series(1, {rows}) AS i;\n";

/// All, in the order in which they are run.
pub const SCRIPTS: &[Script] = &[
    Script {
        name: "hot",
        title: "hot row: UPDATE c SET v = v + 1 WHERE id = 1",
        setup: "DROP TABLE IF EXISTS c;\n\
                CREATE TABLE c (id int PRIMARY KEY, v bigint NOT NULL);\n\
                INSERT INTO c VALUES (1, 0);\n",
        transactions: || Transaction::only("UPDATE c SET v = v + 1 WHERE id = 1;\n"),
        wanted: 6.0,
        wanted_replicated: 8.0,
    },
    Script {
        name: "reservation",
        title: "reservation: one item, 1 ms of thinking inside the transaction",
        setup: "DROP TABLE IF EXISTS stock, orders;\n\
                CREATE TABLE stock (id int PRIMARY KEY, qty int NOT NULL);\n\
                CREATE TABLE orders (id bigserial PRIMARY KEY, item int NOT NULL, client int NOT NULL);\n\
                INSERT INTO stock VALUES (1, 1000000000);\n",
        transactions: || {
            Transaction::only(
                "BEGIN;\n\
                      UPDATE stock SET qty = qty - 1 WHERE id = 1 AND qty >= 1;\n\
                      \\sleep 1 ms\n\
                      INSERT INTO orders (item, client) VALUES (1, :client_id);\n\
                      COMMIT;\n",
            )
        },
        wanted: 10.0,
        wanted_replicated: 8.0,
    },
    Script {
        name: "cold",
        title: "cold rows: UPDATE r SET v = v + 1 WHERE id = a random one",
        setup: MANY_ROWS,
        transactions: || {
            Transaction::only("\\set id random(1, {rows})\nUPDATE r SET v = v + 1 WHERE id = :id;\n")
        },
        wanted: 1.0,
        wanted_replicated: 1.0,
    },
    Script {
        name: "select",
        title: "point reads: SELECT v FROM r WHERE id = a random one",
        setup: MANY_ROWS,
        transactions: || Transaction::only("\\set id random(1, {rows})\nSELECT v FROM r WHERE id = :id;\n"),
        wanted: 0.8,
        wanted_replicated: 0.0,
    },
    Script {
        name: "tpcc",
        title: "TPC-C: one warehouse, each statement a message",
        setup: tpcc::TABLES,
        transactions: tpcc::mix,
        wanted: 1.0,
        wanted_replicated: 0.0,
    },
];
