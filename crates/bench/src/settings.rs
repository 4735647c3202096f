//! Settings of a workload: `--set key=value`, checked against what the workload lists.

use fabius_value::{Error, Result, SqlState};
use std::collections::BTreeMap;

/// What values a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum Domain {
    /// A whole number in a range, both ends included.
    Integer(u64, u64),
    /// A whole number in a range, both ends included, or `auto`: chosen to fit the rest of the run.
    IntegerOrAuto(u64, u64),
    /// A number in a range, both ends included.
    Number(f64, f64),
    /// A number in a range, both ends included, or one word that stands for a rule of the workload's own.
    NumberOr(&'static str, f64, f64),
    /// One of a few words.
    Choice(&'static [&'static str]),
}

/// A setting: its name, default and meaning.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// As in `--set name=value`.
    pub name: &'static str,
    /// Used unless set.
    pub default: &'static str,
    /// What values it takes.
    pub domain: Domain,
    /// One line for `fabius bench list`.
    pub help: &'static str,
}

/// Settings that every workload has.
pub const COMMON: &[Setting] = &[
    Setting {
        name: "seed",
        default: "1",
        domain: Domain::Integer(0, u64::MAX),
        help: "what all random choices follow from",
    },
    Setting {
        name: "batch",
        default: "256",
        domain: Domain::Integer(1, 65_536),
        help: "calls handed in together; 1 measures the latency of single calls",
    },
    Setting {
        name: "in_flight",
        default: "auto",
        domain: Domain::IntegerOrAuto(1, 65_536),
        help: "batches that a client thread has handed in and not heard of",
    },
    Setting {
        name: "engine_partitions",
        default: "auto",
        domain: Domain::IntegerOrAuto(1, 64),
        help: "partitioned, dora: parts that rows are divided into",
    },
    Setting {
        name: "waiting",
        default: "lends",
        domain: Domain::Choice(&["lends", "blocks"]),
        help: "partitioned: while a call that crosses waits for more partitions, a thread works elsewhere, or sleeps",
    },
    Setting {
        name: "chain_bound",
        default: "100",
        domain: Domain::Integer(1, u32::MAX as u64),
        help: "lazy: stickies on one record before the newest is substantiated",
    },
    Setting {
        name: "idle",
        default: "on",
        domain: Domain::Choice(&["on", "off"]),
        help: "lazy: work off the backlog when there is nothing else to do",
    },
    Setting {
        name: "backlog",
        default: "1000000",
        domain: Domain::Integer(1, 1 << 40),
        help: "lazy: deferred calls before callers are slowed down",
    },
    Setting {
        name: "memory_mb",
        default: "8192",
        domain: Domain::Integer(1, 1 << 24),
        help: "lazy: megabytes of rows and deferred work before callers are slowed down",
    },
    Setting {
        name: "lock_manager",
        default: "queues",
        domain: Domain::Choice(&["queues", "counters"]),
        help: "locking: hand locks on, or count requests and let the oldest call run",
    },
    Setting {
        name: "delay_us",
        default: "0",
        domain: Domain::Integer(0, 60_000_000),
        help: "locking: microseconds between a call's reconnaissance and its place in the order",
    },
    Setting {
        name: "phase_ms",
        default: "10",
        domain: Domain::Integer(1, 10_000),
        help: "split: milliseconds after which a split phase ends",
    },
    Setting {
        name: "batch_latency_us",
        default: "10000",
        domain: Domain::Integer(1, 60_000_000),
        help: "graph: microseconds that a batch of calls may take before batches become smaller",
    },
    Setting {
        name: "engine_batch",
        default: "4096",
        domain: Domain::Integer(1, 65_536),
        help: "graph: calls that the engine takes as one batch, at most",
    },
];

impl Domain {
    /// Whether it takes this value.
    pub fn holds(self, value: &str) -> bool {
        let in_range = |low: f64, high: f64| value.parse().is_ok_and(|v: f64| v >= low && v <= high);
        match self {
            Domain::Integer(low, high) => value.parse().is_ok_and(|v: u64| v >= low && v <= high),
            Domain::IntegerOrAuto(low, high) => value == "auto" || Domain::Integer(low, high).holds(value),
            Domain::Number(low, high) => in_range(low, high),
            Domain::NumberOr(word, low, high) => value == word || in_range(low, high),
            Domain::Choice(words) => words.contains(&value),
        }
    }

    /// What is allowed, in words.
    pub fn allowed(self) -> String {
        let whole = |low: u64, high: u64| match high {
            u64::MAX => format!("a whole number from {low} on"),
            _ => format!("a whole number from {low} to {high}"),
        };
        match self {
            Domain::Integer(low, high) => whole(low, high),
            Domain::IntegerOrAuto(low, high) => format!("auto, or {}", whole(low, high)),
            Domain::Number(low, high) => format!("a number from {low} to {high}"),
            Domain::NumberOr(word, low, high) => format!("{word}, or a number from {low} to {high}"),
            Domain::Choice(words) => words.join(" or "),
        }
    }
}

/// The values of one run's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    workload: &'static str,
    known: Vec<Setting>,
    values: BTreeMap<&'static str, String>,
}

impl Settings {
    /// A workload's settings with their defaults; its own come first, and may replace common ones.
    pub fn new(workload: &'static str, own: &[Setting]) -> Settings {
        let mut known = own.to_vec();
        known.extend(COMMON.iter().filter(|common| own.iter().all(|setting| setting.name != common.name)));
        let values = known.iter().map(|setting| (setting.name, setting.default.to_string())).collect();
        Settings { workload, known, values }
    }

    /// Sets one from `key=value`.
    ///
    /// # Errors
    /// `22023` for an unknown key or a value outside its domain; the hint names what is allowed.
    pub fn set(&mut self, assignment: &str) -> Result<()> {
        let wrong = |message: String| Error::new(SqlState::INVALID_PARAMETER, message);
        let Some((name, value)) = assignment.split_once('=') else {
            return Err(wrong(format!("{assignment:?} is not a setting")).with_hint("write --set key=value"));
        };
        let Some(setting) = self.known.iter().find(|setting| setting.name == name.trim()) else {
            let names: Vec<&str> = self.known.iter().map(|setting| setting.name).collect();
            return Err(wrong(format!("workload {} has no setting {:?}", self.workload, name.trim()))
                .with_hint(format!("its settings are {}", names.join(", "))));
        };
        if !setting.domain.holds(value.trim()) {
            return Err(wrong(format!("{}={} is not allowed", setting.name, value.trim()))
                .with_hint(format!("{} is {}", setting.name, setting.domain.allowed())));
        }
        self.values.insert(setting.name, value.trim().to_string());
        Ok(())
    }

    /// # Errors
    /// `22023` if one of these settings, which do nothing here for the reason given, is not at its default.
    pub fn refuse_changed(&self, names: &[&str], why: &str) -> Result<()> {
        let is_changed =
            |setting: &&Setting| names.contains(&setting.name) && self.text(setting.name) != setting.default;
        let Some(setting) = self.known.iter().find(is_changed) else { return Ok(()) };
        let message = format!("{} does nothing in workload {}", setting.name, self.workload);
        Err(Error::new(SqlState::INVALID_PARAMETER, message).with_detail(why).with_hint("leave it out"))
    }

    /// These settings with some more set: for figures, whose assignments are known to be right.
    ///
    /// # Panics
    /// If an assignment is not allowed.
    #[must_use]
    pub fn with(&self, assignments: &[(&str, &dyn std::fmt::Display)]) -> Settings {
        let mut settings = self.clone();
        for (name, value) in assignments {
            settings.set(&format!("{name}={value}")).expect("an assignment of our own");
        }
        settings
    }

    /// A setting's value as text.
    ///
    /// # Panics
    /// If the workload has no such setting.
    pub fn text(&self, name: &str) -> &str {
        self.values.get(name).unwrap_or_else(|| panic!("workload {} lists no {name}", self.workload))
    }

    /// A whole number.
    ///
    /// # Panics
    /// If the setting is of another kind.
    pub fn integer(&self, name: &str) -> u64 {
        self.auto(name).unwrap_or_else(|| panic!("{name} is no whole number"))
    }

    /// A whole number, `None` for a word in its place.
    pub fn auto(&self, name: &str) -> Option<u64> {
        self.text(name).parse().ok()
    }

    /// A number, `None` for a word in its place.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.text(name).parse().ok()
    }

    /// Names and values, in the order of `fabius bench list`.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.known.iter().map(|setting| (setting.name, self.text(setting.name)))
    }

    /// The settings there are.
    pub fn known(&self) -> &[Setting] {
        &self.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &[Setting] = &[
        Setting { name: "share", default: "0.5", domain: Domain::Number(0.0, 1.0), help: "" },
        Setting { name: "batch", default: "64", domain: Domain::Integer(1, 100), help: "" },
    ];

    /// Goal: what is wrong with an assignment is said, with what would be right.
    #[test]
    fn errors_name_what_is_allowed() {
        let mut settings = Settings::new("demo", OWN);
        let told = |settings: &mut Settings, text| settings.set(text).unwrap_err().to_string();
        assert_eq!(
            told(&mut settings, "share=2"),
            "share=2 is not allowed; hint: share is a number from 0 to 1"
        );
        assert_eq!(told(&mut settings, "share"), "\"share\" is not a setting; hint: write --set key=value");
        assert_eq!(
            told(&mut settings, "shore=1"),
            "workload demo has no setting \"shore\"; hint: its settings are share, batch, seed, in_flight, \
             engine_partitions, waiting, chain_bound, idle, backlog, memory_mb, lock_manager, delay_us, phase_ms, \
             batch_latency_us, engine_batch"
        );
        assert_eq!(told(&mut settings, "idle=maybe"), "idle=maybe is not allowed; hint: idle is on or off");
    }

    /// Goal: a workload's own default wins over the common one; a setting wins over both.
    #[test]
    fn own_defaults_replace_common_ones() {
        let mut settings = Settings::new("demo", OWN);
        assert_eq!(settings.integer("batch"), 64);
        settings.set("batch = 7").unwrap();
        assert_eq!((settings.integer("batch"), settings.auto("in_flight")), (7, None));
    }
}
