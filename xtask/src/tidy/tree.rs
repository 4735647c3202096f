//! The repository's files, read once.

use std::fs;
use std::path::Path;

/// Folders whose files are not the project's own.
const SKIPPED: &[&str] = &[".git", "target", "corpus", "artifacts"];

/// A file and its text; empty if it is not text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// From the repository's root, with slashes.
    pub path: String,
    /// The file's text.
    pub text: String,
}

impl SourceFile {
    /// Rust code without the module of its tests, which stands at the end.
    pub fn code(&self) -> &str {
        self.text.find("#[cfg(test)]\nmod ").map_or(&self.text, |end| &self.text[..end])
    }

    /// The file's lines, each with its number.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(at, line)| (at + 1, line))
    }
}

/// All files, in the order of their paths.
#[derive(Debug, Default)]
pub struct Tree {
    /// The files.
    pub files: Vec<SourceFile>,
}

impl Tree {
    /// Reads every file below a folder.
    pub fn read(root: &Path) -> std::io::Result<Tree> {
        let mut tree = Tree::default();
        tree.read_folder(root, "")?;
        tree.files.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(tree)
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    self.read_folder(&entry.path(), &format!("{path}/"))?;
                }
            } else if kind.is_file() {
                let text = String::from_utf8(fs::read(entry.path())?).unwrap_or_default();
                self.files.push(SourceFile { path, text });
            }
        }
        Ok(())
    }

    /// Files whose name ends so.
    pub fn ending<'t>(&'t self, suffix: &'t str) -> impl Iterator<Item = &'t SourceFile> {
        self.files.iter().filter(move |file| file.path.ends_with(suffix))
    }

    /// Whether a file or folder has exactly this path.
    pub fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| {
            file.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// A tree of given files, for tests.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Tree {
        let files =
            files.iter().map(|(path, text)| SourceFile { path: (*path).into(), text: (*text).into() });
        Tree { files: files.collect() }
    }
}
