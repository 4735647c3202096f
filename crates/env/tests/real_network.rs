//! Nodes exchange messages over TCP, whatever else comes to their ports. Times are only bounds of failure.

use fabius_env::{ClusterId, Direction, MAX_MESSAGE, Network, NetworkSettings, NodeId, Problem, RealNetwork};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const ONE: NodeId = NodeId(1);
const TWO: NodeId = NodeId(2);
const CLUSTER: ClusterId = ClusterId([7; 16]);

/// How long anything may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

fn listen(me: NodeId) -> RealNetwork {
    listen_with(me, NetworkSettings::default())
}

fn listen_with(me: NodeId, settings: NetworkSettings) -> RealNetwork {
    RealNetwork::listen(me, CLUSTER, "127.0.0.1:0", &[], settings).expect("a port is free")
}

/// Tells each node where the other is.
fn introduce(one: &RealNetwork, two: &RealNetwork) {
    one.set_peers(&[(TWO, two.address().to_string())]);
    two.set_peers(&[(ONE, one.address().to_string())]);
}

/// Tries until there is something.
fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::yield_now();
    }
}

/// The next message, waited for.
fn next(node: &RealNetwork) -> (NodeId, Vec<u8>) {
    until("a message", || {
        node.wait(PATIENCE);
        node.receive()
    })
}

/// Sends a message again and again, since it may get lost, until it arrives.
fn get_through(from: &RealNetwork, to: NodeId, receiver: &RealNetwork, message: &[u8]) {
    until("getting through", || {
        from.send(to, message.to_vec());
        receiver.wait(Duration::from_millis(20));
        std::iter::from_fn(|| receiver.receive()).find(|(_, arrived)| arrived == message)
    });
}

fn count(node: &RealNetwork, what: &str) -> u64 {
    node.counters().get(what).copied().unwrap_or(0)
}

/// Waits for a counter of what is done before it is counted.
fn until_counted(node: &RealNetwork, what: &str, expected: u64) {
    until(what, || (count(node, what) == expected).then_some(()));
}

/// The problem of a peer or of strangers, waited for, whose reason has these words.
fn problem(node: &RealNetwork, peer: Option<NodeId>, direction: Direction, words: &str) -> Problem {
    let is_it = |problem: &Problem| {
        problem.peer == peer && problem.direction == direction && problem.reason.contains(words)
    };
    until(words, || node.problems().into_iter().find(is_it))
}

/// The hello of node 1 to node 2, byte by byte.
fn hello(cluster: ClusterId, version: u16) -> Vec<u8> {
    let mut bytes = b"FABN".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(cluster.0);
    bytes.extend(ONE.0.to_le_bytes());
    bytes.extend(TWO.0.to_le_bytes());
    bytes.extend(NetworkSettings::default().semantics.to_le_bytes());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

const ACCEPTED: &[u8] = b"FABN\x01\x00\x01\x00\x00";

/// Connects as something that is no node.
fn connect_raw(node: &RealNetwork) -> TcpStream {
    let stream = TcpStream::connect(node.address()).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream
}

/// What comes until the other side closes.
fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end too.
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != io::ErrorKind::ConnectionReset => panic!("not closed: {error}"),
        _ => bytes,
    }
}

/// Goal: messages go both ways, whole and in order, empty ones and ones to oneself too.
#[test]
fn two_nodes_exchange() {
    let (one, two) = (listen(ONE), listen(TWO));
    introduce(&one, &two);
    for number in 0..1_000_u32 {
        one.send(TWO, number.to_le_bytes().to_vec());
    }
    one.send(TWO, Vec::new());
    for number in 0..1_000_u32 {
        assert_eq!(next(&two), (ONE, number.to_le_bytes().to_vec()));
    }
    assert_eq!(next(&two), (ONE, Vec::new()));
    two.send(ONE, b"back".to_vec());
    assert_eq!(next(&one), (TWO, b"back".to_vec()));
    one.send(ONE, b"self".to_vec());
    assert_eq!(next(&one), (ONE, b"self".to_vec()));
    assert_eq!(one.receive(), None);
    assert_eq!(count(&two, "received"), 1_001);
    until_counted(&two, "sent", 1);
}

/// Goal: a message of 8 MiB, and one as long as is allowed, arrive as they were sent; a longer one is an error
/// of the sender.
#[test]
fn large_messages_get_through() {
    let (one, two) = (listen(ONE), listen(TWO));
    introduce(&one, &two);
    for len in [8 << 20, MAX_MESSAGE] {
        let message: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
        one.send(TWO, message.clone());
        let (from, arrived) = next(&two);
        assert!(from == ONE && arrived == message);
    }
    let too_long = AssertUnwindSafe(|| one.send(TWO, vec![0; MAX_MESSAGE + 1]));
    assert!(catch_unwind(too_long).is_err());
}

/// Goal: a node that comes back on its port is found again, by those who sent to it, and sends again.
#[test]
fn a_node_that_comes_back_is_found() {
    let (one, two) = (listen(ONE), listen(TWO));
    introduce(&one, &two);
    get_through(&one, TWO, &two, b"before");
    let address = two.address().to_string();
    drop(two);
    until("losing the connection", || {
        one.send(TWO, b"between".to_vec());
        one.wait(Duration::from_millis(20));
        (count(&one, "unreachable") > 0).then_some(())
    });
    let reason = problem(&one, Some(TWO), Direction::Outgoing, &address);
    assert!(!reason.is_over);

    let peers = [(ONE, one.address().to_string())];
    let two = RealNetwork::listen(TWO, CLUSTER, &address, &peers, NetworkSettings::default())
        .expect("the port is free again");
    get_through(&one, TWO, &two, b"after");
    get_through(&two, ONE, &one, b"back");
    until("the problem is over", || one.problems().iter().all(|problem| problem.is_over).then_some(()));
}

/// Goal: a peer's new address is used from then on, and a node that is no peer any more gets nothing.
#[test]
fn peers_change() {
    let (one, old, new) = (listen(ONE), listen(TWO), listen(TWO));
    introduce(&one, &old);
    get_through(&one, TWO, &old, b"old");
    introduce(&one, &new);
    get_through(&one, TWO, &new, b"new");
    one.set_peers(&[]);
    let lost = count(&one, "to strangers");
    one.send(TWO, b"lost".to_vec());
    assert_eq!(count(&one, "to strangers"), lost + 1);
}

/// Goal: whatever comes to the port, the nodes go on, and what came is known.
#[test]
fn garbage_disturbs_nobody() {
    let (one, two) = (listen(ONE), listen(TWO));
    introduce(&one, &two);
    get_through(&one, TWO, &two, b"before");

    let mut browser = connect_raw(&two);
    browser.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("taken");
    assert_eq!(read_to_end(&mut browser), b"");
    problem(&two, None, Direction::Incoming, "not the protocol");

    let mut half = connect_raw(&two);
    half.write_all(&hello(CLUSTER, 1)[..20]).expect("taken");
    half.shutdown(Shutdown::Write).expect("open");
    assert_eq!(read_to_end(&mut half), b"");
    problem(&two, None, Direction::Incoming, "closed");

    let mut damaged = hello(CLUSTER, 1);
    damaged[25] ^= 1;
    let mut stranger = connect_raw(&two);
    stranger.write_all(&damaged).expect("taken");
    assert_eq!(read_to_end(&mut stranger), b"");
    problem(&two, None, Direction::Incoming, "checksum");

    for (frame, words) in [(*b"\x00\x00\x00\x05\x00\x00\x00\x00", "83886080"), ([0; 8], "checksum")] {
        let mut liar = connect_raw(&two);
        liar.write_all(&hello(CLUSTER, 1)).expect("taken");
        liar.write_all(&frame).expect("taken");
        assert_eq!(read_to_end(&mut liar), ACCEPTED);
        problem(&two, Some(ONE), Direction::Incoming, words);
    }
    assert_eq!((count(&two, "refused"), count(&two, "bad frames")), (3, 2));

    get_through(&one, TWO, &two, b"after");
    assert_eq!(count(&one, "connected"), 1, "the connection of the other node was never lost");
}

/// Goal: nodes of other clusters, other versions, and with wrong addresses are refused, and both sides know why.
#[test]
fn a_refusal_has_its_reason() {
    let two = listen(TWO);
    let other = RealNetwork::listen(
        ONE,
        ClusterId([8; 16]),
        "127.0.0.1:0",
        &[(TWO, two.address().to_string()), (NodeId(3), two.address().to_string())],
        NetworkSettings::default(),
    )
    .expect("a port is free");
    other.send(TWO, b"lost".to_vec());
    let reason = "the two nodes belong to different clusters";
    let expected = format!("{}: refused: {reason}", two.address());
    assert_eq!(problem(&other, Some(TWO), Direction::Outgoing, reason).reason, expected);
    problem(&two, None, Direction::Incoming, &format!("refused node 1: {reason}"));

    let one = listen(ONE);
    one.set_peers(&[(NodeId(3), two.address().to_string())]);
    one.send(NodeId(3), b"lost".to_vec());
    problem(&one, Some(NodeId(3)), Direction::Outgoing, "node 3 was wanted, and this is node 2");

    let mut newer = connect_raw(&two);
    newer.write_all(&hello(CLUSTER, 2)).expect("taken");
    let answer = read_to_end(&mut newer);
    let reason = "a node of protocol version 2 and one of version 1 cannot talk";
    assert_eq!(&answer[9..], reason.as_bytes());
    problem(&two, None, Direction::Incoming, reason);
    assert_eq!(two.receive(), None);
}

/// Goal: what waits for a peer is bounded; what is too much is lost and counted, and what was taken arrives.
#[test]
fn a_full_queue_loses_messages() {
    let settings = NetworkSettings { incoming_bytes_max: 1 << 20, ..NetworkSettings::default() };
    let two = listen_with(TWO, settings);
    let settings = NetworkSettings { outgoing_bytes_max: 1 << 20, ..NetworkSettings::default() };
    let one = listen_with(ONE, settings);
    introduce(&one, &two);
    // Node 2 receives nothing, so that its inbox, the buffers of TCP and the outbox become full.
    let mut sent = 0;
    until("full queues", || {
        one.send(TWO, vec![0; 1 << 20]);
        sent += 1;
        (count(&one, "queue full") > 100).then_some(())
    });
    let taken = sent - count(&one, "queue full");
    for _ in 0..taken {
        assert_eq!(next(&two).1.len(), 1 << 20);
    }
    until_counted(&one, "sent", taken);
}

/// Goal: who sends waits while the receiver has no room, however long, and loses nothing by that.
#[test]
fn a_full_inbox_holds_the_sender_back() {
    let settings = NetworkSettings { incoming_bytes_max: 1, ..NetworkSettings::default() };
    let (one, two) = (listen(ONE), listen_with(TWO, settings));
    introduce(&one, &two);
    (0..100_u8).for_each(|number| one.send(TWO, vec![number; 100_000]));
    // Longer than a silent connection is given: the receiver shows that it is alive.
    one.wait(Duration::from_secs(7));
    for number in 0..100 {
        assert_eq!(next(&two), (ONE, vec![number; 100_000]));
    }
    assert_eq!(count(&one, "connected"), 1);
}

/// Goal: a wait is ended by a message and by waking, from another thread.
#[test]
fn a_wait_is_ended_by_others() {
    let (one, two) = (listen(ONE), listen(TWO));
    introduce(&one, &two);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            two.wait(Duration::MAX);
            two.receive()
        });
        one.send(TWO, b"hello".to_vec());
        assert_eq!(waiting.join().expect("no panic"), Some((ONE, b"hello".to_vec())));
        let waiting = scope.spawn(|| two.wait(Duration::MAX));
        two.wake();
        waiting.join().expect("no panic");
    });
}

/// Goal: whoever says nothing any more is given up, whether it had accepted a connection or made one.
#[test]
fn silence_is_noticed() {
    let two = listen(TWO);
    let mut mute = connect_raw(&two);
    mute.write_all(&hello(CLUSTER, 1)).expect("taken");

    let deaf = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = deaf.local_addr().expect("bound").to_string();
    let one = listen(ONE);
    one.set_peers(&[(TWO, address)]);
    one.send(TWO, b"lost".to_vec());
    let (mut stream, _) = deaf.accept().expect("it connects");
    stream.write_all(ACCEPTED).expect("taken");

    problem(&one, Some(TWO), Direction::Outgoing, "nothing was heard for 5 s");
    problem(&two, Some(ONE), Direction::Incoming, "nothing was heard for 5 s");
}

/// Goal: what is not protected does not leave the machine, and the error says what to do.
#[test]
fn plain_tcp_stays_on_the_machine() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7000"] {
        let refused = RealNetwork::listen(ONE, CLUSTER, address, &[], NetworkSettings::default());
        let error = refused.expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("configure TLS"));
    }
    let one = listen(ONE);
    one.set_peers(&[(TWO, "192.0.2.1:7000".to_owned())]);
    one.send(TWO, b"secret".to_vec());
    problem(&one, Some(TWO), Direction::Outgoing, "configure TLS");
}

/// Goal: a network that is dropped ends, whatever its threads are waiting for, and gives its port back.
#[test]
fn a_dropped_network_ends() {
    let settings = NetworkSettings { incoming_bytes_max: 1, ..NetworkSettings::default() };
    let (one, two) = (listen(ONE), listen_with(TWO, settings));
    introduce(&one, &two);
    (0..100).for_each(|_| one.send(TWO, vec![0; 1 << 20]));
    until("a full inbox", || (count(&two, "received") > 0).then_some(()));
    let silent = connect_raw(&two);
    let address = two.address();
    drop(two);
    drop(TcpListener::bind(address).expect("the port is free"));
    drop(one);
    drop(silent);
}
