//! TPC-C as its clients send it: each statement a message, one warehouse, no time to think.
//!
//! The statements are those of BenchBase's implementation. Columns that no transaction reads are left out, customers
//! are known by their number, and every order has ten lines, as pgbench has no loops.

use super::script::Transaction;
use std::fmt::Write as _;

/// Tables and rows of one warehouse (TPC-C 5.11, 4.3.3.1).
pub(super) const TABLES: &str = include_str!("tpcc.sql");

const DISTRICTS: u32 = 10;
const LINES: u32 = 10;
const ITEMS: u32 = 100_000;

/// The five transactions in the standard's mix (5.2.3).
pub(super) fn mix() -> Vec<Transaction> {
    let transaction = |name, weight, text| Transaction { name, weight, text };
    vec![
        transaction("new-order", 45, new_order()),
        transaction("payment", 43, PAYMENT.into()),
        transaction("order-status", 4, ORDER_STATUS.into()),
        transaction("delivery", 4, delivery()),
        transaction("stock-level", 4, STOCK_LEVEL.into()),
    ]
}

/// Each line's item comes from its own tenth of the items and these are in order, so that no two orders wait for each
/// other's.
fn new_order() -> String {
    let mut text = "\
\\set d random(1, 10)
\\set c random(1, 3000)
BEGIN;
SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = 1 AND c_d_id = :d AND c_id = :c;
SELECT w_tax FROM warehouse WHERE w_id = 1;
SELECT d_next_o_id AS o, d_tax FROM district WHERE d_w_id = 1 AND d_id = :d FOR UPDATE \\gset
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = :d;
INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt) VALUES (:o, :d, 1, :c, now(), 10);
INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (:o, :d, 1);
"
    .to_string();
    for line in 1..=LINES {
        let (first, last) = ((line - 1) * ITEMS / LINES + 1, line * ITEMS / LINES);
        let _ = write!(
            text,
            "\
\\set i random({first}, {last})
\\set q random(1, 10)
SELECT i_price, i_name, i_data FROM item WHERE i_id = :i;
SELECT s_quantity AS s, s_data, s_dist FROM stock WHERE s_i_id = :i AND s_w_id = 1 FOR UPDATE \\gset
\\set n case when :s - :q >= 10 then :s - :q else :s - :q + 91 end
UPDATE stock SET s_quantity = :n, s_ytd = s_ytd + :q, s_order_cnt = s_order_cnt + 1 WHERE s_i_id = :i AND s_w_id = 1;
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_quantity, ol_amount, ol_dist_info) \
VALUES (:o, :d, 1, {line}, :i, :q, :q * 10, 'of a district');
"
        );
    }
    text + "COMMIT;\n"
}

const PAYMENT: &str = "\
\\set d random(1, 10)
\\set c random(1, 3000)
\\set a random(1, 5000)
BEGIN;
UPDATE warehouse SET w_ytd = w_ytd + :a WHERE w_id = 1;
SELECT w_street_1, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = 1;
UPDATE district SET d_ytd = d_ytd + :a WHERE d_w_id = 1 AND d_id = :d;
SELECT d_street_1, d_city, d_state, d_zip, d_name FROM district WHERE d_w_id = 1 AND d_id = :d;
SELECT c_first, c_last, c_credit, c_discount, c_balance, c_ytd_payment, c_payment_cnt FROM customer \
WHERE c_w_id = 1 AND c_d_id = :d AND c_id = :c;
UPDATE customer SET c_balance = c_balance - :a, c_ytd_payment = c_ytd_payment + :a, c_payment_cnt = c_payment_cnt + 1 \
WHERE c_w_id = 1 AND c_d_id = :d AND c_id = :c;
INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
VALUES (:d, 1, :c, :d, 1, now(), :a, 'main district');
COMMIT;
";

const ORDER_STATUS: &str = "\
\\set d random(1, 10)
\\set c random(1, 3000)
BEGIN;
SELECT c_first, c_last, c_balance FROM customer WHERE c_w_id = 1 AND c_d_id = :d AND c_id = :c;
SELECT max(o_id) AS o FROM orders WHERE o_w_id = 1 AND o_d_id = :d \\gset
SELECT ol_i_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_o_id = :o AND ol_d_id = :d AND ol_w_id = 1;
COMMIT;
";

/// The oldest order of each district, which is locked: two deliveries at once would deliver it twice.
fn delivery() -> String {
    let mut text = "\\set k random(1, 10)\nBEGIN;\n".to_string();
    for district in 1..=DISTRICTS {
        let _ = write!(
            text,
            "\
SELECT no_o_id AS o FROM new_order WHERE no_d_id = {district} AND no_w_id = 1 ORDER BY no_o_id LIMIT 1 FOR UPDATE \\gset
DELETE FROM new_order WHERE no_o_id = :o AND no_d_id = {district} AND no_w_id = 1;
SELECT o_c_id AS c FROM orders WHERE o_id = :o AND o_d_id = {district} AND o_w_id = 1 \\gset
UPDATE orders SET o_carrier_id = :k WHERE o_id = :o AND o_d_id = {district} AND o_w_id = 1;
UPDATE order_line SET ol_delivery_d = now() WHERE ol_o_id = :o AND ol_d_id = {district} AND ol_w_id = 1;
SELECT sum(ol_amount) AS s FROM order_line WHERE ol_o_id = :o AND ol_d_id = {district} AND ol_w_id = 1 \\gset
UPDATE customer SET c_balance = c_balance + :s, c_delivery_cnt = c_delivery_cnt + 1 \
WHERE c_w_id = 1 AND c_d_id = {district} AND c_id = :c;
"
        );
    }
    text + "COMMIT;\n"
}

const STOCK_LEVEL: &str = "\
\\set d random(1, 10)
BEGIN;
SELECT d_next_o_id AS o FROM district WHERE d_w_id = 1 AND d_id = :d \\gset
SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = 1 AND ol_d_id = :d AND ol_o_id < :o \
AND ol_o_id >= :o - 20 AND s_w_id = 1 AND s_i_id = ol_i_id AND s_quantity < 15;
COMMIT;
";
