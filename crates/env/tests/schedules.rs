//! Simulated threads: one runs at a time, a seed decides which, and nobody waits for ever.

use fabius_env::schedule::{self, Trace};
use fabius_env::sync::{Condvar, Mutex, RwLock};
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Three threads that write down in turn who they are, and what they wrote.
fn written(seed: u64) -> (String, Trace) {
    schedule::simulate(seed, || {
        let text = Arc::new(Mutex::new(String::new()));
        let write = |name: char| {
            let text = text.clone();
            let work = move || {
                for _ in 0..50 {
                    schedule::point("to be written");
                    let mut text = text.lock();
                    schedule::point("writing");
                    text.push(name);
                }
            };
            schedule::spawn(&name.to_string(), work).unwrap()
        };
        for thread in ['a', 'b', 'c'].map(write) {
            thread.join().unwrap();
        }
        text.lock().clone()
    })
}

/// Goal: the same seed gives the same schedule; different seeds give different ones.
#[test]
fn a_seed_is_a_schedule() {
    let runs: Vec<_> = (0..20).map(written).collect();
    for (seed, run) in runs.iter().enumerate() {
        assert_eq!(&written(seed as u64), run);
        assert_eq!(run.0.len(), 150);
    }
    let mut texts: Vec<_> = runs.into_iter().map(|run| run.0).collect();
    texts.sort();
    texts.dedup();
    assert!(texts.len() > 15, "{} of 20 differ", texts.len());
}

/// Goal: a queue with a mutex and condition variables loses nothing and ends, on every schedule.
#[test]
fn waiting_threads_are_woken() {
    for seed in 0..50 {
        let (sum, _) = schedule::simulate(seed, || {
            let queue = Arc::new((Mutex::new(Vec::new()), Condvar::new(), Condvar::new()));
            let shared = queue.clone();
            let producer = schedule::spawn("producer", move || {
                for item in 1..=20 {
                    let mut items = shared.0.lock();
                    while items.len() == 2 {
                        shared.2.wait(&mut items);
                    }
                    items.push(item);
                    shared.1.notify_one();
                    schedule::point("pushed");
                }
            });
            let mut sum = 0;
            for _ in 0..20 {
                let mut items = queue.0.lock();
                while items.is_empty() {
                    queue.1.wait_for(&mut items, Duration::from_secs(1));
                }
                sum += items.remove(0);
                queue.2.notify_one();
            }
            producer.unwrap().join().unwrap();
            sum
        });
        assert_eq!(sum, 210);
    }
}

/// Goal: readers share a lock, a writer is alone.
#[test]
fn writers_are_alone() {
    for seed in 0..20 {
        schedule::simulate(seed, || {
            let lock = Arc::new(RwLock::new(0));
            let threads: Vec<_> = (0..3)
                .map(|number| {
                    let lock = lock.clone();
                    let work = move || {
                        for _ in 0..10 {
                            let before = *lock.read();
                            schedule::point("read");
                            let mut value = lock.write();
                            schedule::point("writing");
                            assert!(*value >= before);
                            *value += 1;
                        }
                    };
                    schedule::spawn(&format!("writer {number}"), work).unwrap()
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(*lock.read(), 30);
        });
    }
}

fn message(ended: std::thread::Result<()>) -> String {
    let panic = ended.expect_err("it does not end well");
    let text = panic.downcast_ref::<String>().cloned();
    text.unwrap_or_else(|| (*panic.downcast_ref::<&str>().expect("a text")).into())
}

/// Goal: threads that wait for each other are reported, with the places where they stand.
#[test]
fn deadlocks_are_found() {
    let ended = catch_unwind(|| {
        schedule::simulate(1, || {
            let locks = Arc::new((Mutex::new(()), Mutex::new(())));
            let other = locks.clone();
            let _ = schedule::spawn("other", move || {
                let _second = other.1.lock();
                schedule::wait_until("first taken", || other.0.try_lock().is_none());
                let _first = other.0.lock();
            });
            let _first = locks.0.lock();
            schedule::wait_until("second taken", || locks.1.try_lock().is_none());
            let _second = locks.1.lock();
        });
    });
    let report = message(ended);
    assert!(report.starts_with("deadlock: every thread waits"), "{report}");
    assert!(report.contains("other waits at \"mutex\""), "{report}");
}

/// Goal: threads that look for work in vain, all of them, are reported.
#[test]
fn idling_for_ever_is_found() {
    let ended = catch_unwind(|| {
        schedule::simulate(1, || {
            let idle = || loop {
                schedule::give_way("nothing to do");
            };
            let _ = schedule::spawn("other", idle);
            idle();
        });
    });
    let report = message(ended);
    assert!(report.starts_with("every thread waits, or looks for work in vain"), "{report}");
}

/// Goal: a panic on any thread ends the simulation with it.
#[test]
fn panics_come_through() {
    let ended = catch_unwind(|| {
        schedule::simulate(1, || {
            let _ = schedule::spawn("other", || panic!("this one"));
            loop {
                schedule::give_way("waiting for nothing");
            }
        });
    });
    assert_eq!(message(ended), "this one");
}

/// Goal: a panic ends the simulation also if what is dropped on the way out waits for another thread.
#[test]
fn unwinding_threads_wait_for_nobody() {
    struct Joins(Option<schedule::JoinHandle>);
    impl Drop for Joins {
        fn drop(&mut self) {
            let _ = self.0.take().expect("dropped once").join();
        }
    }
    let ended = catch_unwind(|| {
        schedule::simulate(1, || {
            let other = schedule::spawn("other", || schedule::wait_until("never", || false));
            let _joins = Joins(other.ok());
            schedule::point("started");
            panic!("with something to drop");
        })
    });
    assert_eq!(message(ended.map(|((), _)| ())), "a thread of the simulation panicked");
}

/// Goal: an interruption sees threads between two points, and is no part of the schedule.
#[test]
fn interruptions_change_nothing() {
    let run = |one_in: Option<u64>| {
        let seen = Arc::new(AtomicUsize::new(0));
        let counted = seen.clone();
        let (trace, _) = schedule::simulate(3, move || {
            if let Some(one_in) = one_in {
                let interruption = move || {
                    schedule::point("not part of it");
                    counted.fetch_add(1, Relaxed);
                };
                schedule::interrupt(one_in, interruption);
            }
            (0..100).for_each(|_| schedule::point("tick"));
            schedule::interrupt_no_more();
            (0..100).for_each(|_| schedule::point("tock"));
            schedule::trace().unwrap()
        });
        (trace, seen.load(Relaxed))
    };
    let (undisturbed, seen) = run(None);
    assert_eq!((undisturbed.points, seen), (200, 0));
    assert_eq!(run(Some(1)), (undisturbed, 100));
    assert_eq!(run(Some(7)).0, undisturbed);
}
