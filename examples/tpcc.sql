-- TPC-C's five transactions as procedures in PL/pgSQL, as one would write them for PostgreSQL.
--
--     fabius serve &
--     psql -h localhost -p 5433 fabius -f examples/tpcc.sql
--     fabius=# CALL new_order(1, 1, 1, ARRAY[1, 2], ARRAY[1, 1], ARRAY[5, 3], NULL, NULL);
--     fabius=# EXPLAIN CALL new_order(1, 1, 1, ARRAY[1, 2], ARRAY[1, 1], ARRAY[5, 3], NULL, NULL);
--
-- The tables are the benchmark's (TPC-C 5.11, clause 1.3), filled with a small part of its rows. The file runs on
-- PostgreSQL as it is.

CREATE TABLE warehouse (
    w_id integer PRIMARY KEY,
    w_name varchar(10) NOT NULL,
    w_tax numeric(4, 4) NOT NULL,
    w_ytd numeric(12, 2) NOT NULL
);

CREATE TABLE district (
    d_w_id integer REFERENCES warehouse,
    d_id integer,
    d_name varchar(10) NOT NULL,
    d_tax numeric(4, 4) NOT NULL,
    d_ytd numeric(12, 2) NOT NULL,
    d_next_o_id integer NOT NULL,
    PRIMARY KEY (d_w_id, d_id)
);

CREATE TABLE customer (
    c_w_id integer,
    c_d_id integer,
    c_id integer,
    c_first varchar(16) NOT NULL,
    c_last varchar(16) NOT NULL,
    c_credit char(2) NOT NULL,
    c_discount numeric(4, 4) NOT NULL,
    c_balance numeric(12, 2) NOT NULL,
    c_ytd_payment numeric(12, 2) NOT NULL,
    c_payment_cnt integer NOT NULL,
    c_delivery_cnt integer NOT NULL,
    c_data varchar(500) NOT NULL,
    PRIMARY KEY (c_w_id, c_d_id, c_id),
    FOREIGN KEY (c_w_id, c_d_id) REFERENCES district
);
CREATE INDEX customer_by_name ON customer (c_w_id, c_d_id, c_last, c_first);

CREATE TABLE history (
    h_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    h_c_id integer NOT NULL,
    h_c_d_id integer NOT NULL,
    h_c_w_id integer NOT NULL,
    h_d_id integer NOT NULL,
    h_w_id integer NOT NULL,
    h_date timestamp NOT NULL,
    h_amount numeric(6, 2) NOT NULL,
    h_data varchar(24) NOT NULL
);

CREATE TABLE item (
    i_id integer PRIMARY KEY,
    i_name varchar(24) NOT NULL,
    i_price numeric(5, 2) NOT NULL,
    i_data varchar(50) NOT NULL
);

CREATE TABLE stock (
    s_w_id integer,
    s_i_id integer REFERENCES item,
    s_quantity integer NOT NULL,
    s_ytd integer NOT NULL,
    s_order_cnt integer NOT NULL,
    s_remote_cnt integer NOT NULL,
    s_data varchar(50) NOT NULL,
    PRIMARY KEY (s_w_id, s_i_id)
);

CREATE TABLE orders (
    o_w_id integer,
    o_d_id integer,
    o_id integer,
    o_c_id integer NOT NULL,
    o_entry_d timestamp NOT NULL,
    o_carrier_id integer,
    o_ol_cnt integer NOT NULL,
    o_all_local boolean NOT NULL,
    PRIMARY KEY (o_w_id, o_d_id, o_id)
);
CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id);

CREATE TABLE new_orders (
    no_w_id integer,
    no_d_id integer,
    no_o_id integer,
    PRIMARY KEY (no_w_id, no_d_id, no_o_id)
);

CREATE TABLE order_line (
    ol_w_id integer,
    ol_d_id integer,
    ol_o_id integer,
    ol_number integer,
    ol_i_id integer NOT NULL,
    ol_supply_w_id integer NOT NULL,
    ol_delivery_d timestamp,
    ol_quantity integer NOT NULL,
    ol_amount numeric(6, 2) NOT NULL,
    PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)
);

-- Clause 2.4: an order of 5 to 15 items, of which some may come from other warehouses.
CREATE PROCEDURE new_order(
    p_w_id integer,
    p_d_id integer,
    p_c_id integer,
    p_items integer[],
    p_supply_w_ids integer[],
    p_quantities integer[],
    INOUT o_number integer,
    INOUT o_total numeric
)
LANGUAGE plpgsql AS $$
DECLARE
    v_w_tax warehouse.w_tax%TYPE;
    v_d_tax district.d_tax%TYPE;
    v_discount customer.c_discount%TYPE;
    v_price item.i_price%TYPE;
    v_amount order_line.ol_amount%TYPE;
    v_quantity integer;
    v_lines integer := array_length(p_items, 1);
    v_is_local boolean := true;
BEGIN
    SELECT w_tax INTO STRICT v_w_tax FROM warehouse WHERE w_id = p_w_id;

    UPDATE district SET d_next_o_id = d_next_o_id + 1
    WHERE d_w_id = p_w_id AND d_id = p_d_id
    RETURNING d_next_o_id - 1, d_tax INTO o_number, v_d_tax;

    SELECT c_discount INTO STRICT v_discount
    FROM customer WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_id = p_c_id;

    FOR i IN 1 .. v_lines LOOP
        IF p_supply_w_ids[i] <> p_w_id THEN
            v_is_local := false;
        END IF;
    END LOOP;

    INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
    VALUES (p_w_id, p_d_id, o_number, p_c_id, now(), v_lines, v_is_local);
    INSERT INTO new_orders VALUES (p_w_id, p_d_id, o_number);

    o_total := 0;
    FOR i IN 1 .. v_lines LOOP
        SELECT i_price INTO v_price FROM item WHERE i_id = p_items[i];
        IF NOT FOUND THEN
            RAISE EXCEPTION 'item number is not valid' USING ERRCODE = 'TPCC1', DETAIL = 'item ' || p_items[i];
        END IF;

        SELECT s_quantity INTO STRICT v_quantity
        FROM stock WHERE s_w_id = p_supply_w_ids[i] AND s_i_id = p_items[i]
        FOR UPDATE;

        IF v_quantity - p_quantities[i] >= 10 THEN
            v_quantity := v_quantity - p_quantities[i];
        ELSE
            v_quantity := v_quantity - p_quantities[i] + 91;
        END IF;

        UPDATE stock
        SET s_quantity = v_quantity,
            s_ytd = s_ytd + p_quantities[i],
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + CASE WHEN p_supply_w_ids[i] <> p_w_id THEN 1 ELSE 0 END
        WHERE s_w_id = p_supply_w_ids[i] AND s_i_id = p_items[i];

        v_amount := p_quantities[i] * v_price;
        INSERT INTO order_line (
            ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount
        ) VALUES (
            p_w_id, p_d_id, o_number, i, p_items[i], p_supply_w_ids[i], p_quantities[i], v_amount
        );
        o_total := o_total + v_amount;
    END LOOP;
    o_total := round(o_total * (1 - v_discount) * (1 + v_w_tax + v_d_tax), 2);
END $$;

-- Clause 2.5: a customer, by number or by last name, pays. Of several of one name it is the one in the middle.
CREATE PROCEDURE payment(
    p_w_id integer,
    p_d_id integer,
    p_c_w_id integer,
    p_c_d_id integer,
    INOUT p_c_id integer,
    p_c_last varchar,
    p_amount numeric,
    INOUT p_balance numeric DEFAULT NULL
)
LANGUAGE plpgsql AS $$
DECLARE
    v_w_name warehouse.w_name%TYPE;
    v_d_name district.d_name%TYPE;
    v_credit customer.c_credit%TYPE;
    v_count integer;
    r record;
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w_id RETURNING w_name INTO v_w_name;
    UPDATE district SET d_ytd = d_ytd + p_amount
    WHERE d_w_id = p_w_id AND d_id = p_d_id
    RETURNING d_name INTO v_d_name;

    IF p_c_id IS NULL THEN
        SELECT count(*) INTO v_count
        FROM customer WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last;
        v_count := (v_count + 1) / 2;
        FOR r IN
            SELECT c_id FROM customer
            WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last
            ORDER BY c_first
        LOOP
            v_count := v_count - 1;
            IF v_count = 0 THEN
                p_c_id := r.c_id;
                EXIT;
            END IF;
        END LOOP;
        IF p_c_id IS NULL THEN
            RAISE EXCEPTION 'no customer is called %', p_c_last USING ERRCODE = 'no_data_found';
        END IF;
    END IF;

    UPDATE customer
    SET c_balance = c_balance - p_amount,
        c_ytd_payment = c_ytd_payment + p_amount,
        c_payment_cnt = c_payment_cnt + 1
    WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = p_c_id
    RETURNING c_credit, c_balance INTO STRICT v_credit, p_balance;

    IF v_credit = 'BC' THEN
        UPDATE customer
        SET c_data = substr(
            p_c_id || ' ' || p_c_d_id || ' ' || p_c_w_id || ' ' || p_d_id || ' ' || p_w_id || ' ' || p_amount
                || '|' || c_data, 1, 500)
        WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = p_c_id;
    END IF;

    INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (p_c_d_id, p_c_w_id, p_c_id, p_d_id, p_w_id, now(), p_amount, v_w_name || '    ' || v_d_name);
END $$;

-- Clause 2.6: a customer's last order.
CREATE FUNCTION order_status(p_w_id integer, p_d_id integer, p_c_id integer)
RETURNS TABLE (o_id integer, carrier_id integer, i_id integer, supply_w_id integer, quantity integer, amount numeric)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_order orders%ROWTYPE;
BEGIN
    SELECT * INTO v_order
    FROM orders o WHERE o.o_w_id = p_w_id AND o.o_d_id = p_d_id AND o.o_c_id = p_c_id
    ORDER BY o.o_id DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY
        SELECT ol_o_id, v_order.o_carrier_id, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount
        FROM order_line WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id AND ol_o_id = v_order.o_id
        ORDER BY ol_number;
END $$;

-- Clause 2.7: the oldest order of each district is delivered.
CREATE FUNCTION delivery(p_w_id integer, p_carrier_id integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_o_id integer;
    v_c_id integer;
    v_total numeric(12, 2);
    v_delivered integer := 0;
BEGIN
    FOR d IN 1 .. 10 LOOP
        SELECT no_o_id INTO v_o_id
        FROM new_orders WHERE no_w_id = p_w_id AND no_d_id = d
        ORDER BY no_o_id LIMIT 1;
        CONTINUE WHEN NOT FOUND;

        DELETE FROM new_orders WHERE no_w_id = p_w_id AND no_d_id = d AND no_o_id = v_o_id;

        UPDATE orders SET o_carrier_id = p_carrier_id
        WHERE o_w_id = p_w_id AND o_d_id = d AND o_id = v_o_id
        RETURNING o_c_id INTO v_c_id;

        UPDATE order_line SET ol_delivery_d = now()
        WHERE ol_w_id = p_w_id AND ol_d_id = d AND ol_o_id = v_o_id;

        SELECT sum(ol_amount) INTO v_total
        FROM order_line WHERE ol_w_id = p_w_id AND ol_d_id = d AND ol_o_id = v_o_id;

        UPDATE customer
        SET c_balance = c_balance + v_total, c_delivery_cnt = c_delivery_cnt + 1
        WHERE c_w_id = p_w_id AND c_d_id = d AND c_id = v_c_id;

        v_delivered := v_delivered + 1;
    END LOOP;
    RETURN v_delivered;
END $$;

-- Clause 2.8: how many of the items of the last 20 orders are short.
CREATE FUNCTION stock_level(p_w_id integer, p_d_id integer, p_threshold integer) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_next integer;
    v_low bigint;
BEGIN
    SELECT d_next_o_id INTO STRICT v_next FROM district WHERE d_w_id = p_w_id AND d_id = p_d_id;
    SELECT count(DISTINCT s_i_id) INTO v_low
    FROM order_line
    JOIN stock ON s_w_id = p_w_id AND s_i_id = ol_i_id
    WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id AND ol_o_id BETWEEN v_next - 20 AND v_next - 1
      AND s_quantity < p_threshold;
    RETURN v_low;
END $$;

-- Two warehouses of ten districts, with 30 customers each (three of every last name), and 100 items.
INSERT INTO warehouse SELECT w, 'house' || w, 0.1, 0 FROM generate_series(1, 2) w;
INSERT INTO district SELECT w, d, 'district' || d, 0.05, 0, 1 FROM generate_series(1, 2) w, generate_series(1, 10) d;
INSERT INTO customer
SELECT w, d, c, 'first' || lpad((31 - c)::text, 2, '0'), 'last' || c % 10,
       CASE WHEN c % 10 = 0 THEN 'BC' ELSE 'GC' END, 0.02, -10, 10, 1, 0, 'data'
FROM generate_series(1, 2) w, generate_series(1, 10) d, generate_series(1, 30) c;
INSERT INTO item SELECT i, 'item' || i, (i % 90) + 1.25, 'data' FROM generate_series(1, 100) i;
INSERT INTO stock SELECT w, i, 20 + i % 80, 0, 0, 0, 'data' FROM generate_series(1, 2) w, generate_series(1, 100) i;
