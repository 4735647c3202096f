//! Goal: what the documents show as programs is so. Every block marked `fab` in a Markdown file of the
//! root or of `docs` parses and verifies, with the blocks above it on the page, and every block marked
//! `fab refused` does not.

use fabius_program::catalog::Catalog;
use fabius_program::verify;
use std::path::{Path, PathBuf};

const ROOT: &str = "../..";

struct Block {
    /// The line of its first line, 1-based.
    line: usize,
    is_refused: bool,
    text: String,
}

#[test]
fn programs_in_documents_are_programs() {
    let mut seen = 0;
    for page in pages() {
        let name = page.strip_prefix(ROOT).unwrap_or(&page).display().to_string();
        let text = std::fs::read_to_string(&page).unwrap();
        let mut catalog = Catalog::new();
        for block in blocks(&text) {
            seen += 1;
            // Blank lines before it make the errors' lines those of the page.
            let padded = "\n".repeat(block.line - 1) + &block.text;
            match verify::load(&padded, &name, &catalog) {
                Ok(next) if !block.is_refused => catalog = next,
                Ok(_) => panic!("{name}:{}: is a program, and the page says that it is refused", block.line),
                Err(_) if block.is_refused => {}
                Err(errors) => panic!("{errors}"),
            }
        }
    }
    assert!(seen >= 5, "{seen} blocks in all pages");
}

/// Markdown files of the root and of `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![PathBuf::from(ROOT).join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                pages.push(path);
            }
        }
    }
    pages.extend(std::fs::read_dir(ROOT).unwrap().map(|entry| entry.unwrap().path()));
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md") && Path::is_file(path));
    pages.sort();
    pages
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        // Any other block is passed over as a whole, so that its end is not taken for a beginning.
        let body: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        if matches!(kind, "fab" | "fab refused") {
            blocks.push(Block { line: at + 2, is_refused: kind != "fab", text: body.join("\n") });
        }
    }
    blocks
}
