//! What peers are measured at: scripts of pgbench, the same for all.

/// One measurement.
pub struct Script {
    /// The script's name on the command line.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// Statements that make its tables; `{rows}` is how many rows the large one has.
    pub setup: &'static str,
    /// What a client does over and over: one of these, `{rows}` as above.
    pub transactions: fn() -> Vec<Transaction>,
    /// How many times the peer's rate is wanted.
    pub wanted: f64,
    /// How many times the peer's rate is wanted where three servers hold a copy; zero if nothing is.
    pub wanted_replicated: f64,
}

/// One of a script's transactions.
pub struct Transaction {
    /// The transaction's name, if the script has several.
    pub name: &'static str,
    /// How often it is chosen, beside the others.
    pub weight: u32,
    /// A script of pgbench.
    pub text: String,
}

impl Transaction {
    /// A script's only one: a script of pgbench.
    pub fn only(text: &str) -> Vec<Transaction> {
        vec![Transaction { name: "", weight: 1, text: text.into() }]
    }
}

impl Script {
    /// How many times the peer's rate is wanted.
    pub fn wanted_of(&self, replicated: bool) -> f64 {
        if replicated { self.wanted_replicated } else { self.wanted }
    }
}
