//! The standard's random texts, names and numbers.

use fabius_env::Random;

/// Most last names there are (clause 4.3.2.3).
pub const LAST_NAMES: u64 = 1000;

/// The run-time constants C of NURand (clause 2.1.6.1). `LAST_RUN` and `LAST_LOAD` are 66 apart, which
/// the clause allows.
pub const LAST_LOAD: u64 = 157;
/// For last names in transactions.
pub const LAST_RUN: u64 = 223;
/// For customer numbers.
pub const CUSTOMER: u64 = 259;
/// For item numbers.
pub const ITEM: u64 = 7911;

/// A whole number between two, both included.
pub fn between(random: &mut Random, low: u64, high: u64) -> u64 {
    low + random.below(high - low + 1)
}

/// NURand(A, x, y) with constant C (clause 2.1.6).
pub fn nurand(random: &mut Random, a: u64, c: u64, x: u64, y: u64) -> u64 {
    (((between(random, 0, a) | between(random, x, y)) + c) % (y - x + 1)) + x
}

/// A customer number.
pub fn customer(random: &mut Random, customers: u64) -> u64 {
    nurand(random, 1023, CUSTOMER, 1, customers)
}

/// An item number.
pub fn item(random: &mut Random, items: u64) -> u64 {
    nurand(random, 8191, ITEM, 1, items)
}

/// The number of a last name that some customer of a district of this size has.
pub fn last_name_number(random: &mut Random, c: u64, customers: u64) -> u64 {
    nurand(random, 255, c, 0, customers.min(LAST_NAMES) - 1)
}

/// A last name by its number (clause 4.3.2.3).
pub fn last_name(number: u64) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    [number / 100 % 10, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]).concat()
}

/// Text of random letters and digits, of a length between two (clause 4.3.2.2).
pub fn text(random: &mut Random, low: u64, high: u64) -> String {
    const SIGNS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789xy";
    let length = between(random, low, high) as usize;
    let mut text = String::with_capacity(length + 10);
    while text.len() < length {
        let mut bits = random.next_u64();
        for _ in 0..10 {
            text.push(SIGNS[(bits & 63) as usize] as char);
            bits >>= 6;
        }
    }
    text.truncate(length);
    text
}

/// Text of random digits.
pub fn digits(random: &mut Random, length: u64) -> String {
    (0..length).map(|_| (b'0' + random.below(10) as u8) as char).collect()
}

/// A zip code (clause 4.3.2.7).
pub fn zip(random: &mut Random) -> String {
    digits(random, 4) + "11111"
}

/// Text of 26 to 50 signs, of which one in ten contains `ORIGINAL` (clause 4.3.3.1).
pub fn data(random: &mut Random) -> String {
    let mut data = text(random, 26, 50);
    if random.chance(1, 10) {
        let at = random.index(data.len() - 7);
        data.replace_range(at..at + 8, "ORIGINAL");
    }
    data
}

/// The numbers from 1 on in a random order.
pub fn permutation(random: &mut Random, count: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (1..=count).collect();
    for at in (1..numbers.len()).rev() {
        numbers.swap(at, random.index(at + 1));
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: names and constants are those of the standard.
    #[test]
    fn last_names_are_made_of_syllables() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(999), "EINGEINGEING");
        let delta = LAST_RUN.abs_diff(LAST_LOAD);
        assert!((65..=119).contains(&delta) && delta != 96 && delta != 112);
    }

    /// Goal: NURand is in range, and not uniform.
    #[test]
    fn nurand_is_skewed_within_its_range() {
        let mut random = Random::seeded(5);
        let mut counts = vec![0u32; 3001];
        for _ in 0..300_000 {
            counts[customer(&mut random, 3000) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        counts.sort_unstable();
        assert!(counts[3000] > 300 && counts[300] < 60, "{} {}", counts[3000], counts[300]);
    }

    /// Goal: texts have the lengths asked for, and one in ten says ORIGINAL.
    #[test]
    fn texts_have_their_lengths() {
        let mut random = Random::seeded(7);
        let list: Vec<String> = (0..5000).map(|_| data(&mut random)).collect();
        assert!(list.iter().all(|data| (26..=50).contains(&data.len())));
        let original = list.iter().filter(|data| data.contains("ORIGINAL")).count();
        assert!((400..600).contains(&original), "{original}");
        assert_eq!(zip(&mut random).len(), 9);
    }
}
