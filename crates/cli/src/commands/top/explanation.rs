use serde_json::Value;

use crate::commands::remote::explanation_lines;

/// The server's explanation why a service or a batch waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Explanation {
    Told(Value),
    Failed(String),
}

impl Explanation {
    pub(super) fn of_failure(error: String) -> Self {
        Self::Failed(error)
    }

    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        match self {
            Self::Told(json) => explanation_lines(json, width),
            Self::Failed(error) => vec![format!("The server gave no explanation: {error}")],
        }
    }
}
