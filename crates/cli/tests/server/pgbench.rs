//! pgbench: its tables, its built-in scripts, each way to send statements.

use crate::support::{Server, has, program, succeed};
use std::process::Command;

fn pgbench(server: &Server, arguments: &[&str]) -> String {
    let mut command = Command::new("pgbench");
    let port = server.port();
    command.args(["-h", "127.0.0.1", "-p", &port, "-U", "tester"]).args(arguments).arg("fabius");
    succeed(&mut command)
}

/// Goal: `pgbench -i` and all scripts run in all modes, without a failed transaction, and money is neither made nor
/// lost.
#[test]
fn pgbench_works() {
    if !has("pgbench", &program("pgbench")) {
        return;
    }
    let server = Server::start(&["--durability", "none"]);
    pgbench(&server, &["-i", "-s", "1"]);
    for mode in ["simple", "extended", "prepared"] {
        for script in ["tpcb-like", "simple-update", "select-only"] {
            let printed =
                pgbench(&server, &["-n", "-M", mode, "-b", script, "-c", "4", "-t", "25", "--max-tries=100"]);
            assert!(
                printed.contains("number of transactions actually processed: 100/100"),
                "{mode} {script}: {printed}"
            );
        }
    }
    server.run(
        "DO $$ BEGIN
             IF (SELECT sum(bbalance) FROM pgbench_branches) <> (SELECT sum(tbalance) FROM pgbench_tellers) THEN
                 RAISE EXCEPTION 'branches and tellers differ';
             END IF;
         END $$",
    );
}
