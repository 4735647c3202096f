//! What a paper says, and whether it is so here.
//!
//! ```text
//!            does not hold |      holds      | differs
//! -------------------------[-----------------]--------------->  measured
//!                          from     band     to
//! ```
//!
//! A claim has two sides: what falls short of the paper's figure contradicts it, and what goes far beyond it is not the
//! same effect either.

use serde_json::{Value as Json, json};

/// How far a number may lie from the paper's, either way, as a factor.
const SLACK: f64 = 1.25;

/// Where a number has to be for a claim to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// The lowest.
    pub from: f64,
    /// The highest.
    pub to: f64,
    /// What is above it contradicts the claim, too.
    is_exact: bool,
}

impl Band {
    /// About the number that the paper reports.
    pub fn about(number: f64) -> Band {
        Band { from: number / SLACK, to: number * SLACK, is_exact: false }
    }

    /// From what the paper's words demand to what they can still mean.
    pub fn between(from: f64, to: f64) -> Band {
        Band { from, to, is_exact: false }
    }

    /// Where what is above contradicts the paper as much as what is below: flat lines, ties.
    pub fn within(from: f64, to: f64) -> Band {
        Band { from, to, is_exact: true }
    }

    /// Equal, to a factor.
    pub fn equal(factor: f64) -> Band {
        Band::within(1.0 / factor, factor)
    }

    /// Nowhere more than a factor apart: for the highest as a multiple of the lowest.
    pub fn flat(factor: f64) -> Band {
        Band::within(1.0, factor)
    }

    fn verdict(self, value: f64) -> Verdict {
        match value {
            _ if value >= self.from && value <= self.to => Verdict::Holds,
            _ if value > self.to && !self.is_exact => Verdict::Differs,
            _ => Verdict::Fails,
        }
    }
}

/// What becomes of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It is as the paper says.
    Holds,
    /// There is more of it than the paper says.
    Differs,
    /// It is not as the paper says.
    Fails,
    /// It could not be measured here.
    NotMeasured,
}

impl Verdict {
    /// For people, and in `DIR/ID.json`.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Differs => "differs",
            Verdict::Fails => "does not hold",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// A number that a claim is judged by.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it is: `OCC-LSD as a multiple of OCC`.
    pub what: String,
    /// The number.
    pub value: f64,
    /// Where it has to be.
    pub band: Band,
}

impl Finding {
    /// A number, and where it has to be.
    pub fn new(what: impl Into<String>, value: f64, band: Band) -> Finding {
        Finding { what: what.into(), value, band }
    }

    fn text(&self) -> String {
        let [value, from, to] = [self.value, self.band.from, self.band.to].map(short);
        let mark = match self.band.verdict(self.value) {
            Verdict::Holds => "",
            Verdict::Differs => ", above it",
            _ => ", outside",
        };
        format!("{}: {value} (holds from {from} to {to}{mark})", self.what)
    }
}

/// A number of three digits or so.
fn short(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 || size == size.round() && size >= 10.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// Why a claim does not hold, or differs.
#[derive(Clone, Copy, Debug)]
pub struct Reasons<'r> {
    /// Why there is less of it.
    pub fails: &'r str,
    /// Why there is more of it.
    pub differs: &'r str,
}

/// One claim of a paper beside what was measured.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What the paper says.
    pub text: String,
    /// What was measured here.
    pub findings: Vec<Finding>,
    /// Whether that agrees.
    pub verdict: Verdict,
    /// If it does not hold: what may be the reason.
    pub reason: Option<String>,
}

impl Claim {
    /// A claim that is judged by these numbers: it is what the worst of them says.
    pub fn new(text: &str, findings: Vec<Finding>, reasons: Reasons<'_>) -> Claim {
        let verdicts = findings.iter().map(|finding| finding.band.verdict(finding.value));
        let verdict = verdicts.max().unwrap_or(Verdict::NotMeasured);
        let reason = match verdict {
            Verdict::Holds => None,
            Verdict::Differs => Some(reasons.differs.to_string()),
            Verdict::Fails => Some(reasons.fails.to_string()),
            Verdict::NotMeasured => Some("there are no points to judge by".to_string()),
        };
        Claim { text: text.to_string(), findings, verdict, reason }
    }

    /// A claim that could not be measured, and why.
    pub fn not_measured(text: &str, why: &str) -> Claim {
        let verdict = Verdict::NotMeasured;
        Claim { text: text.to_string(), findings: Vec::new(), verdict, reason: Some(why.to_string()) }
    }

    /// As in `DIR/ID.json`.
    pub fn json(&self) -> Json {
        let finding = |finding: &Finding| {
            let (value, band) = (finding.value, finding.band);
            json!({ "what": finding.what, "value": value, "from": band.from, "to": band.to })
        };
        let findings: Vec<Json> = self.findings.iter().map(finding).collect();
        let mut object = json!({ "text": self.text, "verdict": self.verdict.word(), "measured": findings });
        if let Some(reason) = &self.reason {
            object["reason"] = reason.as_str().into();
        }
        object
    }

    /// For people.
    pub fn text(&self) -> String {
        let measured = self.findings.iter().map(|finding| format!("\n    measured: {}", finding.text()));
        let measured: String = measured.collect();
        let reason = self.reason.as_ref().map_or(String::new(), |reason| format!("\n    why: {reason}"));
        format!("  {}: {}{measured}{reason}\n", self.verdict.word(), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASONS: Reasons<'static> = Reasons { fails: "two cores", differs: "many cores" };

    fn claim(numbers: &[(f64, Band)]) -> Claim {
        let finding = |(value, band): &(f64, Band)| Finding::new("ratio", *value, *band);
        Claim::new("five times", numbers.iter().map(finding).collect(), REASONS)
    }

    /// Goal: a claim has two sides: too little fails, far more differs, and each has its reason.
    #[test]
    fn a_claim_has_two_sides() {
        let about = Band::about(5.0);
        let judged = |value| {
            let claim = claim(&[(value, about)]);
            (claim.verdict, claim.reason)
        };
        assert_eq!(judged(5.5), (Verdict::Holds, None));
        assert_eq!(judged(3.9), (Verdict::Fails, Some("two cores".into())));
        assert_eq!(judged(6.3), (Verdict::Differs, Some("many cores".into())));
        assert_eq!(claim(&[(1.3, Band::flat(1.2))]).verdict, Verdict::Fails, "a line that is not flat");
        assert_eq!(claim(&[(f64::NAN, about)]).verdict, Verdict::Fails, "what is no number holds nowhere");
    }

    /// Goal: a claim of several numbers is as good as the worst; one of none was not measured.
    #[test]
    fn the_worst_number_decides() {
        let about = Band::about(5.0);
        assert_eq!(claim(&[(5.0, about), (9.0, about)]).verdict, Verdict::Differs);
        assert_eq!(claim(&[(9.0, about), (1.0, about)]).verdict, Verdict::Fails);
        assert_eq!(claim(&[]).verdict, Verdict::NotMeasured);
    }

    /// Goal: the slack is printed with every number.
    #[test]
    fn bands_are_shown() {
        let claim = claim(&[(12.0, Band::about(5.0))]);
        assert_eq!(
            claim.text(),
            "  differs: five times\n    measured: ratio: 12 (holds from 4.00 to 6.25, above it)\n    why: many cores\n"
        );
        assert_eq!(claim.json()["measured"][0]["to"], 6.25);
        assert_eq!(Claim::not_measured("flat", "no such engine").json()["verdict"], "not measured");
    }
}
