//! What a paper says, and whether it is so here.

use serde_json::{Value as Json, json};

/// One claim of a paper beside what was measured.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What the paper says.
    pub text: String,
    /// What was measured here.
    pub measured: String,
    /// Whether that agrees; `None` if it could not be measured here.
    pub holds: Option<bool>,
    /// If it does not: what may be the reason.
    pub reason: Option<String>,
}

impl Claim {
    /// A claim that holds or not; `otherwise` is the reason if it does not.
    pub fn new(text: &str, holds: bool, measured: String, otherwise: &str) -> Claim {
        let reason = (!holds).then(|| otherwise.to_string());
        Claim { text: text.to_string(), measured, holds: Some(holds), reason }
    }

    /// A claim that could not be measured, and why.
    pub fn not_measured(text: &str, why: &str) -> Claim {
        Claim {
            text: text.to_string(),
            measured: "not measured".to_string(),
            holds: None,
            reason: Some(why.to_string()),
        }
    }

    /// As in `DIR/ID.json`; `holds` is null where nothing was measured.
    pub fn json(&self) -> Json {
        let mut object = json!({ "text": self.text, "measured": self.measured, "holds": self.holds });
        if let Some(reason) = &self.reason {
            object["reason"] = reason.as_str().into();
        }
        object
    }

    /// For people.
    pub fn text(&self) -> String {
        let word = match self.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "not measured",
        };
        let reason = self.reason.as_ref().map_or(String::new(), |reason| format!("\n    why: {reason}"));
        let measured = match self.holds {
            Some(_) => format!("\n    measured: {}", self.measured),
            None => String::new(),
        };
        format!("  {word}: {}{measured}{reason}\n", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a claim that does not hold says so, with its reason; one that holds has none; one that was
    /// not measured neither holds nor fails.
    #[test]
    fn a_claim_that_fails_has_a_reason() {
        let claim = Claim::new("flat", false, "rises".into(), "two cores");
        assert_eq!(
            claim.json().to_string(),
            r#"{"text":"flat","measured":"rises","holds":false,"reason":"two cores"}"#
        );
        let unknown = Claim::not_measured("flat", "no such engine").json();
        assert!(unknown["holds"].is_null() && unknown["reason"] == "no such engine");
        assert!(Claim::new("flat", true, "flat".into(), "two cores").json().get("reason").is_none());
    }
}
