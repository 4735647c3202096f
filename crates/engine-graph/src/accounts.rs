//! For tests: graphs of calls on a few accounts.
//!
//! ```text
//! move(value, ids)   from the first to the others, so it is one piece     set(value, ids)   independent actions
//! pay(value, src, dst), choose(value, by, one, other), mark(value, ids): dependent actions
//! level(value, from): all from one on, a range
//! ```

use crate::construction::{Material, construct};
use crate::decomposition::{Decompositions, Prefixes};
use crate::execution::Grounds;
use crate::graph::{Graph, Queue, Stamped};
use crate::{GraphEngine, Settings};
use fabius_engine::eager::Ground;
use fabius_engine::entry::Call;
use fabius_program::arguments;
use fabius_program::ir::Type;
use fabius_testing::rig::Rig;
use fabius_value::{Datum, Key, Seq, Value};
use std::sync::Arc;

const PROGRAMS: &str = "
    table accounts { id: int, balance: bigint, primary key (id) }
    table marks { id: int, value: bigint, primary key (id) }
    procedure open(count: int) {
        for id in 0 to count - 1 {
            insert accounts { id: id::int, balance: 0 }
            insert marks { id: id::int, value: 0 }
        }
    }
    procedure mark(value: bigint, ids: list of int) {
        for id in ids { if accounts[id].balance >= value { marks[id].value = value } }
    }
    procedure move(value: bigint, ids: list of int) {
        var change = -value
        for id in ids { accounts[id].balance += change change = value }
    }
    procedure pay(value: bigint, src: int, dst: int) {
        require accounts[src].balance >= value, \"insufficient funds\"
        accounts[src].balance = 0
        accounts[dst].balance = value
    }
    procedure choose(value: bigint, by: int, one: int, other: int) {
        if accounts[by].balance < value { accounts[one].balance = value } else { accounts[other].balance = value }
    }
    procedure level(value: bigint, src: int) { for account in accounts[src ..] { account.balance = value } }
    procedure set(value: bigint, ids: list of int) { for id in ids { accounts[id].balance = value } }
";

/// A call: the name of its procedure, and its accounts.
pub type Named<'n> = (&'n str, &'n [i32]);

/// The seq of the first call of a graph.
pub const FIRST: u64 = 100;

/// Builds the graph of calls on so many accounts, with seqs from [`FIRST`] on, for a test to look at.
pub fn with_graph<R>(accounts: i32, calls: &[Named<'_>], test: impl FnOnce(&mut Graph<'_>) -> R) -> R {
    with_grounds(accounts, calls, |graph, _| test(graph))
}

/// Builds that graph with what it takes to execute it.
pub fn with_grounds<R>(
    accounts: i32,
    calls: &[Named<'_>],
    test: impl for<'a> FnOnce(&mut Graph<'a>, Grounds<'a>) -> R,
) -> R {
    let rig = Rig::new(&|foundation| Arc::new(GraphEngine::new(foundation, Settings::default())));
    rig.define(PROGRAMS);
    rig.call("open", &[Value::Int(accounts)]).expect("they are new");
    let encoded = calls.iter().map(|(name, ids)| {
        let procedure = rig.procedure(name);
        let ids = ids.iter().map(|id| Value::Int(*id));
        let ids: Vec<Value> = match procedure.program.variables[1].ty {
            Type::List(_) => vec![Value::List(ids.map(|id| vec![id]).collect())],
            Type::Scalar(_) => ids.collect(),
        };
        let values: Vec<Value> = std::iter::once(Value::BigInt(1)).chain(ids).collect();
        (procedure.id, arguments::encode(&procedure.program, &values).expect("they fit"))
    });
    let encoded: Vec<_> = encoded.collect();
    let definitions = rig.foundation.definitions();
    let mut decompositions = Decompositions::default();
    decompositions.follow(&definitions, Seq::ZERO);
    let prefixes =
        Prefixes::of(&decompositions, encoded.iter().map(|(procedure, _)| *procedure), &definitions);
    let material = Material { definitions: &definitions, decompositions: &decompositions, prefixes };
    let stamped = encoded.iter().zip(FIRST..).map(|((procedure, arguments), seq)| {
        let call = Call { procedure: *procedure, arguments, key: None, wants_result: false };
        Stamped { call, seq: Seq(seq), time_us: 0, batch: None }
    });
    let stamped: Vec<_> = stamped.collect();
    let ground = Ground::new(rig.foundation.clone());
    let schema = ground.gate.read();
    let mut graph = Graph::default();
    construct(&material, &stamped, &mut graph);
    test(&mut graph, Grounds { material: &material, ground: &ground, schema: &schema })
}

/// The number of an account's queue, if it has one.
pub fn queue_of(graph: &Graph<'_>, account: i32) -> Option<usize> {
    let is_its = |queue: &Queue<'_>| {
        let mut key = Key::new();
        let table = queue.table.expect("no call has an idempotency key");
        table.encode_key(&[Datum::Int(account.into())], &mut key).expect("a short key");
        queue.key() == key.bytes()
    };
    graph.queues.iter().position(is_its)
}

/// The calls in an account's queue, by number, from the head on.
pub fn calls_at(graph: &Graph<'_>, account: i32) -> Vec<u32> {
    let first = queue_of(graph, account).map(|queue| graph.queues[queue].first);
    let action = |at: u32| graph.actions.get(at as usize);
    let queue = std::iter::successors(first.and_then(action), |found| action(found.next));
    queue.map(|found| found.call).collect()
}
