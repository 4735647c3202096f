//! The simulated network does what its weather, its cuts and its crashes say, and does it again for the same seed.

use fabius_env::{Clock, Network, NodeId, Random, SimulatedClock, SimulatedNetwork, Weather};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const ONE: NodeId = NodeId(1);
const TWO: NodeId = NodeId(2);
const THREE: NodeId = NodeId(3);

/// A network with its clock, and nodes 1 and 2.
struct Pair {
    clock: SimulatedClock,
    network: SimulatedNetwork,
    one: Arc<dyn Network>,
    two: Arc<dyn Network>,
}

impl Pair {
    fn seeded(seed: u64) -> Pair {
        let clock = SimulatedClock::at(0);
        let network = SimulatedNetwork::seeded(seed, clock.clone());
        let (one, two) = (network.node(ONE), network.node(TWO));
        Pair { clock, network, one, two }
    }

    /// Lets time pass until nothing is on its way any more.
    fn settle(&self) {
        while let Some(arrival_ns) = self.network.next_arrival_ns() {
            self.clock.advance(Duration::from_nanos(arrival_ns - self.clock.monotonic_ns()));
        }
    }

    fn count(&self, what: &str) -> u64 {
        self.network.counters().get(what).copied().unwrap_or(0)
    }
}

/// Node 1 sends its numbers from zero on, one a byte.
fn send_numbers(pair: &Pair, count: u8) {
    (0..count).for_each(|number| pair.one.send(TWO, vec![number]));
}

fn received(node: &Arc<dyn Network>) -> Vec<u8> {
    std::iter::from_fn(|| node.receive()).map(|(_, message)| message[0]).collect()
}

/// Goal: a message arrives once, whole, when the clock has come to its time, and not before.
#[test]
fn a_message_arrives_in_its_time() {
    let pair = Pair::seeded(1);
    pair.one.send(TWO, b"hello".to_vec());
    let arrival_ns = pair.network.next_arrival_ns().expect("on its way");
    assert!((100_000..=1_000_000).contains(&arrival_ns));
    pair.clock.advance(Duration::from_nanos(arrival_ns - 1));
    assert_eq!(pair.two.receive(), None);
    pair.clock.advance(Duration::from_nanos(1));
    pair.two.wait(Duration::from_secs(3_600));
    assert_eq!(pair.two.receive(), Some((ONE, b"hello".to_vec())));
    assert_eq!((pair.two.receive(), pair.network.next_arrival_ns()), (None, None));
}

/// What a run of chance events gives: the history, and the counters.
fn storm(seed: u64) -> (u64, BTreeMap<&'static str, u64>) {
    let clock = SimulatedClock::at(0);
    let network = SimulatedNetwork::seeded(seed, clock.clone());
    network.set_weather(Weather::stormy());
    let ids = [ONE, TWO, THREE];
    let mut nodes: Vec<Arc<dyn Network>> = ids.iter().map(|id| network.node(*id)).collect();
    let mut driver = Random::seeded(0);
    for step in 0..2_000_u64 {
        let (from, to) = (driver.index(3), driver.index(3));
        match driver.below(100) {
            0 => network.cut(ids[from], ids[to]),
            1 => network.heal_all(),
            2 => nodes[from] = network.restart(ids[from]),
            3 => network.set_slowness(ids[from], 1 + driver.below(4)),
            4 => nodes[from].set_peers(&[(ids[to], String::new()), (ids[from], String::new())]),
            5 => network.crash(ids[from]),
            _ => nodes[from].send(ids[to], step.to_le_bytes().to_vec()),
        }
        clock.advance(Duration::from_micros(driver.below(5_000)));
        nodes[to].receive();
    }
    (network.history(), network.counters())
}

/// Goal: one seed, one history, whatever happens; and other seeds are other histories.
#[test]
fn a_storm_is_replayed_by_its_seed() {
    for seed in 0..20 {
        assert_eq!(storm(seed), storm(seed));
        assert_ne!(storm(seed).0, storm(seed + 1).0);
    }
    let (_, counters) = storm(0);
    let names: Vec<&str> = counters.keys().copied().collect();
    let expected = [
        "cut",
        "delivered",
        "doubled",
        "from the dead",
        "late across lives",
        "lost",
        "reordered",
        "sent",
        "to strangers",
        "to the dead",
        "unread at a crash",
    ];
    assert_eq!(names, expected, "everything that can happen does");
}

/// Goal: looking at the network does not change what happens.
#[test]
fn the_history_does_not_depend_on_who_looks() {
    let run = |looks: bool| {
        let pair = Pair::seeded(3);
        pair.network.set_weather(Weather::stormy());
        for number in 0..100 {
            pair.one.send(TWO, vec![number]);
            pair.clock.advance(Duration::from_millis(1));
            if looks {
                pair.two.receive();
                assert!(pair.count("sent") > 0);
            }
        }
        pair.settle();
        pair.network.history()
    };
    assert_eq!(run(true), run(false));
}

/// Goal: a cut stops one direction only, healing ends it, and what has left before arrives.
#[test]
fn a_cut_has_a_direction() {
    let pair = Pair::seeded(2);
    pair.one.send(TWO, vec![0]);
    pair.network.cut(ONE, TWO);
    pair.one.send(TWO, vec![1]);
    pair.two.send(ONE, vec![2]);
    pair.settle();
    assert_eq!((received(&pair.one), received(&pair.two)), (vec![2], vec![0]));
    assert_eq!(pair.count("cut"), 1);

    pair.network.heal(ONE, TWO);
    pair.one.send(TWO, vec![3]);
    pair.settle();
    assert_eq!(received(&pair.two), [3]);
}

/// Goal: about as many messages are lost and doubled as the weather says, and the counters know.
#[test]
fn messages_are_lost_and_doubled() {
    let pair = Pair::seeded(4);
    let weather = Weather { lost_per_mille: 200, doubled_per_mille: 100, ..Weather::calm() };
    pair.network.set_weather(weather);
    for _ in 0..10_000 {
        pair.one.send(TWO, vec![0]);
    }
    pair.settle();
    let arrived = received(&pair.two).len() as u64;
    assert_eq!(pair.count("sent"), 10_000);
    assert_eq!(arrived, pair.count("delivered"));
    assert_eq!(arrived, 10_000 - pair.count("lost") + pair.count("doubled"));
    assert!((1_800..2_200).contains(&pair.count("lost")));
    assert!((700..900).contains(&pair.count("doubled")), "a tenth of the four fifths that are left");
}

/// Goal: a link keeps the order of its messages if and only if its weather says so, and one link's weather is
/// not another's.
#[test]
fn order_is_kept_where_the_weather_keeps_it() {
    let pair = Pair::seeded(5);
    send_numbers(&pair, 100);
    pair.settle();
    assert!(received(&pair.two).is_sorted());
    assert_eq!(pair.count("reordered"), 0);

    pair.network.set_weather_between(ONE, TWO, Weather { is_in_order: false, ..Weather::calm() });
    send_numbers(&pair, 100);
    (0..100).for_each(|number| pair.two.send(ONE, vec![number]));
    pair.settle();
    let mut numbers = received(&pair.two);
    assert!(!numbers.is_sorted());
    assert!(pair.count("reordered") > 0);
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..100));
    assert!(received(&pair.one).is_sorted());

    pair.network.set_weather(Weather::calm());
    send_numbers(&pair, 100);
    pair.settle();
    assert!(received(&pair.two).is_sorted());
}

/// Goal: messages to and from a slow node take as many times as long.
#[test]
fn a_slow_node_is_slow_both_ways() {
    let pair = Pair::seeded(6);
    pair.network.set_slowness(TWO, 1_000);
    for (from, to) in [(&pair.one, TWO), (&pair.two, ONE)] {
        let now_ns = pair.clock.monotonic_ns();
        from.send(to, vec![0]);
        assert!(pair.network.next_arrival_ns().expect("on its way") >= now_ns + 100_000_000);
        pair.settle();
    }
}

/// Goal: a crash takes what the node had not received; nothing is sent to it or by it until it lives again,
/// while what it sent before arrives.
#[test]
fn a_crash_ends_a_life() {
    let pair = Pair::seeded(7);
    pair.one.send(TWO, vec![0]);
    pair.settle();
    pair.two.send(ONE, vec![1]);
    pair.network.crash(TWO);
    pair.one.send(TWO, vec![2]);
    pair.two.send(ONE, vec![3]);
    pair.settle();
    assert_eq!((received(&pair.one), received(&pair.two)), (vec![1], vec![]));
    let counted = ["unread at a crash", "to the dead", "from the dead"].map(|what| pair.count(what));
    assert_eq!(counted, [1, 1, 1]);

    let again = pair.network.restart(TWO);
    assert_eq!(again.receive(), None, "an inbox begins empty");
    pair.one.send(TWO, vec![4]);
    pair.two.send(ONE, vec![5]);
    pair.settle();
    assert_eq!(pair.two.receive(), None, "the view of the old life stays dead");
    assert_eq!((received(&again), received(&pair.one)), (vec![4], vec![]));
}

/// Goal: what was on its way to an old life is partly lost, and partly arrives in the new one.
#[test]
fn a_new_life_may_get_what_was_meant_for_the_old() {
    let pair = Pair::seeded(8);
    send_numbers(&pair, 100);
    let again = pair.network.restart(TWO);
    pair.settle();
    let numbers = received(&again);
    assert!(numbers.len() > 20 && numbers.len() < 80);
    assert_eq!(pair.count("late across lives"), numbers.len() as u64);
    assert_eq!(pair.count("to the dead"), 100 - numbers.len() as u64);
}

/// Goal: once a node has said who its peers are, what it sends to others is lost.
#[test]
fn strangers_get_nothing() {
    let pair = Pair::seeded(9);
    let three = pair.network.node(THREE);
    pair.one.set_peers(&[(TWO, "two:1".to_owned())]);
    pair.one.send(TWO, vec![1]);
    pair.one.send(THREE, vec![2]);
    pair.two.send(THREE, vec![3]);
    pair.settle();
    assert_eq!((received(&pair.two), received(&three)), (vec![1], vec![3]));
    assert_eq!(pair.count("to strangers"), 1);
}
