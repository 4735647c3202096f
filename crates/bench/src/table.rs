//! Aligned text tables, and numbers for people.

use std::fmt;

/// Rows under a head; the first column is left-aligned, the others right-aligned.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this head.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Table {
        let mut table = Table::default();
        table.row(head);
        table
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |at: usize| {
            self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let width = widths[at];
                match at {
                    0 => line += &format!("{cell:<width$}"),
                    _ => line += &format!("  {cell:>width$}"),
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A whole number with its digits in groups: `1,234,567`.
pub fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number <= -0.5 { format!("-{text}") } else { text }
}

/// A time in a unit that suits it: `850 ns`, `12.3 µs`, `4.56 ms`, `1.2 s`.
pub fn time(ns: u64) -> String {
    match ns as f64 {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

/// Bytes in a unit that suits them.
pub fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 1e3 => format!("{bytes:.0} B"),
        bytes if bytes < 1e6 => format!("{:.1} kB", bytes / 1e3),
        bytes if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.2} GB", bytes / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: columns line up, and numbers read well.
    #[test]
    fn tables_are_aligned() {
        let mut table = Table::new(["engine", "calls/s", "p50"]);
        table.row(["lazy".to_string(), grouped(1_234_567.0), time(12_340)]);
        table.row(["2pl".to_string(), grouped(999.6), time(850)]);
        assert_eq!(
            table.to_string(),
            "engine    calls/s      p50\nlazy    1,234,567  12.3 µs\n2pl         1,000   850 ns\n"
        );
        assert_eq!((grouped(-1234.0), bytes(2_500_000)), ("-1,234".into(), "2.5 MB".into()));
    }
}
