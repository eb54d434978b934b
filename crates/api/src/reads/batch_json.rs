use grid_batch_core::batches::{BatchLabel, StoredBatch};

use crate::{
    batches::HoldJson,
    http::{BatchStateName, DltStatusName, Links, Time, json_types},
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
        state: BatchStateName = BatchStateName(batch.progress.state),
        submitted: bool = batch.progress.state.submitted(),
        dlt_status: Option<DltStatusName> = batch.progress.state.dlt_status().map(DltStatusName),
        attempts: u32 = batch.progress.attempts,
        stored_at: Time = Time(batch.created_at),
        since: Option<Time> = batch.since.map(Time),
        submitted_at: Option<Time> = batch.submitted_at.map(Time),
        checked_at: Option<Time> = batch.checked_at.map(Time),
        next_try_at: Option<Time> = batch.next_try_at.map(Time),
        ended_at: Option<Time> = batch.ended_at.map(Time),
        last_error: Option<String> = error,
        held: Option<HoldJson> = batch.held.as_ref().map(HoldJson::new),
        link: String = links.batch(&batch.batch_id, "", &batch.service_id),
    }
}
