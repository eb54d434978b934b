use serde::Serialize;

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) outcome: CheckOutcome,
    pub(super) text: String,
    /// What to do.
    pub(super) advice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckOutcome {
    #[serde(rename = "ok")]
    Good,
    /// A server works, but with a defect.
    Warning,
    /// A server does not work.
    Problem,
}

impl CheckOutcome {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl Finding {
    pub(super) fn good(check: &'static str, text: impl Into<String>) -> Self {
        Self { check, outcome: CheckOutcome::Good, text: text.into(), advice: None }
    }

    pub(super) fn warning(
        check: &'static str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let advice = Some(advice.into());
        Self { check, outcome: CheckOutcome::Warning, text: text.into(), advice }
    }

    pub(super) fn problem(
        check: &'static str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { outcome: CheckOutcome::Problem, ..Self::warning(check, text, advice) }
    }
}
