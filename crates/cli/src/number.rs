//! Numbers and sizes on the command line: read within their bounds, and refused in the words of every other error.

use crate::message::told;
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command};
use fabius::quantity::parse_size;
use fabius::{Error, SqlState};
use fabius_bench::settings::Domain;
use std::ffi::OsStr;
use std::marker::PhantomData;
use std::str::FromStr;

/// Reads a number that lies in a domain.
pub struct Within<T>(Domain, PhantomData<fn() -> T>);

/// A whole number in a range, both ends included.
pub fn whole<T>(low: u64, high: u64) -> Within<T> {
    Within(Domain::Integer(low, high), PhantomData)
}

/// A number in a range, both ends included.
pub fn real(low: f64, high: f64) -> Within<f64> {
    Within(Domain::Number(low, high), PhantomData)
}

impl<T> Clone for Within<T> {
    fn clone(&self) -> Within<T> {
        Within(self.0, PhantomData)
    }
}

impl<T: FromStr + Clone + Send + Sync + 'static> TypedValueParser for Within<T> {
    type Value = T;

    fn parse_ref(&self, _: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let text = value.to_string_lossy();
        let number = text.parse().ok().filter(|_| self.0.holds(&text));
        number.ok_or_else(|| refused(arg, &text, &self.0.allowed()))
    }
}

/// Reads a size as people write it.
#[derive(Clone)]
pub struct Size;

impl TypedValueParser for Size {
    type Value = u64;

    fn parse_ref(&self, _: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<u64, clap::Error> {
        let text = value.to_string_lossy();
        parse_size(&text).ok_or_else(|| refused(arg, &text, "a size, such as 64MB"))
    }
}

fn refused(arg: Option<&Arg>, value: &str, allowed: &str) -> clap::Error {
    let flag = arg.and_then(Arg::get_long).unwrap_or("number");
    let error = Error::new(SqlState::INVALID_PARAMETER, format!("--{flag} cannot be {value:?}"))
        .with_hint(format!("give {allowed}"));
    clap::Error::raw(ErrorKind::ValueValidation, told(&error))
}
