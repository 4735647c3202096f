//! Makes figures without the `fabius` program, which takes long to build.
//!
//! ```sh
//! cargo run --release -p fabius-bench --example figure -- ID ...
//! ```
//!
//! Figures are made in their quick form, with as many threads as there are cores.

use fabius::Result;
use fabius_bench::figure::{self, FigureKind, Laboratory};
use fabius_bench::interrupt::Interrupt;
use fabius_bench::machine;
use std::time::Duration;

fn main() -> Result<()> {
    for id in std::env::args().skip(1) {
        let kind = FigureKind::find(&id)?;
        let mut laboratory = Laboratory {
            is_quick: true,
            threads: machine::cores(),
            parent: None,
            network_delay: Duration::ZERO,
            interrupt: Interrupt::default(),
            say: &mut |_| {},
            reserve: &mut |_| Ok(()),
        };
        println!("{}", figure::make(kind, &mut laboratory, None)?);
    }
    Ok(())
}
