use std::{sync::Arc, time::Duration};

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
    http::{ApiError, Query},
    state::ApiState,
};

/// How often pending batches are read again during a wait.
const READ_INTERVAL: Duration = Duration::from_millis(250);
/// Wait limit when all waiter slots are taken. Without any wait, clients would ask again at once.
pub(crate) const WAIT_WITHOUT_SLOT: Duration = Duration::from_secs(1);

/// The wait that the parameter `wait` requests, as in Sawtooth's REST API: a number of seconds. Zero
/// and anything that is not a number stand for the limit.
pub(crate) fn requested_wait(query: &Query, limit: Duration) -> Result<Option<Duration>, ApiError> {
    let wait = query.get("wait")?.filter(|text| !text.eq_ignore_ascii_case("false"));
    Ok(wait.map(|text| match text.parse::<u32>() {
        Ok(0) | Err(_) => limit,
        Ok(seconds) => limit.min(Duration::from_secs(seconds.into())),
    }))
}

/// Reads the statuses, and waits up to `wait` until none of them is pending.
pub(crate) async fn read_or_wait(
    context: &StatusContext,
    query: StatusQuery,
    wait: Option<Duration>,
) -> Result<Vec<BatchStatusJson>, ApiError> {
    let query = Arc::new(query);
    let mut statuses = read_all(context, &query).await?;
    let Some(wait) = wait.filter(|_| any_pending(&statuses)) else {
        return Ok(statuses);
    };
    let wait = StatusWait::begin(&context.api, wait);
    while wait.until_next_read().await {
        statuses = read_pending(context, &query, statuses).await?;
        if !any_pending(&statuses) {
            return Ok(statuses);
        }
    }
    read_all(context, &query).await
}

/// A request that waits for the end of batches.
pub(crate) struct StatusWait<'a> {
    api: &'a ApiState,
    deadline: Instant,
    _slot: Option<SemaphorePermit<'a>>,
}

impl<'a> StatusWait<'a> {
    pub(crate) fn begin(api: &'a ApiState, wait: Duration) -> Self {
        let slot = api.status_waiters.try_acquire().ok();
        let wait = if slot.is_some() { wait } else { wait.min(WAIT_WITHOUT_SLOT) };
        Self { api, deadline: Instant::now() + wait, _slot: slot }
    }

    /// Sleeps until the next read. Returns `false` if the wait is over: at the deadline, or at a shutdown.
    pub(crate) async fn until_next_read(&self) -> bool {
        let next = Instant::now() + READ_INTERVAL;
        select! {
            () = self.api.shutdown.requested() => false,
            () = sleep_until(next.min(self.deadline)) => next < self.deadline,
        }
    }
}

async fn read_all(
    context: &StatusContext,
    query: &Arc<StatusQuery>,
) -> Result<Vec<BatchStatusJson>, ApiError> {
    let (store, query) = (Arc::clone(&context.store), Arc::clone(query));
    context.api.reads.run(move || query.read_all(&*store)).await
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
        for (query, seconds) in [
            ("", None),
            ("wait=false", None),
            ("wait=False", None),
            ("wait=5", Some(5)),
            ("wait=300", Some(60)),
            ("wait=0", Some(60)),
            ("wait", Some(60)),
            ("wait=true", Some(60)),
            ("wait=-1", Some(60)),
            ("wait=99999999999999999999", Some(60)),
        ] {
            let wait = requested_wait(&Query::parse(Some(query)).unwrap(), limit);
            assert_eq!(wait, Ok(seconds.map(Duration::from_secs)), "{query}");
        }
    }
}
