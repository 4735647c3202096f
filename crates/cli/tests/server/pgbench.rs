//! pgbench: its tables, its built-in scripts, each way to send statements; on a cluster, while the lead goes from
//! node to node.

use crate::cluster::{Cluster, connect_patiently};
use crate::support::{Server, block_on, has, program, succeed};
use std::process::Command;
use std::time::Duration;

fn pgbench(server: &Server, arguments: &[&str]) -> String {
    let conninfo = format!("host=127.0.0.1 port={} dbname=fabius user=tester", server.port());
    succeed(Command::new("pgbench").args(arguments).arg(conninfo))
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

/// Goal: clients that stay at their node lose nothing and do nothing twice while the lead goes from node to node, and
/// comes to theirs: what they have done is there, with no transaction failed but those that are tried again.
#[test]
fn pgbench_goes_on_while_the_lead_is_handed_on() {
    if !has("pgbench", &program("pgbench")) {
        return;
    }
    let mut cluster = Cluster::start();
    let first = cluster.leader();
    succeed(Command::new("pgbench").args(["-i", "-s", "1", "-q"]).arg(cluster.conninfo_of(first)));
    let stays = (first + 1) % 3;
    // It takes connections by then.
    block_on(connect_patiently(&[cluster.conninfo_of(stays)]));
    let mut load = Command::new("pgbench");
    load.args(["-n", "-b", "tpcb-like", "-c", "4", "-T", "4", "--max-tries=0"])
        .arg(cluster.conninfo_of(stays));
    let load = std::thread::spawn(move || succeed(&mut load));
    let mut leads = first;
    while !load.is_finished() {
        leads = (leads + 1) % 3;
        cluster.command(&["transfer", &(leads + 1).to_string()]);
        std::thread::sleep(Duration::from_millis(400));
    }
    let printed = load.join().expect("pgbench ends");
    let number = |what: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(what));
        line.and_then(|rest| rest.split([' ', '/']).next()).and_then(|count| count.parse::<i64>().ok())
    };
    let done = number("number of transactions actually processed: ").expect("a count");
    assert!(done > 50, "{printed}");
    assert_eq!(number("number of failed transactions: "), Some(0), "{printed}");
    block_on(async {
        for node in 0..3 {
            let reader = connect_patiently(&[cluster.conninfo_of(node)]).await;
            let query = "SELECT (SELECT count(*) FROM pgbench_history),
                 (SELECT sum(delta)::bigint FROM pgbench_history), (SELECT sum(bbalance)::bigint FROM pgbench_branches),
                 (SELECT sum(tbalance)::bigint FROM pgbench_tellers), (SELECT sum(abalance)::bigint FROM pgbench_accounts)";
            let row = reader.query_one(query, &[]).await.expect("the sums");
            let [count, sum, branches, tellers, accounts] = [0, 1, 2, 3, 4].map(|at| row.get::<_, i64>(at));
            assert_eq!(count, done, "node {node}");
            assert_eq!([branches, tellers, accounts], [sum; 3], "node {node}");
        }
    });
}
