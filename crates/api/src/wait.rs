use std::{sync::Arc, time::Duration};

use tokio::{
    select,
    time::{Instant, sleep_until},
};

use crate::{
    app::App,
    batch_status::{BatchStatus, ClientStatus},
    error::ApiError,
    query::Query,
    statuses::Asked,
};

/// How often a batch is looked at while somebody waits for it.
const INTERVAL: Duration = Duration::from_millis(250);
/// How long those wait for whom there is no place. Not at all would have them ask without a pause.
const WITHOUT_PLACE: Duration = Duration::from_secs(1);

/// How long a client wants to wait, as Sawtooth reads it: seconds; 0 and whatever is no number stand
/// for the longest.
pub(crate) fn asked_for(query: &Query, longest: Duration) -> Result<Option<Duration>, ApiError> {
    let wait = query.get("wait")?.filter(|text| !text.eq_ignore_ascii_case("false"));
    Ok(wait.map(|text| match text.parse::<u32>() {
        Ok(0) | Err(_) => longest,
        Ok(seconds) => longest.min(Duration::from_secs(seconds.into())),
    }))
}

/// Reads statuses, and waits so long while one of them is pending.
pub(crate) async fn follow(
    app: &App,
    asked: Asked,
    wait: Option<Duration>,
) -> Result<Vec<BatchStatus>, ApiError> {
    let asked = Arc::new(asked);
    let mut statuses = read_all(app, &asked).await?;
    let Some(wait) = wait.filter(|_| statuses.iter().any(is_pending)) else {
        return Ok(statuses);
    };
    let place = app.waiters.try_acquire();
    let wait = if place.is_ok() { wait } else { wait.min(WITHOUT_PLACE) };
    let deadline = Instant::now() + wait;
    while pause(app, deadline).await {
        statuses = read_pending(app, &asked, statuses).await?;
        if !statuses.iter().any(is_pending) {
            return Ok(statuses);
        }
    }
    read_all(app, &asked).await
}

/// Rests until it is time to look again; `false` when the wait is over.
async fn pause(app: &App, deadline: Instant) -> bool {
    let mut closing = app.closing.clone();
    let next = Instant::now() + INTERVAL;
    select! {
        _ = closing.wait_for(|closing| *closing) => false,
        () = sleep_until(next.min(deadline)) => next < deadline,
    }
}

async fn read_all(app: &App, asked: &Arc<Asked>) -> Result<Vec<BatchStatus>, ApiError> {
    let (store, asked) = (app.parts.store.clone(), Arc::clone(asked));
    app.reading.run(move || asked.read(&store)).await
}

/// Reads what is pending again, up to the first that still is: while there is one, the others need
/// not be known, and what has ended stays as it is.
async fn read_pending(
    app: &App,
    asked: &Arc<Asked>,
    mut statuses: Vec<BatchStatus>,
) -> Result<Vec<BatchStatus>, ApiError> {
    let (store, asked) = (app.parts.store.clone(), Arc::clone(asked));
    let read = move || {
        for status in statuses.iter_mut().filter(|status| is_pending(status)) {
            *status = asked.read_one(&store, status.id)?;
            if is_pending(status) {
                break;
            }
        }
        Ok(statuses)
    };
    app.reading.run(read).await
}

fn is_pending(status: &BatchStatus) -> bool {
    status.status == ClientStatus::Pending
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_as_sawtooth_reads_it_and_cut() {
        let longest = Duration::from_secs(60);
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
            let asked = asked_for(&Query::parse(Some(query)).unwrap(), longest);
            assert_eq!(asked, Ok(seconds.map(Duration::from_secs)), "{query}");
        }
    }
}
