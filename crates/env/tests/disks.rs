//! Both disks, side by side, do the same; and the simulated one loses exactly what it may.

use std::io;
use std::sync::Arc;

use fabius_env::{Disk, DiskFile, Fault, RealDisk, SimulatedDisk};

fn both(test: impl Fn(Arc<dyn Disk>)) {
    test(Arc::new(SimulatedDisk::new(0)));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("one/two");
    test(Arc::new(RealDisk::create(path).expect("created")));
}

/// Goal: files are appended to, read, overwritten, cut, renamed, listed and deleted alike.
#[test]
fn the_same_on_both() {
    both(|disk| {
        let mut file = disk.create("b").expect("created");
        file.append_all(b"hello").expect("written");
        file.append_all(b", world").expect("written");
        file.overwrite(0, b"H").expect("inside");
        let beyond = file.overwrite(12, b"x").expect_err("beyond the end");
        assert_eq!(beyond.kind(), io::ErrorKind::InvalidInput);
        file.sync().expect("synced");
        assert_eq!(disk.read("b").expect("there"), b"Hello, world");
        let mut part = [0; 5];
        assert_eq!(file.read_at(&mut part, 7).expect("there"), 5);
        assert_eq!(&part, b"world");
        assert_eq!(file.read_at(&mut part, 12).expect("the end"), 0);
        file.truncate(5).expect("cut");
        file.append_all(b"!").expect("written");
        assert_eq!(file.len().expect("there"), 6);
        assert!(!file.is_empty().expect("there"));
        drop(file);

        let mut again = disk.open_append("b").expect("there");
        again.append_all(b"!").expect("written");
        assert_eq!(disk.read("b").expect("there"), b"Hello!!");
        let mut reader = disk.open_read("b").expect("there");
        reader.append_all(b"?").expect_err("for reading only");

        let twice = disk.create("b").expect_err("there already");
        assert_eq!(twice.kind(), io::ErrorKind::AlreadyExists);
        for missing in [disk.open_append("a").err(), disk.read("a").err()] {
            assert_eq!(missing.map(|error| error.kind()), Some(io::ErrorKind::NotFound));
        }
        disk.create("a").expect("created");
        disk.rename("b", "a").expect("replaced");
        assert_eq!(disk.read("a").expect("there"), b"Hello!!");
        disk.subdirectory("inner").and_then(|inner| inner.create("deep")).expect("created");
        assert_eq!(disk.list().expect("readable"), ["a"]);
        let inner = disk.subdirectory("inner").expect("there");
        assert_eq!(inner.list().expect("readable"), ["deep"]);
        disk.delete("a").expect("there");
        disk.delete("a").expect_err("gone");
        disk.sync().expect("synced");
        assert_eq!(disk.list().expect("readable"), Vec::<String>::new());
    });
}

/// Goal: one holder per directory, with an error that names it, until the guard is dropped.
#[test]
fn a_directory_has_one_holder() {
    both(|disk| {
        let held = disk.lock().expect("free");
        let error = disk.lock().expect_err("held");
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        let directory = disk.directory().display().to_string();
        assert!(error.to_string().contains(&directory), "{error}");
        assert!(error.to_string().contains("another process"), "{error}");
        drop(held);
        disk.lock().expect("free again");
    });
}

/// Goal: opening a directory that is not there creates nothing.
#[test]
fn opening_creates_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("absent");
    RealDisk::open(&path).expect_err("not there");
    assert!(!path.exists());
}

fn append(file: &mut dyn DiskFile, byte: u8, count: usize) {
    file.append_all(&vec![byte; count]).expect("written");
}

/// Goal: over many crashes, synced bytes always survive; unsynced ones survive wholly, partly and
/// not at all; and all three really happen.
#[test]
fn a_crash_keeps_what_was_synced() {
    let (mut none, mut some, mut all, mut holes) = (0, 0, 0, 0);
    for seed in 0..500 {
        let disk = SimulatedDisk::new(seed);
        let mut file = disk.create("file").expect("created");
        disk.sync().expect("synced");
        append(&mut *file, 1, 700);
        file.sync().expect("synced");
        append(&mut *file, 2, 2_000);
        append(&mut *file, 3, 10);

        let found = disk.crash(seed).read("file").expect("its name is synced");
        assert_eq!(found[..700], [1; 700], "seed {seed}");
        assert!(found.len() <= 2_710);
        let written = [vec![2; 2_000], vec![3; 10]].concat();
        match &found[700..] {
            [] => none += 1,
            rest if rest == written => all += 1,
            rest if written.starts_with(rest) => some += 1,
            _ => holes += 1,
        }
        assert_eq!(disk.read("file").expect("there").len(), 2_710);
    }
    assert!(none > 50 && some > 50 && all > 50 && holes > 50);
}

/// Goal: names appear and vanish in a crash unless the directory was synced, in order.
#[test]
fn a_crash_keeps_a_prefix_of_the_names() {
    let mut endings = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let disk = SimulatedDisk::new(seed);
        disk.create("kept").expect("created");
        disk.sync().expect("synced");
        disk.create("new").expect("created");
        disk.rename("new", "renamed").expect("there");
        disk.delete("kept").expect("there");
        endings.insert(disk.crash(seed).list().expect("readable").join(" "));
    }
    let expected = ["kept", "kept new", "kept renamed", "renamed"];
    assert!(endings.into_iter().eq(expected));
}

/// Goal: what a failed sync lost, no later sync brings back, while the system goes on showing it;
/// overwriting does bring it back.
#[test]
fn a_failed_sync_is_not_made_good_by_the_next() {
    let mut lost = 0;
    for seed in 0..100 {
        let disk = SimulatedDisk::new(seed);
        let mut file = disk.create("file").expect("created");
        disk.sync().expect("synced");
        append(&mut *file, 7, 1_000);
        disk.fault(Fault::FailSync { syncs_before: 0 });
        file.sync().expect_err("as planned");
        file.sync().expect("claims to work");
        assert_eq!(disk.read("file").expect("there"), [7; 1_000]);
        lost += u32::from(disk.crash(seed).read("file").expect("there") != [7; 1_000]);

        file.overwrite(0, &[7; 1_000]).expect("inside");
        file.sync().expect("works");
        assert_eq!(disk.crash(seed).read("file").expect("there"), [7; 1_000]);
    }
    assert!(lost > 50);
}

/// Goal: each fault does what it says, and `repair` ends it.
#[test]
fn faults() {
    let disk = SimulatedDisk::new(5);
    let mut file = disk.create("file").expect("created");
    disk.fault(Fault::ShortWrites);
    let counts: Vec<usize> = (0..50).map(|_| file.append(&[0; 100]).expect("written")).collect();
    assert!(counts.contains(&100) && counts.iter().any(|&count| count < 100));
    assert!(!counts.contains(&0));
    disk.repair();

    disk.fault(Fault::Full { bytes: 30 });
    let full = file.append_all(&[0; 100]).expect_err("full");
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    let expected = counts.iter().sum::<usize>() + 30;
    assert_eq!(file.len().expect("there"), expected as u64);
    disk.repair();

    disk.fault(Fault::ReadOnly);
    let refused = [
        disk.create("other").err(),
        disk.delete("file").err(),
        disk.open_append("file").err(),
        disk.lock().err(),
        file.append_all(b"x").err(),
    ];
    for error in refused {
        let kind = error.map(|error| error.kind());
        assert_eq!(kind, Some(io::ErrorKind::ReadOnlyFilesystem));
    }
    disk.read("file").expect("reading works");
    disk.repair();

    disk.fault(Fault::PowerLoss { operations: 1 });
    file.append_all(b"x").expect("the last that works");
    file.append_all(b"y").expect_err("no power");
    disk.read("file").expect_err("no power");
    disk.crash(0).list().expect("the power is back");
}

/// Goal: one seed, one outcome.
#[test]
fn a_crash_is_replayed_by_its_seed() {
    let found = |seed| {
        let disk = SimulatedDisk::new(1);
        let mut file = disk.create("file").expect("created");
        disk.sync().expect("synced");
        append(&mut *file, 9, 5_000);
        disk.crash(seed).read("file").expect("there")
    };
    for seed in 0..50 {
        assert_eq!(found(seed), found(seed));
    }
}
