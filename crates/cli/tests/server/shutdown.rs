//! The end, by signals; passwords and TLS, which are wanted from the beginning.

use crate::raw::{Raw, field};
use crate::support::{PATIENCE, Server, block_on, clients, has, program, succeed};
use std::process::Command;
use std::time::{Duration, Instant};

fn ends(server: &mut Server) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Ok(Some(status)) = server.process.try_wait() {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Goal: on a signal clients are told, statements that run may finish, and the process ends well.
#[test]
fn signals_end_the_server() {
    for signal in ["INT", "TERM"] {
        let mut server = Server::start(&[]);
        server.run("CREATE TABLE t (id integer PRIMARY KEY)");
        let (mut idle, _) = Raw::begin(&server);
        let (mut busy, _) = Raw::begin(&server);
        busy.send(&[(b'Q', b"SELECT pg_sleep(2)\0")]);
        server.wait_for("SELECT pg_sleep(2)");
        server.signal(signal);
        let told = idle.until(b'Z');
        assert_eq!((field(&told, b'C').as_str(), field(&told, b'S').as_str()), ("57P01", "FATAL"));
        let finished = busy.until(b'E');
        assert!(finished.iter().any(|(kind, _)| *kind == b'C'), "the statement that ran has finished");
        assert!(ends(&mut server), "{signal}");
    }
}

/// Goal: a second signal ends what still runs.
#[test]
fn a_second_signal_hurries() {
    let mut server = Server::start(&[]);
    let ((mut idle, _), (mut busy, _)) = (Raw::begin(&server), Raw::begin(&server));
    busy.send(&[(b'Q', b"SELECT pg_sleep(50)\0")]);
    server.wait_for("SELECT pg_sleep(50)");
    server.signal("INT");
    assert_eq!(field(&idle.until(b'Z'), b'C'), "57P01");
    server.signal("INT");
    assert_eq!(field(&busy.until(b'Z'), b'C'), "57P01");
    assert!(ends(&mut server));
}

/// Goal: a query that computes without end is told so when the time of the end is over, and by a second signal.
#[test]
fn a_query_that_computes_is_ended() {
    let query = "SELECT count(*) FROM n AS x, n AS y WHERE x.i + y.i = -7";
    for (patience, signals) in [("100ms", &["INT"][..]), ("1h", &["INT", "TERM"])] {
        let mut server = Server::start(&["--shutdown-timeout", patience]);
        server.run("CREATE TABLE n (i integer); INSERT INTO n SELECT generate_series(1, 200000)");
        let (mut busy, _) = Raw::begin(&server);
        busy.send(&[(b'Q', format!("{query}\0").as_bytes())]);
        server.wait_for(query);
        signals.iter().for_each(|signal| server.signal(signal));
        assert_eq!(field(&busy.until(b'Z'), b'C'), "57P01");
        assert!(ends(&mut server));
    }
}

/// Goal: the end waits for no thread, even for one that looks at nothing while it computes: planning does not give way.
/// What was acknowledged is there afterwards.
#[test]
fn the_end_waits_for_no_thread() {
    let keys: Vec<String> = (0..20_000).map(|key| format!("id + {key}")).collect();
    let endless = format!("SELECT id FROM t ORDER BY {}", keys.join(", "));
    for (patience, signals) in [("100ms", &["INT"][..]), ("1h", &["INT", "TERM"])] {
        let mut server = Server::start(&["--shutdown-timeout", patience]);
        server.run("CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t VALUES (1)");
        let (mut busy, _) = Raw::begin(&server);
        let before = server.processor_ticks();
        busy.send(&[(b'Q', format!("{endless}\0").as_bytes())]);
        // The text is read in much less.
        while server.processor_ticks() < before + 200 {
            server.run("SELECT 1");
        }
        server.run("INSERT INTO t VALUES (2)");
        signals.iter().for_each(|signal| server.signal(signal));
        assert!(ends(&mut server), "{signals:?}");
        let server = Server::start_in(server.into_directory(), &[]);
        server.wait_until("SELECT 1 FROM t HAVING count(*) = 2");
    }
}

/// Goal: with users, the right password is needed; without them, only this machine is served.
#[test]
fn passwords() {
    let folder = tempfile::tempdir().expect("a directory");
    let users = folder.path().join("users");
    std::fs::write(&users, "ana:right\n").expect("a file");
    let server = Server::start(&["--users", &users.display().to_string()]);
    let connect = |user: &str, password: &str| {
        let conninfo =
            format!("host=127.0.0.1 port={} dbname=fabius user={user} password={password}", server.port());
        block_on(async {
            let connected = tokio_postgres::connect(&conninfo, tokio_postgres::NoTls).await;
            connected.map(drop).map_err(|error| error.code().map(|code| code.code().to_string()))
        })
    };
    assert_eq!(connect("ana", "right"), Ok(()));
    assert_eq!(connect("ana", "wrong"), Err(Some("28P01".into())));
    assert_eq!(connect("eve", "right"), Err(Some("28P01".into())));

    let refused = Command::new(env!("CARGO_BIN_EXE_fabius"))
        .args(["serve", &folder.path().join("data").display().to_string(), "--listen", "0.0.0.0:0"])
        .output()
        .expect("the program starts");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("needs passwords"), "{refused:?}");
}

/// Goal: TLS with a password bound to it, direct or asked for; plaintext is refused where TLS is required.
#[test]
fn tls() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = |name: &str| folder.path().join(name).display().to_string();
    if !has("openssl", &program("openssl")) || !has("psycopg", &clients().join("python.psycopg")) {
        return;
    }
    succeed(
        Command::new("openssl").args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]).args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            &path("key"),
            "-out",
            &path("certificate"),
        ]),
    );
    std::fs::write(path("users"), "ana:right\n").expect("a file");
    let server = Server::start(&[
        "--users",
        &path("users"),
        "--tls-certificate",
        &path("certificate"),
        "--tls-key",
        &path("key"),
        "--tls-required",
        "true",
    ]);
    let connect = |rest: &str| {
        let conninfo =
            format!("host=127.0.0.1 port={} dbname=fabius user=ana password=right {rest}", server.port());
        let program =
            "import psycopg, sys; c = psycopg.connect(sys.argv[1]); print(c.execute('SELECT 1').fetchone())";
        Command::new(clients().join("python/bin/python"))
            .args(["-c", program, &conninfo])
            .output()
            .expect("python")
    };
    for rest in [
        format!("sslmode=verify-full sslrootcert={} channel_binding=require", path("certificate")),
        "sslmode=require channel_binding=disable".to_string(),
    ] {
        let output = connect(&rest);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "(1,)\n", "{rest}: {output:?}");
    }
    let refused = connect("sslmode=disable");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("without TLS"), "{refused:?}");
}
