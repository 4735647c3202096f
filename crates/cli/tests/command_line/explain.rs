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
