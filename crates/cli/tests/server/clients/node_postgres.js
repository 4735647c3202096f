// node-postgres against a server: arguments are the host and the port.
const assert = require('assert');
const { Client, Pool } = require('pg');

const at = { host: process.argv[2], port: Number(process.argv[3]), user: 'tester', database: 'fabius' };

async function main() {
  const client = new Client(at);
  await client.connect();
  await client.query('DROP TABLE IF EXISTS node_items');
  await client.query('CREATE TABLE node_items (id integer PRIMARY KEY, name text, price numeric(10, 2), good boolean)');
  const inserted = await client.query(
    'INSERT INTO node_items VALUES ($1, $2, $3, $4) RETURNING id, name', [1, 'one', '2.50', true]);
  assert.strictEqual(inserted.command, 'INSERT');
  assert.deepStrictEqual(inserted.rows, [{ id: 1, name: 'one' }]);
  const selected = await client.query('SELECT * FROM node_items WHERE id = $1', [1]);
  assert.deepStrictEqual(selected.rows, [{ id: 1, name: 'one', price: '2.50', good: true }]);

  for (let id = 2; id < 12; id++) {
    await client.query({ name: 'insert', text: 'INSERT INTO node_items (id, name) VALUES ($1, $2)', values: [id, `n${id}`] });
  }
  const several = await client.query('SELECT 1 AS a; SELECT 2 AS b');
  assert.deepStrictEqual(several.map((result) => result.rows[0]), [{ a: 1 }, { b: 2 }]);

  await assert.rejects(client.query('INSERT INTO node_items (id) VALUES (1)'), { code: '23505' });
  await assert.rejects(client.query('SELECT nothing FROM node_items'), { code: '42703' });

  await client.query('BEGIN');
  const updated = await client.query('UPDATE node_items SET name = $1 WHERE id < $2', ['x', 4]);
  assert.strictEqual(updated.rowCount, 3);
  await client.query('ROLLBACK');
  const name = await client.query('SELECT name FROM node_items WHERE id = 2');
  assert.strictEqual(name.rows[0].name, 'n2');
  await client.end();

  const pool = new Pool({ ...at, max: 8 });
  await Promise.all(Array.from({ length: 100 }, (_, at) =>
    pool.query('UPDATE node_items SET price = coalesce(price, 0) + 1 WHERE id = $1', [2 + at % 2])));
  const sums = await pool.query('SELECT id, price FROM node_items WHERE id IN (2, 3) ORDER BY id');
  assert.deepStrictEqual(sums.rows.map((row) => row.price), ['50.00', '50.00']);
  await pool.query('DROP TABLE node_items');
  await pool.end();
  console.log('ok');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
