//! Small runs of every workload on every engine: the checks hold, and reports have the shape that
//! scripts rely on.

use fabius::{Durability, EngineKind, Result};
use fabius_bench::arrivals::Arrivals;
use fabius_bench::closed_loop::{self, Limit, Plan};
use fabius_bench::interrupt::Interrupt;
use fabius_bench::loading;
use fabius_bench::measured::Measured;
use fabius_bench::open_loop;
use fabius_bench::recorder::Recorder;
use fabius_bench::run::{self, RunOptions};
use fabius_bench::settings::Settings;
use fabius_bench::target::{Target, TargetOptions};
use fabius_bench::workload::{ClientPlace, Workload, WorkloadKind};
use fabius_bench::workload_list::{self, WORKLOADS};
use fabius_bench::workloads::own::Own;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A workload's settings, small enough for a test.
fn small(kind: &WorkloadKind) -> Settings {
    let mut settings = kind.defaults();
    let list: &[&str] = match kind.name {
        "rmw10" => &["records=2000", "record_bytes=64", "distribution=normal", "reads=0.01"],
        "burst" => &["records=2000", "record_bytes=64", "base=3000", "queue=500"],
        "cart" => &["items=100", "clients=200"],
        "tpcc" => &["warehouses=2", "items=200", "customers=60"],
        "hot" => &["keys=100", "theta=0.9"],
        "ycsb" => &["records=1200", "partitions=3", "cross=0.3", "theta=0.9", "ops=6"],
        "like" => &["users=50", "pages=50"],
        "rubis" => &["users=200", "items=100", "bids=skewed"],
        "assert" => &["keys=128", "initial=5"],
        "calvin-micro" => &["hot_records=5", "records=200", "names=20", "dependent=0.4"],
        other => panic!("{other} needs small settings here"),
    };
    list.iter().chain(&["batch=16"]).for_each(|assignment| settings.set(assignment).unwrap());
    settings
}

fn target(kind: &WorkloadKind, settings: &Settings, engine: EngineKind) -> Result<Target> {
    let interrupt = Interrupt::default();
    let options = TargetOptions { engine, durability: Durability::None, parent: None, interrupt };
    loading::load(&options, &*(kind.build)(settings), settings)
}

fn run_closed(target: &Target, workload: &dyn Workload, settings: &Settings, plan: Plan) -> Measured {
    closed_loop::run(target, workload, settings, plan, &Interrupt::default(), &mut |_| {}).unwrap()
}

/// Goal: whatever the engine, threads and chain bound, the rows are what the calls make of them, and
/// no call is lost or aborted for the engine's own reasons; also in a second run on the same rows, and
/// after reopening.
#[test]
fn checks_hold_on_every_engine() {
    for kind in WORKLOADS {
        for engine in EngineKind::ALL {
            let settings = small(kind);
            let workload = (kind.build)(&settings);
            let mut target = target(kind, &settings, engine).unwrap();
            for (threads, bound) in [(1, 1), (3, 10)] {
                let settings = settings.with(&[("chain_bound", &bound)]);
                let plan = Plan { threads, limit: Limit::Calls(1050, Duration::from_secs(600)) };
                let measured = run_closed(&target, &*workload, &settings, plan);
                let seen: &Recorder = &measured.seen;
                assert_eq!(seen.committed_total() + seen.aborted_total(), 1050 * threads as u64);
                assert_eq!((seen.conflicts, measured.counts.backlog), (0, 0), "{} on {engine}", kind.name);
                let verdict = workload.check(&target).unwrap();
                assert!(verdict.is_ok(), "{} on {engine}: {verdict:?}", kind.name);
                if kind.name == "calvin-micro" {
                    // Names that change while calls look for them; by the clock, so not in the settings above.
                    let settings = settings.with(&[("volatility", &1000)]);
                    let workload = (kind.build)(&settings);
                    run_closed(&target, &*workload, &settings, plan);
                    assert!(target.committed("exchange_names") > 0);
                    let verdict = workload.check(&target).unwrap();
                    assert!(verdict.is_ok(), "{} on {engine}: {verdict:?}", kind.name);
                }
                // The next run's clients begin with empty carts.
                if kind.name == "cart" {
                    break;
                }
            }
            target = target.reopen(&settings).unwrap();
            assert!(workload.check(&target).unwrap().is_ok(), "{} on {engine}, reopened", kind.name);
        }
    }
}

/// Goal: a check that should fail does.
#[test]
fn checks_notice_calls_they_do_not_know_of() {
    let kind = workload_list::find("hot").unwrap();
    let settings = small(kind);
    let target = target(kind, &settings, EngineKind::Lazy).unwrap();
    target.database.call("increment", &[7i64.into()]).unwrap();
    let why = (kind.build)(&settings).check(&target).unwrap().unwrap_err();
    assert_eq!(why, "the counters add up to 1, but 0 increments committed");
}

/// Goal: the same seed gives the same calls; another client, run or seed gives others.
#[test]
fn calls_follow_from_the_seed() {
    for kind in WORKLOADS {
        let calls = |seed: u64, number: usize, run: u64| {
            let settings = small(kind).with(&[("seed", &seed)]);
            let mut client = (kind.build)(&settings).client(ClientPlace { number, count: 2, run });
            let mut bytes = Vec::new();
            let operations: Vec<usize> = (0..100).map(|_| client.next(&mut bytes)).collect();
            (operations, bytes)
        };
        assert_eq!(calls(1, 0, 0), calls(1, 0, 0), "{}", kind.name);
        assert!(calls(1, 0, 0) != calls(2, 0, 0) && calls(1, 0, 0) != calls(1, 1, 0), "{}", kind.name);
        assert_ne!(calls(1, 0, 0), calls(1, 0, 1), "{}", kind.name);
    }
}

/// Goal: TPC-C's check finds what breaks each of its conditions, and where; and nothing once that is mended.
#[test]
fn tpcc_notices_what_is_inconsistent() {
    let kind = workload_list::find("tpcc").unwrap();
    let settings = small(kind);
    let workload = (kind.build)(&settings);
    let target = target(kind, &settings, EngineKind::Lazy).unwrap();
    // The last 18 of 60 orders are not delivered yet.
    let cases = [
        ("warehouse[2].w_ytd += 0.01", "warehouse[2].w_ytd -= 0.01", "condition 1: warehouse 2 has"),
        ("district[1, 3].d_ytd -= 0.01", "district[1, 3].d_ytd += 0.01", "condition 1: warehouse 1 has"),
        (
            "district[2, 4].d_next_o_id += 1",
            "district[2, 4].d_next_o_id -= 1",
            "warehouse 2, district 4: condition 2: next order after 61, orders to 60, new orders to 60",
        ),
        (
            "delete new_order[1, 10, 60]",
            "insert new_order { no_w_id: 1, no_d_id: 10, no_o_id: 60 }",
            "warehouse 1, district 10: condition 2: next order after 60, orders to 60, new orders to 59",
        ),
        (
            "delete new_order[1, 2, 50]",
            "insert new_order { no_w_id: 1, no_d_id: 2, no_o_id: 50 }",
            "warehouse 1, district 2: condition 3: 17 new orders span 18 numbers",
        ),
        (
            "orders[2, 1, 7].o_ol_cnt += 1",
            "orders[2, 1, 7].o_ol_cnt -= 1",
            "warehouse 2, district 1: condition 4: orders say ",
        ),
    ];
    let holds = || assert!(workload.check(&target).unwrap().is_ok());
    holds();
    for (number, (breaks, mends, expected)) in cases.into_iter().enumerate() {
        let call = |name: String, statement: &str| {
            target.database.define(&format!("procedure {name}() {{ {statement} }}")).unwrap();
            target.database.call(&name, &[]).unwrap();
        };
        call(format!("break_{number}"), breaks);
        let told = workload.check(&target).unwrap().unwrap_err();
        assert!(told.starts_with(expected), "after {breaks}: {told}");
        call(format!("mend_{number}"), mends);
        holds();
    }
    // A line fewer than orders say, which is not brought back.
    target.database.define("procedure lose_a_line() { delete order_line[1, 1, 1, 1] }").unwrap();
    target.database.call("lose_a_line", &[]).unwrap();
    let told = workload.check(&target).unwrap().unwrap_err();
    assert!(told.starts_with("warehouse 1, district 1: condition 4: orders say "), "{told}");
}

/// Goal: the JSON object has the keys that scripts rely on, in their order, and no others.
#[test]
fn json_has_the_keys_that_scripts_rely_on() {
    let kind = workload_list::find("tpcc").unwrap();
    let settings = small(kind);
    let options = RunOptions {
        workload: (kind.build)(&settings).into(),
        name: kind.name.into(),
        engines: EngineKind::ALL.to_vec(),
        threads: 2,
        time: Duration::from_millis(30),
        durability: Durability::None,
        settings,
        parent: None,
    };
    let reports = run::run(&options, &Interrupt::default(), &mut |_| {}).unwrap();
    assert_eq!(reports.len(), EngineKind::ALL.len());
    for report in &reports {
        let json = report.json();
        let keys = |json: &serde_json::Value| {
            json.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            keys(&json),
            "workload engine settings threads seconds committed aborted_user aborted_conflict retries substantiated \
             skipped throughput_tps latency_us durability log_bytes peak_rss_bytes \
             reserved_memory_bytes check"
        );
        assert_eq!(keys(&json["latency_us"]), "commit result");
        assert_eq!(keys(&json["latency_us"]["commit"]), "p50 p99 p999 max");
        assert_eq!((json["check"].as_str(), json["aborted_conflict"].as_u64()), (Some("pass"), Some(0)));
        assert_eq!((&json["settings"]["warehouses"], &json["settings"]["mix"]), (&2.into(), &"full".into()));
        assert!(json["committed"].as_u64().unwrap() > 0);
    }
    assert!(run::table(&reports).contains("new-order: commit p50 / p99"));
}

/// Goal: clients that make nothing but queries come to their end, and have made some however short the run.
#[test]
fn a_run_of_queries_alone_ends() {
    let kind = workload_list::find("like").unwrap();
    let mut settings = small(kind);
    settings.set("writes=0").unwrap();
    settings.set("read_as=snapshot").unwrap();
    let options = RunOptions {
        workload: (kind.build)(&settings).into(),
        name: kind.name.into(),
        engines: EngineKind::ALL.to_vec(),
        threads: 2,
        time: Duration::ZERO,
        durability: Durability::None,
        settings,
        parent: None,
    };
    for report in run::run(&options, &Interrupt::default(), &mut |_| {}).unwrap() {
        assert!(report.measured.seen.committed_total() > 0, "{}", report.engine);
    }
}

/// Goal: what arrives is decided or refused, and every sample's numbers add up to the whole.
#[test]
fn samples_add_up() {
    let kind = workload_list::find("burst").unwrap();
    let settings = small(kind);
    for engine in EngineKind::ALL {
        let target = target(kind, &settings, engine).unwrap();
        let arrivals = Arrivals {
            base_tps: 2000.0,
            spike: 3.0,
            spike_between: (0.2, 0.4),
            queue_calls: 100_000,
            is_random: true,
        };
        let workload = (kind.build)(&settings);
        let offered = arrivals.over(Duration::from_millis(500));
        let open =
            open_loop::run(&target, &*workload, &settings, &offered, 2, &Interrupt::default()).unwrap();
        assert_eq!(open.refused, 0);
        assert_eq!(open.samples.iter().map(|sample| sample.offered).sum::<u64>(), open.offered);
        assert_eq!(open.measured.seen.committed_total(), open.offered, "{engine}");
        assert_eq!(open.samples.iter().map(|sample| sample.done).sum::<u64>(), open.offered, "{engine}");
        assert!(workload.check(&target).unwrap().is_ok());
    }
}

/// Goal: unknown names are answered with those there are.
#[test]
fn errors_name_what_there_is() {
    let error = workload_list::find("tpch").err().unwrap();
    assert_eq!(
        error.to_string(),
        "there is no workload \"tpch\"; hint: workloads are rmw10, cart, burst, tpcc, ycsb, hot, assert, like, \
         rubis, calvin-micro"
    );
    let error = fabius_bench::figure::FigureKind::find("lazy-9").err().unwrap();
    assert!(error.hint().unwrap().starts_with("figures are lazy-3, lazy-4"));
}

/// Goal: a user's own program file runs on every engine, and the rows are those of the calls one at a time.
#[test]
fn a_program_file_is_a_workload() {
    let path = Path::new("programs/bank.fab");
    let settings = Settings::new("bank.fab", &[]);
    let described = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
    let load = described(&["open_account(1..50, null, 100)"]);
    let calls = described(&["3*transfer(1..50, 1..50, 1..20)", "balance(1..50)"]);
    let workload: Arc<dyn Workload> = Arc::new(Own::open(path, &load, &calls, &settings).unwrap());
    let options = RunOptions {
        workload,
        name: "bank.fab".into(),
        engines: EngineKind::ALL.to_vec(),
        threads: 2,
        time: Duration::from_millis(30),
        durability: Durability::None,
        settings: settings.clone(),
        parent: None,
    };
    let reports = run::run(&options, &Interrupt::default(), &mut |_| {}).unwrap();
    for report in &reports {
        assert_eq!(report.check, Ok("50 rows of 1 tables are what the calls give one at a time".into()));
        assert!(report.measured.seen.committed_total() > 0, "{}", report.engine);
    }
    let nothing = Own::open(path, &load, &[], &settings).err().unwrap();
    assert!(nothing.detail().unwrap().contains("transfer(src, dst, amount)"));
}

/// Goal: a setting that a workload at a rate of its own has no use for is refused, not passed over.
#[test]
fn settings_without_effect_are_refused() {
    let kind = workload_list::find("burst").unwrap();
    let settings = kind.defaults().with(&[("idle", &"off")]);
    let options = RunOptions {
        workload: (kind.build)(&settings).into(),
        name: kind.name.into(),
        engines: vec![EngineKind::Lazy],
        threads: 2,
        time: Duration::from_millis(30),
        durability: Durability::None,
        settings,
        parent: None,
    };
    let error = run::run(&options, &Interrupt::default(), &mut |_| {}).map(|_| ()).unwrap_err();
    assert_eq!(error.message(), "idle does nothing in workload burst");
}
