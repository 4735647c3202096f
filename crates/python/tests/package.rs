//! The package as Python sees it: this program puts it together of what Cargo has built, and runs its tests.
//!
//! ```text
//! cargo test --test package                            with the clients' Python, or `python3`, and with the newest
//! FABIUS_PYTHON=python3.13 cargo test --test package
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of this crate.
fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The module that Cargo has built beside this program.
fn module() -> PathBuf {
    let program = std::env::current_exe().expect("this program has a path");
    let folder = program.parent().expect("it is in a folder");
    let name = format!("{}fabius_python{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    folder.join(name)
}

/// A folder with the package as it is installed.
fn installed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let package = folder.path().join("fabius");
    copy(&home().join("python/fabius"), &package);
    std::fs::copy(module(), package.join("_fabius.abi3.so"))
        .expect("Cargo builds the module before this program");
    folder
}

/// Copies a folder and those within it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("it is new");
    for entry in std::fs::read_dir(from).expect("it is there") {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().expect("it has a name");
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            std::fs::copy(&path, to.join(name)).expect("a copy");
        }
    }
}

/// The Python that tests run on: the one that is asked for, that with SQLAlchemy and pandas (`cargo xtask clients`), or
/// the one that there is.
fn python() -> PathBuf {
    if let Some(asked) = std::env::var_os("FABIUS_PYTHON") {
        return asked.into();
    }
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/fabius/clients");
    let clients = std::env::var_os("FABIUS_CLIENTS").map_or_else(home, PathBuf::from);
    let python = clients.join("python/bin/python");
    if python.exists() { python } else { "python3".into() }
}

/// The newest Python on the path, or that pyenv or uv has installed.
fn newest() -> Option<PathBuf> {
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let pyenv = std::env::var_os("PYENV_ROOT").map_or_else(|| home.join(".pyenv"), PathBuf::from);
    let installed = [pyenv.join("versions"), home.join(".local/share/uv/python")];
    let installed = installed.iter().flat_map(std::fs::read_dir).flatten().flatten();
    let mut folders: Vec<PathBuf> = installed.map(|version| version.path().join("bin")).collect();
    folders.extend(std::env::split_paths(&std::env::var_os("PATH")?));
    let numbered = |path: PathBuf| {
        let number = path.file_name()?.to_str()?.strip_prefix("python3.")?.parse::<u32>().ok()?;
        Some((number, path))
    };
    let files = folders.iter().flat_map(std::fs::read_dir).flatten().flatten();
    files.filter_map(|file| numbered(file.path())).max().map(|(_, path)| path)
}

/// Runs the tests of the package.
fn run_tests(python: &Path) {
    let installed = installed();
    let run = Command::new(python)
        .args(["-W", "error::ResourceWarning", "-m", "unittest", "discover", "--start-directory"])
        .arg(home().join("tests"))
        .env("PYTHONPATH", installed.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output();
    let run =
        run.unwrap_or_else(|error| panic!("{} does not start: {error}; set FABIUS_PYTHON", python.display()));
    assert!(run.status.success(), "{}:\n{}", python.display(), String::from_utf8_lossy(&run.stderr));
}

/// Goal: all tests of the package pass, and its examples do what they say.
#[test]
fn python_tests_pass() {
    run_tests(&python());
}

/// Goal: they pass on the newest Python that is installed, too.
#[test]
fn python_tests_pass_on_the_newest() {
    if std::env::var_os("FABIUS_PYTHON").is_none()
        && let Some(newest) = newest()
    {
        run_tests(&newest);
    }
}
