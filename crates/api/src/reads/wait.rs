use std::time::Duration;

use grid_batch_core::batches::StoredBatch;

use super::ReadContext;
use crate::{
    batches::{NamedBatch, StatusWait},
    http::ApiError,
};

/// Finds a batch, and waits up to `wait` until it has ended.
pub(super) async fn find_or_wait(
    context: &ReadContext,
    named: &NamedBatch,
    wait: Option<Duration>,
) -> Result<StoredBatch, ApiError> {
    let has_ended = |batch: &StoredBatch| batch.progress.state.is_terminal();
    let mut batch = context.find(named).await?;
    let Some(wait) = wait.filter(|_| !has_ended(&batch)) else { return Ok(batch) };
    let found = NamedBatch {
        id: batch.batch_id.into(),
        service_id: Some(batch.service_id.clone()),
        ..named.clone()
    };
    let mut wait = StatusWait::begin(&context.api, wait, [batch.batch_id]);
    batch = context.find(&found).await?;
    if !has_ended(&batch) {
        wait.goes_on_for([batch.batch_id].into_iter());
    }
    while !has_ended(&batch) && wait.until_next_read().await {
        batch = context.find(&found).await?;
    }
    Ok(batch)
}
