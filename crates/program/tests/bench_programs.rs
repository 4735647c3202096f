//! Goal: every program that the measurements run parses, verifies, and prints to a text that reads
//! back as the same program.

use fabius_program::catalog::Catalog;
use fabius_program::syntax::{Definition, parse};
use fabius_program::verify;

#[test]
fn bench_programs_verify_and_round_trip() {
    let folder = "../bench/programs";
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "fab") {
            continue;
        }
        seen += 1;
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let catalog = verify::load(&text, &name, &Catalog::new()).unwrap_or_else(|errors| panic!("{errors}"));
        let definitions = parse(&text, &name).unwrap();
        let printed: String = definitions.iter().map(Definition::to_string).collect();
        assert_eq!(parse(&printed, &name).unwrap(), definitions, "{printed}");
        // What the log holds gives the same programs, lines included.
        let again = verify::load(&printed, &name, &Catalog::new()).unwrap();
        for ((_, first), (_, second)) in catalog.procedures().zip(again.procedures()) {
            assert_eq!(first, second);
        }
    }
    assert!(seen >= 5, "{seen} programs in {folder}");
}
