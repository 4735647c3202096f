//! Functions and operators of addresses of hosts and networks (PostgreSQL's documentation, 9.12).

use super::{Definition, define, integer_at};
use fabius_value::network::Network;
use fabius_value::{Error, Result, SqlState, Value};

/// All of them.
pub fn definitions() -> Vec<Definition> {
    let mut all = vec![
        define("abbrev(inet) text", |a, _| Ok(at(a, 0)?.to_string().into())),
        define("abbrev(cidr) text", |a, _| Ok(at(a, 0)?.abbreviated().into())),
        define("broadcast(inet) inet", |a, _| {
            let network = at(a, 0)?;
            Ok(network.with_number(network.number() | network.host_mask()).into_value())
        }),
        define("family(inet) int", |a, _| Ok(Value::Int(if at(a, 0)?.address.is_ipv4() { 4 } else { 6 }))),
        define("host(inet) text", |a, _| Ok(at(a, 0)?.host().into())),
        define("hostmask(inet) inet", |a, _| {
            let network = at(a, 0)?;
            Ok(alone(network, network.host_mask()))
        }),
        define("inet_merge(inet, inet) cidr", |a, _| {
            let merged = at(a, 0)?.merged(at(a, 1)?);
            let message = "cannot merge addresses from different families";
            merged.map(Network::into_value).ok_or_else(|| Error::new(SqlState::INVALID_PARAMETER, message))
        }),
        define("inet_same_family(inet, inet) bool", |a, _| Ok(is_of_family(at(a, 0)?, at(a, 1)?).into())),
        define("masklen(inet) int", |a, _| Ok(Value::Int(at(a, 0)?.bits.into()))),
        define("netmask(inet) inet", |a, _| {
            let network = at(a, 0)?;
            Ok(alone(network, network.most() & !network.host_mask()))
        }),
        define("network(inet) cidr", |a, _| Ok(at(a, 0)?.network().into_value())),
        define("set_masklen(inet, int) inet", |a, _| of_length(a).map(Network::into_value)),
        define("set_masklen(cidr, int) cidr", |a, _| Ok(of_length(a)?.network().into_value())),
        define("text(inet) text", |a, _| Ok(at(a, 0)?.shown_whole().into())),
    ];
    all.extend(operators());
    all
}

fn operators() -> Vec<Definition> {
    vec![
        define("<<(inet, inet) bool", |a, _| Ok(is_within(at(a, 0)?, at(a, 1)?).into())),
        define("<<=(inet, inet) bool", |a, _| Ok(at(a, 1)?.contains(at(a, 0)?).into())),
        define(">>(inet, inet) bool", |a, _| Ok(is_within(at(a, 1)?, at(a, 0)?).into())),
        define(">>=(inet, inet) bool", |a, _| Ok(at(a, 0)?.contains(at(a, 1)?).into())),
        define("&&(inet, inet) bool", |a, _| {
            let (left, right) = (at(a, 0)?, at(a, 1)?);
            Ok((left.contains(right) || right.contains(left)).into())
        }),
        define("~(inet) inet", |a, _| {
            let network = at(a, 0)?;
            Ok(network.with_number(!network.number()).into_value())
        }),
        define("&(inet, inet) inet", |a, _| bitwise(a, "AND", |left, right| left & right)),
        define("|(inet, inet) inet", |a, _| bitwise(a, "OR", |left, right| left | right)),
        define("+(inet, bigint) inet", |a, _| moved(at(a, 0)?, integer_at(a, 1).into())),
        define("+(bigint, inet) inet", |a, _| moved(at(a, 1)?, integer_at(a, 0).into())),
        define("-(inet, bigint) inet", |a, _| moved(at(a, 0)?, -i128::from(integer_at(a, 1)))),
        define("-(inet, inet) bigint", |a, _| {
            let (left, right) = (at(a, 0)?, at(a, 1)?);
            if !is_of_family(left, right) {
                let message = "cannot subtract inet values of different sizes";
                return Err(Error::new(SqlState::INVALID_PARAMETER, message));
            }
            // Modulo 2^128, as in PostgreSQL.
            let difference = left.number().wrapping_sub(right.number()) as i128;
            i64::try_from(difference).map(Value::BigInt).map_err(|_| out_of_range())
        }),
    ]
}

/// The address at a place of the arguments.
fn at(arguments: &[Value], place: usize) -> Result<Network> {
    let network = arguments.get(place).and_then(Network::of_value);
    network.ok_or_else(|| Error::new(SqlState(*b"XX001"), "bytes that are stored for an address are none"))
}

fn out_of_range() -> Error {
    Error::new(SqlState::OUT_OF_RANGE, "result is out of range")
}

/// The address of a number in the family of another, of no network.
fn alone(of: Network, number: u128) -> Value {
    Network { bits: of.width(), ..of.with_number(number) }.into_value()
}

fn is_of_family(left: Network, right: Network) -> bool {
    left.width() == right.width()
}

/// Whether the one is a smaller part of the other.
fn is_within(part: Network, whole: Network) -> bool {
    part.bits > whole.bits && whole.contains(part)
}

/// An address with as many bits for its network as are given, -1 for all.
fn of_length(arguments: &[Value]) -> Result<Network> {
    let (network, bits) = (at(arguments, 0)?, integer_at(arguments, 1));
    let bits = if bits == -1 { network.width().into() } else { bits };
    match u8::try_from(bits) {
        Ok(bits) if bits <= network.width() => Ok(Network { bits, ..network }),
        _ => Err(Error::new(SqlState::INVALID_PARAMETER, format!("invalid mask length: {bits}"))),
    }
}

fn bitwise(arguments: &[Value], word: &str, operate: fn(u128, u128) -> u128) -> Result<Value> {
    let (left, right) = (at(arguments, 0)?, at(arguments, 1)?);
    if !is_of_family(left, right) {
        let message = format!("cannot {word} inet values of different sizes");
        return Err(Error::new(SqlState::INVALID_PARAMETER, message));
    }
    let result = left.with_number(operate(left.number(), right.number()));
    Ok(Network { bits: left.bits.max(right.bits), ..result }.into_value())
}

/// The address so many behind another.
fn moved(network: Network, by: i128) -> Result<Value> {
    let number = match u128::try_from(by) {
        Ok(by) => network.number().checked_add(by),
        Err(_) => network.number().checked_sub(by.unsigned_abs()),
    };
    let number = number.filter(|number| *number <= network.most()).ok_or_else(out_of_range)?;
    Ok(network.with_number(number).into_value())
}
