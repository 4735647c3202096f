# What is written is of the column's type.
> create table typed (id int primary key, u uuid, j jsonb, t timestamptz, d date, i time, n numeric, s text)
> insert into typed values (1, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"b":1, "a":[1,2]}', '2024-01-02 03:04:05+00', '2024-05-06', '12:34:56', 1.5, 'x')
> insert into typed (id, j) values (2, null), (3, '[1,  2]'), (4, '"x"'), (5, '{"bb": 1, "a": 2}')
> select id, u, j, d, i, n, s from typed order by id
> update typed set j = '[]', s = 'y' where id = 1
> update typed set j = o.j, s = 'z' from (select 2 as id, '{"c":3}'::jsonb as j) o where typed.id = o.id
> insert into typed (id, j, d) select id + 10, '{"q": 1}', '2020-01-01' from typed where id < 3
> select id, j, d, s from typed order by id
> insert into typed (id, j) values (20, '{a')
> insert into typed (id, u) values (20, 'no')
> insert into typed (id) values ('x')
> insert into typed (id) values ($1)

# Columns that refer to a key follow it.
> create table parent (id int primary key)
> create table child (id int primary key, p int references parent on update cascade on delete set null, q int, constraint odd check (q is null or q > p))
> insert into parent values (1), (2)
> insert into child values (1, 1, 50), (2, 2, 50)
> update parent set id = 10 where id = 1
> delete from parent where id = 2
> select * from child order by id
> insert into child values (3, 3, 50)
> insert into child values (3, 10, 5)
> drop table parent
> drop table parent cascade

# An index finds what it does not take.
> create table twice (a int, b int)
> insert into twice values (1, 1), (1, 2)
> create unique index twice_a on twice (a)
> alter table twice add column c int not null
> alter table twice add constraint small check (b < 2)
> create table one (a int primary key)
> alter table twice add constraint known foreign key (a) references one

# Functions take one number of a sequence for each place that asks for one.
> create table numbered (id serial primary key, x int)
> create function fill(n int) returns int language plpgsql as $$
  begin
    for i in 1..n loop
      insert into numbered (x) values (i);
    end loop;
    return n;
  end $$

# Temporary tables, in programs and queries.
> create temporary table passing (a int, b text)
> insert into passing values (2, 'b'), (1, 'a')
> select * from passing order by a
> select b, count(*) from passing group by b order by b
> drop table passing

# Calls that bear a key.
> begin
> set local fabius.idempotency_key = 'once'
> insert into one values (1)
> commit
> select fabius.outcome('once')
> select fabius.outcome('never')

# Schemas and what is in them.
> create schema inner_one
> create table inner_one.t (a int primary key)
> drop schema inner_one
> drop schema inner_one cascade
