use std::{collections::HashSet, sync::Arc, time::Duration};

use grid_batch_core::ItemId;
use grid_batch_support::Backoff;
use tokio::{
    select,
    sync::SemaphorePermit,
    time::{Instant, sleep_until},
};

use crate::{
    batches::{
        status_json::BatchStatusJson,
        status_query::{StatusContext, StatusQuery},
    },
    http::ApiError,
    state::{ApiState, EndWait},
};

/// Batches whose end was not reported are read again after these pauses, because another instance may have recorded it.
const PAUSES: Backoff =
    Backoff { first: Duration::from_millis(125), longest: Duration::from_secs(1) };
/// Wait limit when all waiter slots are taken. Without any wait, clients would ask again at once.
pub(crate) const WAIT_WITHOUT_SLOT: Duration = Duration::from_secs(1);

/// The wait that the parameter `wait` requests, as in Sawtooth's REST API: a number of seconds. Zero
/// and anything that is not a number stand for the limit.
pub(super) fn requested_wait(wait: Option<&str>, limit: Duration) -> Option<Duration> {
    let wait = wait.filter(|text| !text.eq_ignore_ascii_case("false"));
    wait.map(|text| match text.parse::<u32>() {
        Ok(0) | Err(_) => limit,
        Ok(seconds) => limit.min(Duration::from_secs(seconds.into())),
    })
}

/// Reads the statuses, and waits up to `wait` until none of them is pending.
pub(crate) async fn read_or_wait(
    context: &StatusContext,
    query: StatusQuery,
    wait: Option<Duration>,
) -> Result<Vec<BatchStatusJson>, ApiError> {
    let query = Arc::new(query);
    let Some(wait) = wait else { return read_all(context, &query).await };
    let mut wait = StatusWait::begin(&context.api, wait, query.ids.iter().copied());
    let mut statuses = read_all(context, &query).await?;
    if !any_pending(&statuses) {
        return Ok(statuses);
    }
    let pending = statuses.iter().filter(|status| status.is_pending());
    wait.goes_on_for(pending.map(|status| status.id));
    while wait.until_next_read().await {
        statuses = read_pending(context, &query, statuses).await?;
        if !any_pending(&statuses) {
            return Ok(statuses);
        }
    }
    read_all(context, &query).await
}

/// A request that waits for the end of batches. It is woken when the end of the last one was recorded.
pub(crate) struct StatusWait<'a> {
    api: &'a ApiState,
    ends: EndWait,
    deadline: Instant,
    /// How many pauses have begun.
    pauses: u32,
    _slot: Option<SemaphorePermit<'a>>,
}

impl<'a> StatusWait<'a> {
    /// Begins a wait for these batches, before they are read: an end that is recorded after that wakes it.
    pub(crate) fn begin(
        api: &'a ApiState,
        wait: Duration,
        batches: impl IntoIterator<Item = ItemId>,
    ) -> Self {
        let slot = api.status_waiters.try_acquire().ok();
        let wait = if slot.is_some() { wait } else { wait.min(WAIT_WITHOUT_SLOT) };
        let deadline = Instant::now() + wait;
        Self { api, ends: api.awaited.wait_for(batches), deadline, pauses: 0, _slot: slot }
    }

    /// The first read has found that only these of its batches have not ended.
    pub(crate) fn goes_on_for(&mut self, batches: impl Iterator<Item = ItemId>) {
        let open: HashSet<ItemId> = batches.collect();
        self.ends.retain(|batch| open.contains(batch));
    }

    /// Waits until the next read. Returns `false` if the wait is over: at the deadline, or at a shutdown.
    pub(crate) async fn until_next_read(&mut self) -> bool {
        let next = Instant::now() + PAUSES.whole_delay(self.pauses);
        self.pauses += 1;
        select! {
            () = self.api.shutdown.requested() => false,
            () = self.ends.all_ended() => true,
            () = sleep_until(next.min(self.deadline)) => next < self.deadline,
        }
    }
}

async fn read_all(
    context: &StatusContext,
    query: &Arc<StatusQuery>,
) -> Result<Vec<BatchStatusJson>, ApiError> {
    let (store, query) = (Arc::clone(&context.store), Arc::clone(query));
    let known_waits = context.known_waits.clone();
    context.api.reads.run(move || query.read_all(&*store, &known_waits)).await
}

/// Reads pending statuses again, up to the first that is still pending: the wait goes on because of
/// that one. Batches that have ended do not change any more.
async fn read_pending(
    context: &StatusContext,
    query: &Arc<StatusQuery>,
    mut statuses: Vec<BatchStatusJson>,
) -> Result<Vec<BatchStatusJson>, ApiError> {
    let (store, query) = (Arc::clone(&context.store), Arc::clone(query));
    let read = move || {
        for status in statuses.iter_mut().filter(|status| status.is_pending()) {
            *status = query.read_one(&*store, status.id)?;
            if status.is_pending() {
                break;
            }
        }
        Ok(statuses)
    };
    context.api.reads.run(read).await
}

fn any_pending(statuses: &[BatchStatusJson]) -> bool {
    statuses.iter().any(BatchStatusJson::is_pending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_is_parsed_as_in_sawtooth_and_limited() {
        let limit = Duration::from_secs(60);
        for (given, seconds) in [
            (None, None),
            (Some("false"), None),
            (Some("False"), None),
            (Some("5"), Some(5)),
            (Some("300"), Some(60)),
            (Some("0"), Some(60)),
            (Some(""), Some(60)),
            (Some("true"), Some(60)),
            (Some("-1"), Some(60)),
            (Some("99999999999999999999"), Some(60)),
        ] {
            let wait = requested_wait(given, limit);
            assert_eq!(wait, seconds.map(Duration::from_secs), "{given:?}");
        }
    }
}
