use grid_batch_core::{BatchEvent, BatchState};
use serde::Serialize;

use crate::http::rfc3339;

/// One event.
#[derive(Debug, Serialize)]
pub(super) struct EventJson {
    id: String,
    at: String,
    service_id: String,
    batch_id: String,
    kind: &'static str,
    state: &'static str,
    attempt: u32,
    detail: Option<String>,
    instance: Option<String>,
}

impl From<BatchEvent> for EventJson {
    fn from(event: BatchEvent) -> Self {
        Self {
            id: event.id.to_string(),
            at: rfc3339(event.at),
            service_id: event.service_id.to_string(),
            batch_id: event.batch_id.to_string(),
            kind: event.kind.as_str(),
            state: state_name(event.state),
            attempt: event.attempt,
            detail: event.detail,
            instance: event.instance,
        }
    }
}

fn state_name(state: BatchState) -> &'static str {
    match state {
        BatchState::New => "new",
        BatchState::Submitting => "submitting",
        BatchState::Delayed => "delayed",
        BatchState::InDoubt => "in_doubt",
        BatchState::Absent => "absent",
        BatchState::Pending => "pending",
        BatchState::Valid => "valid",
        BatchState::Invalid => "invalid",
        BatchState::Committed => "committed",
    }
}
