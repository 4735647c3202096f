//! What the one database is called: by `--database`, and by the names that tools connect to first.

use crate::raw::{Raw, field};
use crate::support::{Server, block_on};

/// Goal: the database has the name that it was given wherever it is asked for, whatever a client called it;
/// `postgres` and `template1` are other names of it.
#[test]
fn the_database_has_its_name() {
    let server = Server::start(&["--database", "app"]);
    for name in ["app", "postgres", "template1"] {
        let conninfo = format!("host=127.0.0.1 port={} dbname={name} user=tester", server.port());
        block_on(async {
            let client = crate::support::connect(&conninfo).await;
            for query in [
                "SELECT current_database()::text",
                "SELECT current_catalog::text",
                "SELECT datname::text FROM pg_database",
                "SELECT DISTINCT datname::text FROM pg_stat_activity",
                "SELECT DISTINCT table_catalog::text FROM information_schema.tables",
                "SELECT DISTINCT table_catalog::text FROM information_schema.columns",
                "SELECT DISTINCT catalog_name::text FROM information_schema.schemata",
                "SELECT catalog_name::text FROM information_schema.information_schema_catalog_name",
            ] {
                let rows = client.query(query, &[]).await.expect(query);
                let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
                assert_eq!(names, ["app"], "{query} on {name}");
            }
        });
    }
    let (_, refused) = Raw::begin_as(&server, "tester", "fabius");
    assert_eq!(field(&refused, b'C'), "3D000");
}
