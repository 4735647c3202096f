DROP TABLE IF EXISTS warehouse, district, customer, history, new_order, orders, order_line, item, stock;
CREATE TABLE warehouse (
    w_id int PRIMARY KEY, w_name varchar(10) NOT NULL, w_street_1 varchar(20) NOT NULL, w_city varchar(20) NOT NULL,
    w_state char(2) NOT NULL, w_zip char(9) NOT NULL, w_tax decimal(4,4) NOT NULL, w_ytd decimal(12,2) NOT NULL);
CREATE TABLE district (
    d_w_id int, d_id int, d_name varchar(10) NOT NULL, d_street_1 varchar(20) NOT NULL, d_city varchar(20) NOT NULL,
    d_state char(2) NOT NULL, d_zip char(9) NOT NULL, d_tax decimal(4,4) NOT NULL, d_ytd decimal(12,2) NOT NULL,
    d_next_o_id int NOT NULL, PRIMARY KEY (d_w_id, d_id));
CREATE TABLE customer (
    c_w_id int, c_d_id int, c_id int, c_first varchar(16) NOT NULL, c_last varchar(16) NOT NULL,
    c_credit char(2) NOT NULL, c_discount decimal(4,4) NOT NULL, c_balance decimal(12,2) NOT NULL,
    c_ytd_payment decimal(12,2) NOT NULL, c_payment_cnt int NOT NULL, c_delivery_cnt int NOT NULL,
    c_data varchar(500) NOT NULL, PRIMARY KEY (c_w_id, c_d_id, c_id));
CREATE TABLE history (
    h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamp NOT NULL,
    h_amount decimal(6,2) NOT NULL, h_data varchar(24) NOT NULL);
CREATE TABLE new_order (no_w_id int, no_d_id int, no_o_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id));
CREATE TABLE orders (
    o_w_id int, o_d_id int, o_id int, o_c_id int NOT NULL, o_carrier_id int, o_ol_cnt int NOT NULL,
    o_entry_d timestamp NOT NULL, PRIMARY KEY (o_w_id, o_d_id, o_id));
CREATE TABLE order_line (
    ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id int NOT NULL, ol_delivery_d timestamp,
    ol_amount decimal(6,2) NOT NULL, ol_quantity int NOT NULL, ol_dist_info char(24) NOT NULL,
    PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number));
CREATE TABLE item (
    i_id int PRIMARY KEY, i_name varchar(24) NOT NULL, i_price decimal(5,2) NOT NULL, i_data varchar(50) NOT NULL);
CREATE TABLE stock (
    s_w_id int, s_i_id int, s_quantity int NOT NULL, s_ytd decimal(8,2) NOT NULL, s_order_cnt int NOT NULL,
    s_data varchar(50) NOT NULL, s_dist char(24) NOT NULL, PRIMARY KEY (s_w_id, s_i_id));
INSERT INTO warehouse VALUES (1, 'main', 'street', 'city', 'ST', '123456789', 0.1, 300000);
INSERT INTO district
    SELECT 1, d, 'district', 'street', 'city', 'ST', '123456789', 0.1, 30000, 3001 FROM generate_series(1, 10) d;
INSERT INTO customer
    SELECT 1, d, c, 'first' || c, 'last' || c % 1000, 'GC', 0.1, -10, 10, 1, 0, repeat('x', 300)
    FROM generate_series(1, 10) d, generate_series(1, 3000) c;
INSERT INTO orders
    SELECT 1, d, o, (o * 7919) % 3000 + 1, CASE WHEN o < 2101 THEN 5 END, 10, timestamp '2024-01-01'
    FROM generate_series(1, 10) d, generate_series(1, 3000) o;
INSERT INTO new_order SELECT 1, d, o FROM generate_series(1, 10) d, generate_series(2101, 3000) o;
INSERT INTO order_line
    SELECT 1, d, o, l, (o * 31 + l * 7) % 100000 + 1, CASE WHEN o < 2101 THEN timestamp '2024-01-01' END, 10, 5,
        'of a district'
    FROM generate_series(1, 10) d, generate_series(1, 3000) o, generate_series(1, 10) l;
INSERT INTO item SELECT i, 'item' || i, 10, repeat('i', 30) FROM generate_series(1, 100000) i;
INSERT INTO stock SELECT 1, i, 50, 0, 0, repeat('s', 30), repeat('d', 24) FROM generate_series(1, 100000) i;
