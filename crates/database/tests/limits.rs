//! The bounds of keys, values, arguments and idempotency keys: what just fits is taken, what is beyond is refused with
//! where it is, how large it may be, and what to do.

use fabius::{Database, EngineKind, Options, Value};
use fabius_value::limit;

fn told(result: fabius::Result<Vec<Value>>) -> String {
    match result {
        Ok(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
        Err(error) => format!("{error:?}"),
    }
}

fn text(bytes: usize) -> Value {
    Value::Text("x".repeat(bytes))
}

fn database(engine: EngineKind, definitions: &str) -> Database {
    let database = Database::in_memory(Options { engine, workers: 1, ..Options::default() });
    database.define(definitions).unwrap();
    database
}

fn call(database: &Database, name: &str, arguments: &[Value]) -> String {
    told(database.call(name, arguments).and_then(|promise| promise.result()))
}

/// Goal: keys have 2,048 bytes with all engines: those of a text column are its own and two more.
#[test]
fn keys_have_a_bound() {
    let hint = "hint: keep what is long in a column of its own, and let the key have a part or a hash of it: \
                left(text, 100), md5(text)";
    for engine in EngineKind::ALL {
        let database = database(
            engine,
            "table pages { path: text, title: text, primary key (path), index titles (title) }
             procedure add(path: text, title: text) { insert pages { path: path, title: title } }
             procedure rename(path: text, title: text) { pages[path].title = title }
             procedure title(path: text) -> text null { return pages[path]?.title }",
        );
        let most = limit::KEY_BYTES - 4;
        assert_eq!(call(&database, "add", &[text(most), text(0)]), "", "{engine}");
        assert_eq!(call(&database, "add", &[text(most - 1000), text(1000)]), "", "{engine}");
        let entry = format!(
            "[54000] index key too long for titles, an index of pages (line 2); the index's columns and the primary key \
             together have more than 2048 bytes; {hint}"
        );
        assert_eq!(call(&database, "add", &[text(most - 1), text(2)]), entry, "{engine}");
        assert_eq!(call(&database, "rename", &[text(most), text(1)]), entry, "{engine}");
        let key =
            format!("[54000] key too long (line 2); its columns together have more than 2048 bytes; {hint}");
        assert_eq!(call(&database, "add", &[text(limit::KEY_BYTES - 1), text(0)]), key, "{engine}");
        assert_eq!(call(&database, "title", &[text(limit::KEY_BYTES - 1)]), key, "{engine}");
        assert_eq!(call(&database, "title", &[text(most)]), "", "{engine}");
        assert_eq!(database.rows("pages").unwrap().len(), 2, "{engine}");
    }
}

/// Goal: one value has 16 MiB, whether it is given or computed.
#[test]
fn values_have_a_bound() {
    let database = database(
        EngineKind::Lazy,
        "table notes { id: bigint, body: text, primary key (id) }
         procedure put(id: bigint, body: text) { upsert notes { id: id, body: body } }
         procedure extend(id: bigint, more: text) { notes[id].body = notes[id].body || more }
         procedure size(id: bigint) -> int { return length(notes[id].body) }",
    );
    assert_eq!(call(&database, "put", &[1i64.into(), text(limit::BLOB_BYTES)]), "");
    assert_eq!(
        call(&database, "put", &[2i64.into(), text(limit::BLOB_BYTES + 1)]),
        "[54000] argument body: value too large; expected text; it has 16777217 bytes, at most 16777216 are allowed; hint: divide it among several rows"
    );
    assert_eq!(call(&database, "extend", &[1i64.into(), text(0)]), "");
    assert_eq!(
        call(&database, "extend", &[1i64.into(), text(1)]),
        "[54000] value too large (line 2); it has 16777217 bytes, at most 16777216 are allowed; hint: divide it among several rows"
    );
    assert_eq!(call(&database, "size", &[1i64.into()]), limit::BLOB_BYTES.to_string());
}

/// Goal: the arguments of one call have 64 MiB together.
#[test]
fn arguments_have_a_bound() {
    let database = database(
        EngineKind::Lazy,
        "table notes { id: bigint, primary key (id) }
         procedure count_all(all: list of text) -> bigint { return count(all) }",
    );
    let list = |values: usize| Value::List(vec![vec![text(limit::ARGUMENT_BYTES / 5)]; values]);
    let counted = |values: usize| told(database.query("count_all", &[list(values)]));
    assert_eq!(counted(4), "4");
    assert_eq!(
        counted(5),
        "[54000] arguments too large; they have 67108881 bytes, at most 67108864 are allowed; hint: divide the work among several calls"
    );
}

/// Goal: idempotency keys have 256 bytes.
#[test]
fn idempotency_keys_have_a_bound() {
    let database = database(
        EngineKind::Lazy,
        "table notes { id: bigint, primary key (id) }
         procedure put(id: bigint) { upsert notes { id: id } }",
    );
    let put = |bytes: usize| {
        let call = database.prepare("put").unwrap().with_key("k".repeat(bytes)).call(&[1i64.into()]);
        told(call.and_then(|promise| promise.result()))
    };
    assert_eq!(put(limit::IDEMPOTENCY_KEY_BYTES), "");
    assert_eq!(
        put(limit::IDEMPOTENCY_KEY_BYTES + 1),
        "[54000] idempotency key too long; it has 257 bytes, at most 256 are allowed; hint: a number or a hash that tells \
         the call from others will do"
    );
}
