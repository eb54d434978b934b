use axum::http::StatusCode;
use grid_batch_core::ActionRefusal;

use crate::http::{Refusal, Refused, refusals};

refusals! {
    /// An action has no target.
    pub(crate) enum TargetError {
        #[error("there is no such {kind}")]
        [NOT_FOUND, 1071, "Unknown Target"]
        UnknownTarget { kind: &'static str },
    }
}

impl Refused for ActionRefusal {
    fn refusal(&self) -> Refusal {
        match self {
            Self::Locked => Refusal::STORE_UNAVAILABLE,
            _ => Refusal::new(StatusCode::CONFLICT, 1070, "Action Refused"),
        }
    }
}
