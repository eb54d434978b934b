use grid_batch_core::Timestamp;
use grid_batch_core::batches::{BatchLabel, DltStatus, StoredBatch};

use crate::{
    batches::HoldJson,
    http::{Links, json_types},
};

json_types! {
    /// A batch, as lists and details show it.
    pub(super) struct BatchJson(
        batch: &StoredBatch,
        label: Option<&BatchLabel>,
        error: Option<String>,
        links: &Links<'_>,
    ) {
        id: String = batch.batch_id.to_string(),
        service_id: String = batch.service_id.to_string(),
        label: Option<String> = label.map(ToString::to_string),
        state: &'static str = batch.progress.state.as_str(),
        submitted: bool = batch.progress.state.submitted(),
        dlt_status: Option<&'static str> = batch.progress.state.dlt_status().map(DltStatus::as_str),
        attempts: u32 = batch.progress.attempts,
        stored_at: String = batch.created_at.rfc3339_micros(),
        since: Option<String> = batch.since.map(Timestamp::rfc3339_micros),
        submitted_at: Option<String> = batch.submitted_at.map(Timestamp::rfc3339_micros),
        checked_at: Option<String> = batch.checked_at.map(Timestamp::rfc3339_micros),
        next_try_at: Option<String> = batch.next_try_at.map(Timestamp::rfc3339_micros),
        ended_at: Option<String> = batch.ended_at.map(Timestamp::rfc3339_micros),
        last_error: Option<String> = error,
        held: Option<HoldJson> = batch.held.as_ref().map(HoldJson::new),
        link: String = links.batch(&batch.batch_id, "", &batch.service_id),
    }
}
