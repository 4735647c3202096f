//! Where settings come from: the file, the environment, flags.

use super::{Configuration, SETTINGS, Setting};
use fabius_value::{Error, Result, SqlState};
use std::fmt;
use std::path::{Path, PathBuf};

/// The file that is read from the database's directory if none is named.
const FILE: &str = "fabius.toml";

/// Where a setting's value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody has set it.
    Default,
    /// A file.
    File(PathBuf),
    /// A variable of the environment.
    Variable(String),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Variable(name) => f.write_str(name),
            Origin::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// What the user has given besides the file.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The file, if one is named.
    pub file: Option<PathBuf>,
    /// Variables of the environment; those that do not begin with `FABIUS_` are passed over.
    pub variables: Vec<(String, String)>,
    /// Flags, by the setting's name.
    pub flags: Vec<(String, String)>,
}

/// What is in force, and where each setting comes from.
#[derive(Clone, Debug)]
pub struct Effective {
    /// The settings.
    pub configuration: Configuration,
    origins: Vec<Origin>,
}

impl Effective {
    /// As a file that says the same, each line with where it comes from.
    pub fn print(&self) -> String {
        let lines: Vec<(String, &Origin)> = SETTINGS
            .iter()
            .zip(&self.origins)
            .map(|(setting, origin)| {
                let value = toml::Value::String((setting.show)(&self.configuration));
                (format!("{} = {value}", setting.name), origin)
            })
            .collect();
        let width = lines.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
        lines.iter().map(|(line, origin)| format!("{line:width$}  # {origin}\n")).collect()
    }

    /// Whether nobody has set it.
    pub fn is_default(&self, name: &str) -> bool {
        let at = SETTINGS.iter().position(|setting| setting.name == name);
        at.is_none_or(|at| self.origins[at] == Origin::Default)
    }

    fn set(&mut self, name: &str, value: &str, origin: Origin) -> Result<()> {
        let at = SETTINGS.iter().position(|setting| setting.name == name);
        let at = at.ok_or_else(|| unknown(name, &origin))?;
        (SETTINGS[at].set)(&mut self.configuration, value).map_err(|error| {
            Error::new(
                SqlState::INVALID_PARAMETER,
                format!("{name} cannot be {value:?}: {}", error.message()),
            )
            .with_detail(format!("it comes from {origin}"))
            .with_hint(error.hint().unwrap_or(SETTINGS[at].help).to_string())
        })?;
        self.origins[at] = origin;
        Ok(())
    }
}

fn unknown(name: &str, origin: &Origin) -> Error {
    let error = Error::new(SqlState::INVALID_PARAMETER, format!("there is no setting {name:?}"))
        .with_detail(format!("it comes from {origin}"));
    match suggestion(name) {
        Some(setting) => error.with_hint(format!("did you mean {}?", setting.name)),
        None => error.with_hint("fabius serve --print-config lists all settings"),
    }
}

/// The setting whose name is nearest, if one is near.
fn suggestion(name: &str) -> Option<&'static Setting> {
    let name = name.to_lowercase().replace('-', "_");
    let nearest = SETTINGS.iter().min_by_key(|setting| distance(&name, setting.name))?;
    (distance(&name, nearest.name) <= 1 + nearest.name.len() / 4).then_some(nearest)
}

/// How many letters have to be put in, taken out or changed to make one of the other.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, letter) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (other_at, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[other_at + 1];
            row[other_at + 1] = changed.min(diagonal + 1).min(row[other_at] + 1);
        }
    }
    row[right.len()]
}

/// Puts together what is in force.
///
/// # Errors
/// A file that cannot be read, settings that do not exist, values that they do not take.
pub fn effective(given: &Given) -> Result<Effective> {
    let mut effective =
        Effective { configuration: Configuration::default(), origins: vec![Origin::Default; SETTINGS.len()] };
    let variable = |name: &str| given.variables.iter().find(|(variable, _)| variable == name).map(|(_, v)| v);
    let named = given.file.clone().or_else(|| variable("FABIUS_CONFIG").map(PathBuf::from));
    let directory = given.flags.iter().find(|(name, _)| name == "directory").map(|(_, value)| value);
    let directory = directory.or_else(|| variable("FABIUS_DIRECTORY"));
    let usual = directory.map_or(effective.configuration.directory.clone(), PathBuf::from).join(FILE);
    if let Some(path) = named.or_else(|| usual.is_file().then_some(usual)) {
        read_file(&path, &mut effective)?;
    }
    for (variable, value) in &given.variables {
        let Some(rest) = variable.strip_prefix("FABIUS_").filter(|rest| *rest != "CONFIG") else { continue };
        let name = rest.to_lowercase();
        // Other programs of Fabius have variables too; only what looks like a slip is an error.
        if SETTINGS.iter().any(|setting| setting.name == name) || suggestion(&name).is_some() {
            effective.set(&name, value, Origin::Variable(variable.clone()))?;
        }
    }
    for (name, value) in &given.flags {
        effective.set(name, value, Origin::Flag(name.replace('_', "-")))?;
    }
    check(&effective.configuration)?;
    Ok(effective)
}

fn read_file(path: &Path, effective: &mut Effective) -> Result<()> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::new(SqlState::IO_ERROR, "the configuration cannot be read")
            .with_detail(format!("{shown}: {error}"))
    })?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        Error::new(SqlState::INVALID_PARAMETER, "the configuration is not TOML")
            .with_detail(format!("{shown}: {error}"))
    })?;
    for (name, value) in table {
        effective.set(&name, &plain(&value), Origin::File(path.to_path_buf()))?;
    }
    Ok(())
}

/// A value of the file as the text of a flag.
fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// What no single setting shows.
fn check(configuration: &Configuration) -> Result<()> {
    let refuse = |what: &str, hint: &str| {
        Err(Error::new(SqlState::INVALID_PARAMETER, what.to_string()).with_hint(hint.to_string()))
    };
    if !configuration.listen.ip().is_loopback() && configuration.users.is_none() {
        return refuse(
            &format!("listening on {} needs passwords", configuration.listen),
            "name a file with users and passwords (--users FILE), or listen on 127.0.0.1",
        );
    }
    if configuration.tls_certificate.is_some() != configuration.tls_key.is_some() {
        return refuse(
            "a certificate needs its key, and a key its certificate",
            "set tls_certificate and tls_key",
        );
    }
    let peers = [&configuration.peer_authority, &configuration.peer_certificate, &configuration.peer_key];
    if peers.iter().any(|file| file.is_some()) && peers.iter().any(|file| file.is_none()) {
        return refuse(
            "nodes know each other by an authority, a certificate and its key",
            "set peer_authority, peer_certificate and peer_key, or none of them",
        );
    }
    if configuration.tls_required && configuration.tls_certificate.is_none() {
        return refuse("TLS is required, but there is no certificate", "set tls_certificate and tls_key");
    }
    if configuration.reserved_connections >= configuration.max_connections {
        return refuse("every connection is reserved", "set max_connections above reserved_connections");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(variables: &[(&str, &str)], flags: &[(&str, &str)]) -> Given {
        let owned =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        Given { file: None, variables: owned(variables), flags: owned(flags) }
    }

    /// Goal: flags beat variables, which beat the file, which beats defaults; each is told.
    #[test]
    fn later_sources_win() {
        let directory = tempfile::tempdir().expect("a directory");
        let file =
            "max_connections = 7\nstatement_timeout = '1s'\nlog = 'warn'\nadministrators = ['a', 'b']\n";
        std::fs::write(directory.path().join(FILE), file).expect("a file");
        let path = directory.path().display().to_string();
        let given = given(
            &[("FABIUS_STATEMENT_TIMEOUT", "2s"), ("FABIUS_LOG", "error"), ("FABIUS_SEEDS", "9")],
            &[("directory", &path), ("log", "debug")],
        );
        let effective = effective(&given).expect("settings");
        let configuration = &effective.configuration;
        assert_eq!(configuration.max_connections, 7);
        assert_eq!(configuration.statement_timeout.as_secs(), 2);
        assert_eq!(configuration.log, "debug");
        assert_eq!(configuration.administrators, ["a", "b"]);
        let printed = effective.print();
        let line = |name: &str| printed.lines().find(|line| line.starts_with(name)).expect(name).to_string();
        assert!(line("max_connections").contains("\"7\"  "), "{printed}");
        assert!(line("max_connections").ends_with(FILE), "{printed}");
        assert!(line("statement_timeout").ends_with("# FABIUS_STATEMENT_TIMEOUT"), "{printed}");
        assert!(line("log ").ends_with("# --log"), "{printed}");
        assert!(line("engine").ends_with("# default"), "{printed}");
        assert!(printed.parse::<toml::Table>().is_ok(), "{printed}");
    }

    /// Goal: what is misspelt is refused with what was meant; what is unsafe with what to do.
    #[test]
    fn mistakes_are_named() {
        let error = |variables: &[(&str, &str)], flags: &[(&str, &str)]| {
            effective(&given(variables, flags)).expect_err("a mistake").to_string()
        };
        let misspelt = error(&[("FABIUS_MAX_CONECTIONS", "5")], &[]);
        assert_eq!(
            misspelt,
            "there is no setting \"max_conections\"; it comes from FABIUS_MAX_CONECTIONS; hint: did you mean \
             max_connections?"
        );
        assert!(error(&[], &[("max_connections", "many")]).starts_with("max_connections cannot be \"many\""));
        assert!(error(&[], &[("listen", "0.0.0.0:5433")]).contains("needs passwords"));
        assert!(error(&[], &[("tls_required", "on")]).contains("certificate"));
    }
}
