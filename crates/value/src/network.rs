//! Addresses of hosts and networks: PostgreSQL's `inet` and `cidr` (its documentation, 8.9; RFC 4632, RFC 5952).

use crate::value::Value;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address, of which some of the first bits are those of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The address.
    pub address: IpAddr,
    /// How many bits are the network's: at most [`Network::width`].
    pub bits: u8,
}

impl Network {
    /// Reads a host's address with or without its bits: `10.0.0.1`, `10.1/16`, `::1/64`.
    #[must_use]
    pub fn host_of_text(text: &str) -> Option<Network> {
        if text.contains(':') {
            return Network::of_text_v6(text);
        }
        let (octets, bits) = Network::parts(text)?;
        let given = octets.len() as u8;
        let bits = match bits {
            None if given == 4 => 32,
            bits => bits?,
        };
        (bits / 8 <= given).then(|| Network { address: v4(&octets), bits })
    }

    /// Reads a network, whose class says how many bits it has if the text does not: `10.1`, `192.168.1/25`. Bits behind
    /// those may be set: see [`Network::is_whole`].
    #[must_use]
    pub fn network_of_text(text: &str) -> Option<Network> {
        if text.contains(':') {
            return Network::of_text_v6(text);
        }
        let (octets, bits) = Network::parts(text)?;
        let by_class = || {
            let of_class = match octets[0] {
                240.. => 32,
                224.. => 8,
                192.. => 24,
                128.. => 16,
                _ => 8,
            };
            match of_class.max(octets.len() as u8 * 8) {
                8 if octets[0] == 224 => 4,
                bits => bits,
            }
        };
        Some(Network { address: v4(&octets), bits: bits.unwrap_or_else(by_class) })
    }

    /// One to four numbers with points between them, and the bits behind a slash.
    fn parts(text: &str) -> Option<(Vec<u8>, Option<u8>)> {
        let (octets, bits) = match text.split_once('/') {
            None => (text, None),
            Some((octets, bits)) => (octets, Some(number(bits).filter(|bits| *bits <= 32)? as u8)),
        };
        let octets = octets.split('.').map(|octet| number(octet).and_then(|octet| u8::try_from(octet).ok()));
        let octets = octets.collect::<Option<Vec<u8>>>()?;
        (octets.len() <= 4).then_some((octets, bits))
    }

    fn of_text_v6(text: &str) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            None => (text, 128),
            Some((_, bits)) if bits.len() > 1 && bits.starts_with('0') => return None,
            Some((address, bits)) => (address, number(bits).filter(|bits| *bits <= 128)? as u8),
        };
        Some(Network { address: IpAddr::V6(address.parse().ok()?), bits })
    }

    /// What [`Network::to_bytes`] has made.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Option<Network> {
        match bytes {
            [4, _, _, _, _, bits, address @ ..] => {
                let address = <[u8; 4]>::try_from(address).ok()?;
                Some(Network { address: address.into(), bits: *bits })
            }
            [6, rest @ ..] => {
                let (bits, address) = rest.split_at_checked(16)?.1.split_first()?;
                let address = <[u8; 16]>::try_from(address).ok()?;
                Some(Network { address: address.into(), bits: *bits })
            }
            _ => None,
        }
    }

    /// What is stored. Its bytes have the order of addresses: the family, the network, its bits, the whole address.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = vec![if self.address.is_ipv4() { 4 } else { 6 }];
        let put = |address: IpAddr, bytes: &mut Vec<u8>| match address {
            IpAddr::V4(address) => bytes.extend(address.octets()),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        };
        put(self.network().address, &mut bytes);
        bytes.push(self.bits);
        put(self.address, &mut bytes);
        bytes
    }

    /// The value that is stored.
    #[must_use]
    pub fn into_value(self) -> Value {
        Value::Bytea(self.to_bytes())
    }

    /// What a value says that is stored; `None` for null.
    #[must_use]
    pub fn of_value(value: &Value) -> Option<Network> {
        match value {
            Value::Bytea(bytes) => Network::of_bytes(bytes),
            _ => None,
        }
    }

    /// Bits of an address of its family: 32 or 128.
    #[must_use]
    pub fn width(self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// The address as a number.
    #[must_use]
    pub fn number(self) -> u128 {
        match self.address {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits(),
        }
    }

    /// The largest number of its family.
    #[must_use]
    pub fn most(self) -> u128 {
        u128::MAX >> (128 - u32::from(self.width()))
    }

    /// The address of this number in its family; what is beyond is cut.
    #[must_use]
    pub fn with_number(self, number: u128) -> Network {
        let address = match self.address {
            IpAddr::V4(_) => Ipv4Addr::from_bits(number as u32).into(),
            IpAddr::V6(_) => Ipv6Addr::from_bits(number).into(),
        };
        Network { address, ..self }
    }

    /// The bits behind those of the network, set.
    #[must_use]
    pub fn host_mask(self) -> u128 {
        self.most().checked_shr(self.bits.into()).unwrap_or(0)
    }

    /// The network: no bit behind its own is set.
    #[must_use]
    pub fn network(self) -> Network {
        self.with_number(self.number() & !self.host_mask())
    }

    /// Whether it is a network's address: no bit behind the network's is set.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.number() & self.host_mask() == 0
    }

    /// Whether another is of the same network, or of one within.
    #[must_use]
    pub fn contains(self, other: Network) -> bool {
        self.width() == other.width()
            && self.bits <= other.bits
            && (self.number() ^ other.number()) & !self.host_mask() & self.most() == 0
    }

    /// The smallest network that has both; `None` if they are of two families.
    #[must_use]
    pub fn merged(self, other: Network) -> Option<Network> {
        if self.width() != other.width() {
            return None;
        }
        let equal = (self.number() ^ other.number()).leading_zeros() as u8;
        let in_common = equal - (128 - self.width());
        Some(Network { bits: self.bits.min(other.bits).min(in_common), ..self }.network())
    }

    /// The address alone.
    #[must_use]
    pub fn host(self) -> String {
        let IpAddr::V6(address) = self.address else { return self.address.to_string() };
        // Addresses that hold one of the other family show it (RFC 5952, 5); of those deprecated too.
        match address.segments() {
            [0, 0, 0, 0, 0, 0, high, low] if high != 0 => {
                format!("::{}", Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
            }
            _ => address.to_string(),
        }
    }

    /// The address with its network's bits, also if they are all.
    #[must_use]
    pub fn shown_whole(self) -> String {
        format!("{}/{}", self.host(), self.bits)
    }

    /// A network without the zeros at its end: `10.1/16`, `2001:db8/32`. An IPv6 network with other zeros stays as it
    /// is, as what is left would be that of another one too.
    #[must_use]
    pub fn abbreviated(self) -> String {
        let shown = match self.address {
            IpAddr::V4(address) => {
                let count = usize::from(self.bits.div_ceil(8).max(1));
                address.octets()[..count].iter().map(u8::to_string).collect::<Vec<_>>().join(".")
            }
            IpAddr::V6(address) => {
                let count = usize::from(self.bits.div_ceil(16).max(2));
                let words = &address.segments()[..count];
                match words.contains(&0) {
                    true => self.host(),
                    false => words.iter().map(|word| format!("{word:x}")).collect::<Vec<_>>().join(":"),
                }
            }
        };
        format!("{shown}/{}", self.bits)
    }
}

impl fmt::Display for Network {
    /// The address, with the network's bits if they are not all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host())?;
        if self.bits == self.width() { Ok(()) } else { write!(f, "/{}", self.bits) }
    }
}

/// The number that digits say, if nothing else is there.
fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn v4(octets: &[u8]) -> IpAddr {
    let mut all = [0; 4];
    all[..octets.len()].copy_from_slice(octets);
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: bytes say all of an address, and have PostgreSQL's order: by family, network, bits, address.
    #[test]
    fn bytes_have_the_order_of_addresses() {
        let rising = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.0.0.1/8",
            "10.255.0.0/8",
            "10.0.0.0/9",
            "10.0.0.1/31",
            "10.0.0.0",
            "10.0.0.1",
            "10.1.0.0/16",
            "255.255.255.255",
            "::/0",
            "::1",
            "::ffff:1.2.3.4",
            "2001:db8::/32",
            "2001:db8::1",
        ];
        let read: Vec<Network> = rising.iter().filter_map(|text| Network::host_of_text(text)).collect();
        assert_eq!(read.len(), rising.len());
        for (network, text) in read.iter().zip(rising) {
            assert_eq!(network.to_string(), text);
            assert_eq!(Network::of_bytes(&network.to_bytes()), Some(*network));
        }
        assert!(read.is_sorted_by_key(|network| network.to_bytes()), "{rising:?}");
    }

    /// Goal: bytes that are no address are none.
    #[test]
    fn bytes_that_are_no_addresses_are_refused() {
        for text in ["10.0.0.1/8", "2001:db8::1"] {
            let bytes = Network::host_of_text(text).map(Network::to_bytes).unwrap_or_default();
            for end in 0..bytes.len() {
                assert_eq!(Network::of_bytes(&bytes[..end]), None, "{text} up to {end}");
            }
        }
        assert_eq!(Network::of_bytes(&[5, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    /// Goal: what is no address is none, and never a panic.
    #[test]
    fn texts_that_are_no_addresses_are_refused() {
        for text in [
            "",
            "/",
            "1",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.256",
            "1.2.3.4/33",
            "1.2.3.4/",
            " 1.2.3.4",
            "::/129",
            ":",
            "1.2/25",
        ] {
            assert_eq!(Network::host_of_text(text), None, "{text}");
        }
        for text in ["", "/8", "1.", "256", "1.2.3.4.5", "::g", "10/33", "::/064"] {
            assert_eq!(Network::network_of_text(text), None, "{text}");
        }
    }

    /// Goal: the smallest network that has two others.
    #[test]
    fn networks_are_merged() {
        let merged = |a, b| {
            let [a, b] = [a, b].map(|text| Network::host_of_text(text).expect("an address"));
            a.merged(b).map(|merged| merged.abbreviated())
        };
        assert_eq!(merged("192.168.1.5/24", "192.168.2.5/24").as_deref(), Some("192.168.0/22"));
        assert_eq!(merged("10.0.0.1", "10.0.0.1").as_deref(), Some("10.0.0.1/32"));
        assert_eq!(merged("0.0.0.0", "128.0.0.0").as_deref(), Some("0/0"));
        assert_eq!(merged("::1", "10.0.0.1"), None);
        assert_eq!(merged("10.0.0.1", "ffff::"), None);
    }

    /// Goal: zeros are left out at the end alone, and only where there are no others.
    #[test]
    fn networks_are_abbreviated() {
        for (text, shown) in [
            ("10.0.0.0/8", "10/8"),
            ("0.0.0.0/0", "0/0"),
            ("10.1.2.3/32", "10.1.2.3/32"),
            ("2001:4f8:3:ba::/64", "2001:4f8:3:ba/64"),
            ("ffff:0:ffff::/56", "ffff:0:ffff::/56"),
            ("2000::/8", "2000::/8"),
            ("::/8", "::/8"),
            ("::/0", "::/0"),
        ] {
            let network = Network::network_of_text(text).expect("a network");
            assert_eq!(network.abbreviated(), shown);
        }
    }
}
