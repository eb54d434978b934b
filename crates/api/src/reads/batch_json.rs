use grid_batch_core::Timestamp;
use grid_batch_core::batches::{BatchLabel, DltStatus, StoredBatch};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{batches::HoldJson, http::Links};

/// A batch, as lists and details show it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BatchJson {
    id: String,
    service_id: String,
    label: Option<String>,
    state: &'static str,
    submitted: bool,
    dlt_status: Option<&'static str>,
    attempts: u32,
    stored_at: String,
    since: Option<String>,
    submitted_at: Option<String>,
    checked_at: Option<String>,
    next_try_at: Option<String>,
    ended_at: Option<String>,
    last_error: Option<String>,
    held: Option<HoldJson>,
    link: String,
}

impl BatchJson {
    pub(super) fn new(
        batch: StoredBatch,
        label: Option<&BatchLabel>,
        error: Option<String>,
        links: &Links<'_>,
    ) -> Self {
        let state = batch.progress.state;
        Self {
            id: batch.batch_id.to_string(),
            link: links.batch(&batch.batch_id, "", &batch.service_id),
            service_id: batch.service_id.to_string(),
            label: label.map(ToString::to_string),
            state: state.as_str(),
            submitted: state.submitted(),
            dlt_status: state.dlt_status().map(DltStatus::as_str),
            attempts: batch.progress.attempts,
            stored_at: batch.created_at.rfc3339_micros(),
            since: batch.since.map(Timestamp::rfc3339_micros),
            submitted_at: batch.submitted_at.map(Timestamp::rfc3339_micros),
            checked_at: batch.checked_at.map(Timestamp::rfc3339_micros),
            next_try_at: batch.next_try_at.map(Timestamp::rfc3339_micros),
            ended_at: batch.ended_at.map(Timestamp::rfc3339_micros),
            last_error: error,
            held: batch.held.as_ref().map(HoldJson::new),
        }
    }
}
