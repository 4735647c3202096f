//! Which database a directory belongs to: a random number in the file `IDENTITY`, also in every log
//! segment, so that files of two databases cannot be mixed up unnoticed.

use fabius_env::Disk;
use fabius_log::DatabaseId;
use fabius_value::{Error, Result, SqlState};
use std::io;
use std::path::Path;

const FILE: &str = "IDENTITY";
/// What the file begins with, before the number of its format and a line break.
const HEAD: &str = "fabius database ";
/// The number of the format that is written.
const FORMAT: u64 = 1;

/// Whether a directory is that of a node of a cluster.
pub fn is_member(path: &Path) -> bool {
    path.join(fabius_cluster::HARD_STATE_FILE).exists()
}

/// The identity of the database in `disk`, made if there is nothing of one in `data`.
///
/// # Errors
/// `58030` if the file cannot be read or written, `0A000` if a later version has written it, `XX001` if it is not
/// what it should be, or missing.
pub fn of(disk: &dyn Disk, data: &[&dyn Disk]) -> Result<DatabaseId> {
    if let Some(id) = read(disk, data)? {
        // Whoever has made it may have been killed before its name was safe.
        disk.sync().map_err(|error| io_error("reading the database's identity", disk, &error))?;
        return Ok(id);
    }
    let id = make();
    write(disk, &id).map_err(|error| io_error("creating the database", disk, &error))?;
    Ok(id)
}

/// The identity of the database in `disk`; `None` if it has none, and there is nothing of one in `data`.
///
/// # Errors
/// As [`of`].
pub fn read(disk: &dyn Disk, data: &[&dyn Disk]) -> Result<Option<DatabaseId>> {
    match disk.read(FILE) {
        Ok(bytes) => parse(&bytes).map(Some).ok_or_else(|| refusal(disk, &bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            for data in data {
                let names = data.list().map_err(|error| io_error("opening", *data, &error))?;
                if let Some(name) = names.iter().find(|name| is_data(name)) {
                    return Err(missing(disk, &format!("{}/{name}", data.directory().display())));
                }
            }
            Ok(None)
        }
        Err(error) => Err(io_error("reading the database's identity", disk, &error)),
    }
}

/// Whether a file of this name is part of a database.
fn is_data(name: &str) -> bool {
    name.ends_with(".log") || name.ends_with(".checkpoint")
}

/// Why a directory with a database's files and no identity is not begun anew.
fn missing(disk: &dyn Disk, file: &str) -> Error {
    let fact = format!("the database's identity is missing: {}/{FILE}", disk.directory().display());
    Error::new(SqlState::DATA_CORRUPTED, fact)
        .with_detail(format!("{file} is of a database"))
        .with_hint("bring the file back from a copy of the same database, or name another directory")
}

/// Why the file does not tell which database it is.
fn refusal(disk: &dyn Disk, bytes: &[u8]) -> Error {
    let file = format!("{}/{FILE}", disk.directory().display());
    match format_of(bytes) {
        Some(format) if format > FORMAT => {
            let fact = format!("database format {format} is newer than this program's, {FORMAT}");
            Error::new(SqlState::NOT_SUPPORTED, fact)
                .with_detail(file)
                .with_hint("use the version of Fabius that wrote the database, or a later one")
        }
        _ => Error::new(SqlState::DATA_CORRUPTED, "the directory is no database, or its identity is damaged")
            .with_detail(format!("{file} is not {:?} and 32 hexadecimal digits", format!("{HEAD}{FORMAT}")))
            .with_hint("name another directory, or bring the file back from a copy"),
    }
}

/// The number of the format that the file says it has.
fn format_of(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.strip_prefix(HEAD)?.lines().next()?.parse().ok()
}

/// An input or output error as the user meets it.
pub fn io_error(doing: &str, disk: &dyn Disk, error: &io::Error) -> Error {
    let state = match error.kind() {
        io::ErrorKind::StorageFull => SqlState::DISK_FULL,
        io::ErrorKind::ResourceBusy => SqlState::IN_USE,
        _ => SqlState::IO_ERROR,
    };
    let result = Error::new(state, format!("{doing} failed"))
        .with_detail(format!("{}: {error}", disk.directory().display()));
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            result.with_hint("the directory must be writable by this user")
        }
        io::ErrorKind::StorageFull => result.with_hint("free some space and open the database again"),
        _ => result,
    }
}

/// An identity that no database has.
pub fn make() -> DatabaseId {
    let [first, second] = random_numbers();
    let mut id = [0; 16];
    id[..8].copy_from_slice(&first.to_le_bytes());
    id[8..].copy_from_slice(&second.to_le_bytes());
    DatabaseId(id)
}

/// Numbers that nobody can tell beforehand.
pub(crate) fn random_numbers() -> [u64; 2] {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // The standard library's hash keys are the machine's randomness.
    std::array::from_fn(|_| RandomState::new().build_hasher().finish())
}

/// Gives a directory that has none an identity.
///
/// # Errors
/// `58030` if it cannot be written.
pub fn give(disk: &dyn Disk, id: DatabaseId) -> Result<()> {
    write(disk, &id).map_err(|error| io_error("creating the database", disk, &error))
}

fn write(disk: &dyn Disk, id: &DatabaseId) -> io::Result<()> {
    let hex: String = id.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let temporary = format!("{FILE}.new");
    if disk.list()?.contains(&temporary) {
        disk.delete(&temporary)?;
    }
    let mut file = disk.create(&temporary)?;
    file.append_all(format!("{HEAD}{FORMAT}\n{hex}\n").as_bytes())?;
    file.sync()?;
    disk.rename(&temporary, FILE)?;
    disk.sync()
}

fn parse(bytes: &[u8]) -> Option<DatabaseId> {
    let (format, rest) = std::str::from_utf8(bytes).ok()?.strip_prefix(HEAD)?.split_once('\n')?;
    if format != FORMAT.to_string() {
        return None;
    }
    let hex = rest.strip_suffix('\n')?;
    if hex.len() != 32 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(hex, 16).ok().map(|number| DatabaseId(number.to_be_bytes()))
}
