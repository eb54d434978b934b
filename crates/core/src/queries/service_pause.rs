use std::fmt;

use crate::Timestamp;

/// A service that is paused: by an operator, or because its nodes have different states.
///
/// Its text is a sentence without a full stop: since when, by whom and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePause {
    /// Since when.
    pub since: Timestamp,
    /// Why, in the operator's words, or [`Self::DIFFERENT_STATES`], or both.
    pub reason: String,
    /// The operator who has paused it. An operator can resume it.
    pub operator: Option<String>,
    /// The operator has paused all services.
    pub of_all: bool,
    /// The nodes of the ledger have different states of the service. The pause lasts at least until they
    /// agree.
    pub states_differ: bool,
}

impl ServicePause {
    /// Why a service is paused whose nodes have different states.
    pub const DIFFERENT_STATES: &str =
        "the state roots of the nodes differ: no batch of this circuit can commit";
}

impl fmt::Display for ServicePause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { since, reason, operator, of_all, states_differ } = self;
        let what = if *of_all { "All services have" } else { "Its service has" };
        write!(f, "{what} been paused since {}", since.rfc3339())?;
        if let Some(operator) = operator.as_ref().filter(|_| !states_differ) {
            write!(f, " by {operator}")?;
        }
        if reason.is_empty() { Ok(()) } else { write!(f, ": {reason}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_tells_since_when_by_whom_and_why() {
        let pause = ServicePause {
            since: Timestamp::from_micros(5_000_000),
            reason: "maintenance".to_owned(),
            operator: Some("local/ann".to_owned()),
            of_all: false,
            states_differ: false,
        };
        let text = "been paused since 1970-01-01T00:00:05Z by local/ann: maintenance";
        assert_eq!(pause.to_string(), format!("Its service has {text}"));
        let of_all = ServicePause { of_all: true, ..pause.clone() };
        assert_eq!(of_all.to_string(), format!("All services have {text}"));
        let reason = ServicePause::DIFFERENT_STATES.to_owned();
        let differ = ServicePause { operator: None, states_differ: true, reason, ..pause };
        let text = differ.to_string();
        assert!(
            text.ends_with(
                "05Z: the state roots of the nodes differ: no batch of this circuit can commit"
            ),
            "{text}"
        );
    }
}
