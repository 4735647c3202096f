//! What a paper says, and whether it is so here.

use serde_json::{Value as Json, json};

/// One claim of a paper beside what was measured.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What the paper says.
    pub text: String,
    /// What was measured here.
    pub measured: String,
    /// Whether that agrees.
    pub holds: bool,
    /// If it does not: what may be the reason.
    pub reason: Option<String>,
}

impl Claim {
    /// A claim that holds or not; `otherwise` is the reason if it does not.
    pub fn new(text: &str, holds: bool, measured: String, otherwise: &str) -> Claim {
        let reason = (!holds).then(|| otherwise.to_string());
        Claim { text: text.to_string(), measured, holds, reason }
    }

    /// As in `DIR/ID.json`.
    pub fn json(&self) -> Json {
        let mut object = json!({ "text": self.text, "measured": self.measured, "holds": self.holds });
        if let Some(reason) = &self.reason {
            object["reason"] = reason.as_str().into();
        }
        object
    }

    /// For people.
    pub fn text(&self) -> String {
        let word = if self.holds { "holds" } else { "does not hold" };
        let reason = self.reason.as_ref().map_or(String::new(), |reason| format!("\n    why: {reason}"));
        format!("  {word}: {}\n    measured: {}{reason}\n", self.text, self.measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a claim that does not hold says so, with its reason; one that holds has none.
    #[test]
    fn a_claim_that_fails_has_a_reason() {
        let claim = Claim::new("flat", false, "rises".into(), "two cores");
        assert_eq!(
            claim.json().to_string(),
            r#"{"text":"flat","measured":"rises","holds":false,"reason":"two cores"}"#
        );
        assert!(Claim::new("flat", true, "flat".into(), "two cores").json().get("reason").is_none());
    }
}
