//! `fabius explain FILE [PROCEDURE]`: what of a procedure is done now, what later, and why.

use crate::message::{out, tell};
use clap::Args;
use fabius::program::catalog::Catalog;
use fabius::program::explain::explain;
use fabius::program::explain_svg::explain_svg;
use fabius::program::ir::Program;
use fabius::program::slice::{Ordinary, Phases, TypesOnly, slice};
use fabius::program::verify;
use fabius::{Error, Result, SqlState};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `fabius explain ...`
#[derive(Args)]
#[command(
    after_help = "What cannot fail may be done later; whether a sum can overflow depends on the data. An engine
knows the range of each column; here numbers are assumed to use at most half the digits of their
type, or any value of it with --types-only.

Examples:
  fabius explain crates/bench/programs/tpcc.fab new_order
  fabius explain crates/bench/programs/tpcc.fab payment --svg payment.svg
"
)]
pub struct Explain {
    /// A file with tables and procedures in the text form
    file: PathBuf,
    /// A procedure of it [default: all]
    procedure: Option<String>,
    /// Draw the procedure's record actions into this file
    #[arg(long, value_name = "OUT", requires = "procedure")]
    svg: Option<PathBuf>,
    /// Assume nothing of the data but its types
    #[arg(long)]
    types_only: bool,
}

/// Explains.
///
/// # Errors
/// A file that cannot be read, or what is wrong with its text.
pub fn run(arguments: &Explain) -> Result<ExitCode> {
    let text = read(&arguments.file)?;
    let catalog = match verify::load(&text, &arguments.file.display().to_string(), &Catalog::new()) {
        Ok(catalog) => catalog,
        Err(diagnostics) => {
            // These have their own way of being shown, with lines and carets.
            tell(&diagnostics.to_string());
            return Ok(ExitCode::FAILURE);
        }
    };
    let programs = chosen(&catalog, arguments)?;
    for (at, program) in programs.iter().enumerate() {
        let phases = phases(program, &catalog, arguments.types_only);
        let gap = if at > 0 { "\n\n" } else { "" };
        out(&format!("{gap}{}", explain(program, &catalog, &phases)));
        if let Some(svg) = &arguments.svg {
            std::fs::write(svg, explain_svg(program, &catalog, &phases)).map_err(|error| {
                Error::new(SqlState::IO_ERROR, "the picture cannot be written")
                    .with_detail(format!("{}: {error}", svg.display()))
            })?;
            out(&format!("\nrecord actions drawn in {}\n", svg.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(|error| {
        Error::new(SqlState::IO_ERROR, "the file cannot be read")
            .with_detail(format!("{}: {error}", file.display()))
            .with_hint("name a file with tables and procedures in the text form")
    })
}

fn chosen<'c>(catalog: &'c Catalog, arguments: &Explain) -> Result<Vec<&'c Program>> {
    let all: Vec<&Program> = catalog.procedures().map(|(_, program)| &**program).collect();
    if all.is_empty() {
        return Err(Error::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("{} has no procedure", arguments.file.display()),
        )
        .with_hint("name a file with procedures; docs/programs.md shows how they are written"));
    }
    let Some(name) = &arguments.procedure else { return Ok(all) };
    // Names are lower case, but for those in backquotes.
    let id = catalog.find_procedure(name).or_else(|| catalog.find_procedure(&name.to_ascii_lowercase()));
    let found = id.and_then(|id| catalog.procedure(id));
    found.map(|program| vec![&**program]).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|program| program.name.as_str()).collect();
        Error::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("{} has no procedure {name:?}", arguments.file.display()),
        )
        .with_hint(format!("it has {}", names.join(", ")))
    })
}

fn phases(program: &Program, catalog: &Catalog, types_only: bool) -> Phases {
    if types_only {
        slice(program, catalog, &TypesOnly)
    } else {
        slice(program, catalog, &Ordinary { program, catalog })
    }
}
