//! Who may connect, and what proves that it is them.
//!
//! The file has a user on each line: `NAME:PASSWORD`, or `NAME:SCRAM-SHA-256$ITERATIONS:SALT$STORED:SERVER` as
//! PostgreSQL's `pg_authid.rolpassword` has it, which does not tell the password. Lines that begin with `#` are
//! passed over.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fabius_sql_meaning::catalog::role::Role;
use fabius_value::{Error, Result, SqlState};
use pgwire::api::auth::sasl::scram::{SCRAM_ITERATIONS, ScramSecret, gen_salted_password};
use rand::RngCore;
use std::collections::HashMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const SALT_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
const VERIFIER: &str = "SCRAM-SHA-256$";

/// What the server keeps of a password (RFC 5802, section 3): not enough to log in elsewhere.
#[derive(Clone)]
struct Verifier {
    iterations: usize,
    salt: Vec<u8>,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

/// The users of a file.
pub struct Users {
    verifiers: HashMap<String, Verifier>,
    /// Salts of users who do not exist come from this, so that asking twice does not tell.
    pepper: [u8; KEY_BYTES],
}

impl Users {
    /// Reads a file.
    ///
    /// # Errors
    /// `58030` if it cannot be read, `22023` with the line that is wrong.
    pub fn read(path: &Path) -> Result<Users> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::new(SqlState::IO_ERROR, "the users cannot be read")
                .with_detail(format!("{}: {error}", path.display()))
                .with_hint("write a file with NAME:PASSWORD on each line")
        })?;
        Users::parse(&text).map_err(|error| {
            let detail = format!("{}: {}", path.display(), error.detail().unwrap_or_default());
            Error::new(error.state(), error.message()).with_detail(detail)
        })
    }

    fn parse(text: &str) -> Result<Users> {
        let refused = |detail: String| {
            Error::new(SqlState::INVALID_PARAMETER, "the file of users is not well formed")
                .with_detail(detail)
        };
        let mut verifiers = HashMap::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim_end_matches('\r');
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let read = line.split_once(':').filter(|(name, _)| !name.is_empty());
            let (name, verifier) =
                read.and_then(|(name, password)| Some((name, verifier(password)?))).ok_or_else(|| {
                    refused(format!("line {}: expected NAME:PASSWORD or NAME:{VERIFIER}...", at + 1))
                })?;
            if verifiers.insert(name.to_string(), verifier).is_some() {
                return Err(refused(format!("line {}: {name} is there twice", at + 1)));
            }
        }
        if verifiers.is_empty() {
            return Err(refused("nobody is in it, so nobody could connect".into()));
        }
        let mut pepper = [0; KEY_BYTES];
        rand::rng().fill_bytes(&mut pepper);
        Ok(Users { verifiers, pepper })
    }

    /// What proves that a client is this user: the password of the role of that name, if it has one, or else of the
    /// file. For a user who does not exist, something that nothing proves.
    pub fn secret(&self, user: &str, role: Option<&Role>) -> ScramSecret {
        let of_role = role.and_then(|role| role.verifier.as_deref().filter(|_| is_valid(role)));
        let of_role = of_role.and_then(|text| parse_verifier(text.strip_prefix(VERIFIER)?));
        // A role whose password is no longer valid has none in the file either.
        let is_of_file = role.is_none_or(|role| role.verifier.is_none());
        let of_file = self.verifiers.get(user).filter(|_| is_of_file).cloned();
        let verifier = of_role.or(of_file).unwrap_or_else(|| self.nobody(user));
        ScramSecret::Verifier {
            salt: verifier.salt,
            iterations: verifier.iterations,
            stored_key: verifier.stored_key,
            server_key: verifier.server_key,
        }
    }

    fn nobody(&self, user: &str) -> Verifier {
        // One round is no way to hash a password; here it only makes a salt.
        let mut salt = gen_salted_password(user, &self.pepper, 1);
        salt.truncate(SALT_BYTES);
        let mut stored_key = vec![0; KEY_BYTES];
        rand::rng().fill_bytes(&mut stored_key);
        Verifier { iterations: SCRAM_ITERATIONS, salt, server_key: stored_key.clone(), stored_key }
    }
}

/// Whether a role's password is valid still.
fn is_valid(role: &Role) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    role.valid_until_us.is_none_or(|until| i64::try_from(now).is_ok_and(|now| now < until))
}

fn verifier(password: &str) -> Option<Verifier> {
    match password.strip_prefix(VERIFIER) {
        Some(rest) => parse_verifier(rest),
        None if password.is_empty() => None,
        None => {
            let mut salt = vec![0; SALT_BYTES];
            rand::rng().fill_bytes(&mut salt);
            let salted = gen_salted_password(password, &salt, SCRAM_ITERATIONS);
            match ScramSecret::verifier_from_salted_password(salt, salted, SCRAM_ITERATIONS) {
                ScramSecret::Verifier { salt, iterations, stored_key, server_key } => {
                    Some(Verifier { iterations, salt, stored_key, server_key })
                }
                ScramSecret::SaltedPassword { .. } => None,
            }
        }
    }
}

fn parse_verifier(text: &str) -> Option<Verifier> {
    let (parameters, keys) = text.split_once('$')?;
    let (iterations, salt) = parameters.split_once(':')?;
    let (stored_key, server_key) = keys.split_once(':')?;
    let key = |text: &str| STANDARD.decode(text).ok().filter(|key| key.len() == KEY_BYTES);
    Some(Verifier {
        iterations: iterations.parse().ok().filter(|iterations| (1..=10_000_000).contains(iterations))?,
        salt: STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty())?,
        stored_key: key(stored_key)?,
        server_key: key(server_key)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: passwords and verifiers are read, and a wrong line is named without showing it.
    #[test]
    fn files_of_users() {
        let key = STANDARD.encode([7; KEY_BYTES]);
        let text = format!("# people\nana:secret\n\nbob:SCRAM-SHA-256$4096:c2FsdA==${key}:{key}\n");
        let users = Users::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(users.verifiers.len(), 2);
        let ScramSecret::Verifier { salt, iterations, stored_key, .. } = users.secret("bob", None) else {
            panic!()
        };
        assert_eq!((salt.as_slice(), iterations, stored_key.len()), (&b"salt"[..], 4096, KEY_BYTES));
        let salt = |user| match users.secret(user, None) {
            ScramSecret::Verifier { salt, .. } => salt,
            ScramSecret::SaltedPassword { .. } => panic!("not a verifier"),
        };
        assert_eq!(salt("nobody"), salt("nobody"));
        for wrong in ["ana", ":x", "ana:", "ana:SCRAM-SHA-256$x"] {
            let error = Users::parse(&format!("# one\n{wrong}\n")).err().expect("a wrong line");
            assert!(error.detail().is_some_and(|detail| detail.starts_with("line 2: ")), "{error}");
        }
        for (wrong, why) in [("ana:a\nana:b", "line 2: ana is there twice"), ("# nobody", "nobody is in it")]
        {
            let error = Users::parse(wrong).err().expect("a wrong file");
            assert!(error.detail().is_some_and(|detail| detail.starts_with(why)), "{error}");
        }
    }
}
