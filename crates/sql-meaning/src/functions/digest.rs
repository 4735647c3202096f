//! Digests of bytes (PostgreSQL's documentation, 9.5 and F.28; FIPS 180-4, RFC 1321, RFC 2104).

use super::text::bytes_at;
use super::{Definition, define, text_at};
use fabius_value::{Error, Result, SqlState, Value};
use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

/// All of them.
pub(super) fn definitions() -> Vec<Definition> {
    vec![
        define("md5(bytea) text", |a, _| {
            Ok(Value::Text(Md5::digest(bytes_at(a, 0)).iter().map(|byte| format!("{byte:02x}")).collect()))
        }),
        define("sha224(bytea) bytea", |a, _| Ok(Value::Bytea(Sha224::digest(bytes_at(a, 0)).to_vec()))),
        define("sha256(bytea) bytea", |a, _| Ok(Value::Bytea(Sha256::digest(bytes_at(a, 0)).to_vec()))),
        define("sha384(bytea) bytea", |a, _| Ok(Value::Bytea(Sha384::digest(bytes_at(a, 0)).to_vec()))),
        define("sha512(bytea) bytea", |a, _| Ok(Value::Bytea(Sha512::digest(bytes_at(a, 0)).to_vec()))),
        define("digest(bytea, text) bytea", |a, _| digest(&bytes_at(a, 0), text_at(a, 1))),
        define("digest(text, text) bytea", |a, _| digest(text_at(a, 0).as_bytes(), text_at(a, 1))),
        define("hmac(bytea, bytea, text) bytea", |a, _| {
            hmac(&bytes_at(a, 0), &bytes_at(a, 1), text_at(a, 2))
        }),
        define("hmac(text, text, text) bytea", |a, _| {
            hmac(text_at(a, 0).as_bytes(), text_at(a, 1).as_bytes(), text_at(a, 2))
        }),
    ]
}

/// The digest of bytes by an algorithm's name.
fn digest(bytes: &[u8], algorithm: &str) -> Result<Value> {
    Ok(Value::Bytea(match algorithm.to_lowercase().as_str() {
        "md5" => Md5::digest(bytes).to_vec(),
        "sha1" => Sha1::digest(bytes).to_vec(),
        "sha224" => Sha224::digest(bytes).to_vec(),
        "sha256" => Sha256::digest(bytes).to_vec(),
        "sha384" => Sha384::digest(bytes).to_vec(),
        "sha512" => Sha512::digest(bytes).to_vec(),
        _ => return Err(no_algorithm(algorithm)),
    }))
}

/// The digest of bytes that only who has the key can make.
fn hmac(bytes: &[u8], key: &[u8], algorithm: &str) -> Result<Value> {
    fn of<M: Mac + KeyInit>(bytes: &[u8], key: &[u8]) -> Result<Vec<u8>> {
        let refused = |_| Error::new(SqlState::INVALID_PARAMETER, "a key of this length is not supported");
        let mac = <M as KeyInit>::new_from_slice(key).map_err(refused)?;
        Ok(mac.chain_update(bytes).finalize().into_bytes().to_vec())
    }
    let digest = match algorithm.to_lowercase().as_str() {
        "md5" => of::<Hmac<Md5>>(bytes, key),
        "sha1" => of::<Hmac<Sha1>>(bytes, key),
        "sha224" => of::<Hmac<Sha224>>(bytes, key),
        "sha256" => of::<Hmac<Sha256>>(bytes, key),
        "sha384" => of::<Hmac<Sha384>>(bytes, key),
        "sha512" => of::<Hmac<Sha512>>(bytes, key),
        _ => Err(no_algorithm(algorithm)),
    };
    digest.map(Value::Bytea)
}

fn no_algorithm(name: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, format!("Cannot use \"{name}\": No such hash algorithm"))
        .with_hint("there are md5, sha1, sha224, sha256, sha384 and sha512")
}
