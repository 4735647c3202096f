//! The place of calls and definitions in the order: time, keys, log, closing.

use super::programs::BANK;
use super::{aborts, bank, big, int};
use crate::rig::{Make, Rig};
use fabius_engine::{BatchBuilder, entry};
use fabius_env::{Fault, Random};
use fabius_value::{Seq, SqlState};
use std::time::Duration;

pub(super) fn a_key_is_used_once(make: Make<'_>) {
    let rig = bank(make, 2, 100);
    let transfer = |amount, key: &[u8]| rig.call_with("transfer", &[int(0), int(1), big(amount)], Some(key));
    assert_eq!(transfer(10, b"one"), Ok(vec![big(90)]));
    assert_eq!(transfer(10, b"one"), Ok(vec![big(90)]));
    let refused = transfer(1000, b"two").unwrap_err();
    rig.call("add", &[int(0), big(5000)]).unwrap();
    assert_eq!(transfer(1000, b"two"), Err(refused.clone()));
    assert_eq!(transfer(1000, b"three"), Ok(vec![big(4090)]));
    // Also after the log has been read again.
    let again = rig.replayed(make);
    let transfer =
        |amount, key: &[u8]| again.call_with("transfer", &[int(0), int(1), big(amount)], Some(key));
    assert_eq!(transfer(10, b"one"), Ok(vec![big(90)]));
    assert_eq!(transfer(1000, b"two"), Err(refused));
    assert_eq!(again.query("see", &[int(0)]), Ok(vec![big(4090), big(100)]));
}

pub(super) fn keys_are_forgotten_by_seq(make: Make<'_>) {
    let rig = bank(make, 2, 100);
    rig.engine.amend(&entry::encode_key_window(10)).unwrap();
    let balance = |rig: &Rig| rig.query("see", &[int(0)]).unwrap()[0].clone();
    rig.call_with("add", &[int(0), big(1)], Some(b"key")).unwrap();
    for _ in 0..9 {
        rig.call("add", &[int(1), big(1)]).unwrap();
    }
    // The tenth call behind the first one still gets its outcome, the eleventh is a call of its own.
    rig.call_with("add", &[int(0), big(1)], Some(b"key")).unwrap();
    assert_eq!(balance(&rig), big(101));
    rig.call("add", &[int(1), big(1)]).unwrap();
    let written = rig.checkpoint();
    rig.call_with("add", &[int(0), big(1)], Some(b"key")).unwrap();
    assert_eq!(balance(&rig), big(102));
    rig.call_with("add", &[int(0), big(1)], Some(b"key")).unwrap();
    assert_eq!(balance(&rig), big(102));
    // Also when the log is read again, and whatever is wanted from then on.
    for again in [rig.replayed(make), rig.after_checkpoint(make, &written)] {
        assert_eq!(balance(&again), big(102));
        again.engine.amend(&entry::encode_key_window(1000)).unwrap();
        again.call_with("add", &[int(0), big(1)], Some(b"key")).unwrap();
        assert_eq!(balance(&again), big(102));
    }
}

pub(super) fn now_is_the_logged_time(make: Make<'_>) {
    let rig = bank(make, 2, 10);
    for id in [0, 1, 0] {
        rig.clock.advance(Duration::from_secs(100));
        rig.call("stamp", &[int(id)]).unwrap();
    }
    let rows = rig.rows("accounts");
    assert_ne!(rows[0][1], rows[1][1]);
    assert_ne!(rows[0][3], rows[1][3]);
    // Another time has come, and the same is said again.
    assert_eq!(rig.replayed(make).rows("accounts"), rows);
}

pub(super) fn time_never_goes_back(make: Make<'_>) {
    let rig = bank(make, 2, 10);
    let stamped = |rig: &Rig, id: i32| {
        rig.call("stamp", &[int(id)]).unwrap();
        rig.rows("accounts")[id as usize][1].to_string()
    };
    rig.clock.advance(Duration::from_secs(100));
    let before = stamped(&rig, 0);
    rig.clock.step_us(-50_000_000);
    assert!(stamped(&rig, 1) >= before);
    // The clock of another machine is behind.
    let written = rig.checkpoint();
    for again in [rig.replayed(make), rig.at_checkpoint(make, &written)] {
        let now = stamped(&again, 1);
        assert!(now >= before, "{now} after {before}");
    }
}

/// Calls whose order was made elsewhere, several batches to an entry, get the outcomes that one call after the other
/// gets.
pub(super) fn entries_that_are_taken_answer_their_batches(make: Make<'_>) {
    let live = bank(make, 6, 100);
    let taking = live.replayed(make);
    let mut random = Random::seeded(11);
    let mut seq = taking.foundation.promised().next();
    for round in 0..40u32 {
        let mut batches = Vec::new();
        let mut count = 0;
        for number in 0..1 + random.below(4) {
            let mut builder = BatchBuilder::new();
            for n in 0..1 + random.below(5) {
                let (from, to) = (random.below(6) as i32, random.below(7) as i32);
                let key = format!("{} {number} {n}", round / 2);
                let key = (n % 2 == 0).then_some(key.as_bytes());
                match random.below(3) {
                    0 => live.push(&mut builder, "see", &[int(to)], key),
                    1 => live.push_call(&mut builder, "add", &[int(to), big(7)], key, key.is_some()),
                    _ => live.push(&mut builder, "transfer", &[int(from), int(to), big(60)], key),
                };
            }
            let batch = builder.build();
            // Some came from another machine, whose callers wait there.
            batches.push((count, batch.clone(), random.below(4) == 0));
            count += batch.count();
        }
        let mut payload = Vec::new();
        entry::begin_calls(1_700_000_000_000_000 + i64::from(round), &mut payload);
        batches.iter().for_each(|(_, batch, _)| payload.extend_from_slice(batch.calls()));
        let outcomes = taking.engine.take(seq, count, &payload).unwrap();
        let ours = batches.iter().filter(|(.., is_remote)| !is_remote);
        let ours: Vec<_> = ours.map(|(first, batch, _)| (*first, batch.clone())).collect();
        outcomes.deal(&ours);
        for (first, batch) in &ours {
            let last = Seq(seq.0 + u64::from(first + batch.count()) - 1);
            assert!(last <= taking.foundation.promised(), "readers see what callers are told");
            taking.foundation.decided(last, batch.clone());
            assert_eq!(batch.outcomes().first_seq, Some(Seq(seq.0 + u64::from(*first))));
        }
        for (_, batch, is_remote) in &batches {
            for (place, bytes) in entry::calls(batch.calls()).enumerate() {
                let call = bytes.unwrap();
                let mut alone = BatchBuilder::new();
                alone.push(call.procedure, call.arguments, call.key, call.wants_result).unwrap();
                let alone = alone.build();
                live.run(&alone);
                if *is_remote {
                    continue;
                }
                assert_eq!(batch.outcome(place as u32), alone.outcome(0));
                if call.wants_result && alone.outcome(0).is_ok() {
                    assert_eq!(taking.result(batch, place as u32), live.result(&alone, 0));
                }
            }
        }
        seq = Seq(seq.0 + u64::from(count));
        assert_eq!(taking.dump(), live.dump());
    }
    taking
        .engine
        .take(seq, 1, &entry::encode_definition("table more { id: int, primary key (id) }"))
        .unwrap();
    assert_eq!(taking.foundation.promised(), seq);
    let before = taking.dump();
    taking.engine.take(seq.next(), 1, &entry::encode_nothing()).unwrap();
    assert_eq!(taking.foundation.promised(), seq.next(), "what does nothing takes its place");
    assert_eq!(taking.dump(), before);
    let more = entry::encode_definition("table still_more { id: int, primary key (id) }");
    taking.engine.take(seq.next().next(), 1, &more).unwrap();
    assert!(taking.rows("more").is_empty() && taking.rows("still_more").is_empty());
}

pub(super) fn definitions_take_their_place(make: Make<'_>) {
    let rig = bank(make, 1, 10);
    let refused = rig.engine.define("procedure bad() { nothing[1].here += 1 }").unwrap_err();
    assert_eq!(refused.state(), SqlState::UNDEFINED_TABLE);
    rig.engine.define("table accounts { id: int, primary key (id) }").unwrap_err();
    let old = rig.procedure("add");
    rig.define("procedure add(id: int, amount: bigint) { accounts[id].balance += amount * 2 }");
    rig.define(
        "table marks { id: int, primary key (id) } procedure mark(id: int) { insert marks { id: id } }",
    );
    rig.call("mark", &[int(1)]).unwrap();
    rig.call("add", &[int(0), big(1)]).unwrap();
    // Calls name a definition, not whatever has the name by now.
    let mut batch = BatchBuilder::new();
    let arguments = fabius_program::arguments::encode(&old.program, &[int(0), big(1)]).unwrap();
    batch.push(old.id, &arguments, None, false).unwrap();
    let batch = batch.build();
    rig.run(&batch);
    batch.outcome(0).unwrap();
    assert_eq!(rig.query("see", &[int(0)]), Ok(vec![big(13), big(10)]));
    assert_eq!(rig.replayed(make).dump(), rig.dump());
    // Definitions while calls go on.
    rig.helped(2, || {
        let mut batches = Vec::new();
        for round in 0..20 {
            let mut batch = BatchBuilder::new();
            for _ in 0..50 {
                rig.push(&mut batch, "add", &[int(0), big(1)], None);
            }
            let batch = batch.build();
            rig.engine.submit(batch.clone());
            batches.push(batch);
            rig.define(&format!("procedure p{round}() -> int {{ return {round} }}"));
        }
        batches.iter().for_each(|batch| rig.wait(batch));
    });
    assert_eq!(rig.query("see", &[int(0)]), Ok(vec![big(2013), big(10)]));
    assert_eq!(rig.query("p19", &[]), Ok(vec![int(19)]));
}

pub(super) fn calls_wait_for_the_log(make: Make<'_>) {
    let rig = Rig::with_log(make, true);
    rig.define(BANK);
    let mut batch = BatchBuilder::new();
    rig.push(&mut batch, "open", &[int(1), big(1)], None);
    let batch = batch.build();
    rig.engine.submit(batch.clone());
    for _ in 0..100 {
        rig.engine.admit();
        rig.engine.help();
    }
    assert!(!batch.is_complete(), "it is not in the log yet");
    rig.log.flush_now().unwrap();
    assert!(batch.is_complete());
    batch.outcome(0).unwrap();
}

pub(super) fn a_closed_engine_refuses(make: Make<'_>) {
    let rig = bank(make, 1, 5);
    let mut pending = BatchBuilder::new();
    rig.push(&mut pending, "add", &[int(0), big(1)], None);
    let pending = pending.build();
    rig.engine.submit(pending.clone());
    rig.close();
    rig.wait(&pending);
    let _either = pending.outcome(0);
    aborts(rig.call("add", &[int(0), big(1)]), SqlState::SHUTDOWN);
    rig.engine.define("procedure late() { }").unwrap_err();
    // What was promised can still be read.
    assert_eq!(rig.rows("accounts").len(), 1);
}

/// What the log has not taken is not there, whoever asks for it.
pub(super) fn a_failed_log_refuses(make: Make<'_>) {
    let rig = Rig::writing_through(make);
    rig.define(BANK);
    rig.call("open", &[int(0), big(5)]).unwrap();
    rig.fault(Fault::Full { bytes: 0 });
    rig.log.flush_now().unwrap_err();
    let mut batch = BatchBuilder::new();
    (0..20).for_each(|_| _ = rig.push(&mut batch, "add", &[int(0), big(1)], None));
    let batch = batch.build();
    rig.run(&batch);
    for call in 0..20 {
        aborts(batch.outcome(call), SqlState::DISK_FULL);
    }
    aborts(rig.engine.define("procedure late() { }"), SqlState::DISK_FULL);
    rig.engine.settle();
    assert_eq!(rig.query("see", &[int(0)]), Ok(vec![big(5), big(5)]));
    rig.close();
}

pub(super) fn settling_leaves_nothing_open(make: Make<'_>) {
    let rig = bank(make, 50, 100);
    let mut random = Random::seeded(4);
    let mut batch = BatchBuilder::new();
    for _ in 0..500 {
        let (src, dst) = (random.below(50) as i32, random.below(50) as i32);
        rig.push(&mut batch, "transfer", &[int(src), int(dst), big(random.below(20) as i64)], None);
    }
    let batch = batch.build();
    rig.engine.submit(batch.clone());
    rig.engine.settle();
    assert!(batch.is_complete());
    let counts = rig.engine.counts();
    assert_eq!((counts.backlog, counts.committed + counts.aborted), (0, 550));
    let committed = (0..500).filter(|call| batch.outcome(*call).is_ok()).count();
    assert_eq!(counts.committed, 50 + committed as u64);
}
