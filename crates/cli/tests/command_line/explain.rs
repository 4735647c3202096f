//! `fabius explain`: something is explained, or it is said why not.

use crate::{refused, run, text};

/// Goal: a file without procedures is an error, whether one was named or not.
#[test]
fn a_file_without_procedures_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("empty.fab");
    for text_of_file in ["", "table t { id: bigint, primary key (id) using hash }\n"] {
        std::fs::write(&file, text_of_file).expect("a file");
        let error = format!(
            "error: {} has no procedure\n  hint: name a file with procedures; docs/programs.md shows how they are \
             written\n",
            text(&file)
        );
        refused(&["explain", text(&file)], 1, &error);
        refused(&["explain", text(&file), "transfer"], 1, &error);
    }
}

/// Goal: what README points to shows something that waits, and why.
#[test]
fn the_flash_sale_shows_what_waits() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README");
    assert!(readme.contains("explain crates/cli/programs/flash_sale.fab put_in_cart"));
    let explained = run(&["explain", "programs/flash_sale.fab", "put_in_cart"]);
    assert_eq!((explained.code, explained.err.as_str()), (Some(0), ""));
    assert!(explained.out.starts_with("put_in_cart: values are computed later\n"), "{}", explained.out);
    assert!(explained.out.contains("later: value of shoppers.cart_total"), "{}", explained.out);
}

/// Goal: an error in a file is shown with its place; a procedure that is not there is answered with those that are.
#[test]
fn what_cannot_be_explained_is_told_with_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("wrong.fab");
    std::fs::write(&file, "procedure p() {\n    let x = 1 +\n}\n").expect("a file");
    let wrong = run(&["explain", text(&file)]);
    assert_eq!((wrong.code, wrong.out.as_str()), (Some(1), ""));
    assert!(wrong.err.contains("wrong.fab") && wrong.err.contains('^'), "{}", wrong.err);
    let missing = run(&["explain", "programs/flash_sale.fab", "put_in_card"]);
    assert_eq!((missing.code, missing.out.as_str()), (Some(1), ""));
    assert!(missing.err.contains("put_in_card") && missing.err.contains("put_in_cart"), "{}", missing.err);
}

/// Goal: the drawing is written where it was asked for.
#[test]
fn record_actions_are_drawn() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("put_in_cart.svg");
    let drawn = run(&["explain", "programs/flash_sale.fab", "put_in_cart", "--svg", text(&file)]);
    assert_eq!((drawn.code, drawn.err.as_str()), (Some(0), ""));
    assert!(std::fs::read_to_string(&file).expect("the drawing").starts_with("<svg"));
}
