use std::{
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use grid_batch_core::InternalError;
use grid_batch_core::queries::DiskSpace;
use grid_batch_support::{ErrorChain, Job, Jobs, Shutdown};
use log::{info, warn};
use tokio::time::timeout;

/// Whether the database answers, tested with a connection that is used for nothing else. Clones share their state.
#[derive(Debug, Clone)]
pub(super) struct DatabaseHealth(Arc<Mutex<Probed>>);

#[derive(Debug)]
struct Probed {
    /// When the query was sent that has not been answered yet.
    asked_at: Option<Instant>,
    succeeded_at: Instant,
    has_failed: bool,
    /// Whether the log says that the database does not answer.
    is_logged: bool,
    space: Option<DiskSpace>,
}

impl Probed {
    fn is_late(&self) -> bool {
        self.asked_at.is_some_and(|asked| asked.elapsed() > DatabaseHealth::ANSWER_LIMIT)
    }
}

impl DatabaseHealth {
    /// A database that has not answered for this long counts as not answering. Together with the interval, it is less
    /// than the two seconds within which a request is answered.
    const ANSWER_LIMIT: Duration = Duration::from_millis(1_250);
    const INTERVAL: Duration = Duration::from_millis(500);

    pub(super) fn new() -> Self {
        let succeeded_at = Instant::now();
        let (asked_at, has_failed, is_logged, space) = Default::default();
        let probed = Probed { asked_at, succeeded_at, has_failed, is_logged, space };
        Self(Arc::new(Mutex::new(probed)))
    }

    pub(super) fn answers(&self) -> bool {
        let probed = self.lock();
        !probed.has_failed && !probed.is_late()
    }

    /// The space that the database had at the last answer, if this process can tell.
    pub(super) fn space(&self) -> Option<DiskSpace> {
        self.lock().space
    }

    /// Logs once that a query has no answer. The thread that sent it still waits.
    pub(super) fn log_delay(&self) {
        let mut probed = self.lock();
        if probed.is_late() && !std::mem::replace(&mut probed.is_logged, true) {
            warn!("the database hangs: a query has no answer");
        }
    }

    /// For how long the database has not answered.
    pub(super) fn since_answer(&self) -> Duration {
        self.lock().succeeded_at.elapsed()
    }

    fn begin(&self) {
        self.lock().asked_at = Some(Instant::now());
    }

    fn end<E: Error>(&self, result: Result<Option<DiskSpace>, E>) {
        let mut probed = self.lock();
        let was_late = probed.is_late();
        probed.asked_at = None;
        probed.has_failed = result.is_err();
        let was_logged = std::mem::replace(&mut probed.is_logged, result.is_err());
        match result {
            Ok(space) => {
                let seconds = probed.succeeded_at.elapsed().as_secs();
                if was_logged || was_late {
                    info!(seconds; "the database answers again");
                }
                (probed.succeeded_at, probed.space) = (Instant::now(), space);
            }
            Err(error) if !was_logged => {
                warn!(error:% = ErrorChain(&error); "the database does not answer");
            }
            Err(_) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Probed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread that queries the database. It is used for nothing else, so the query never has to wait.
pub(super) fn watch<E: Error>(
    state: DatabaseHealth,
    mut probe: impl FnMut() -> Result<Option<DiskSpace>, E> + Send + 'static,
    jobs: &Jobs,
) -> Result<Job, InternalError> {
    let (runtime, shutdown) = (jobs.handle().clone(), Shutdown::new());
    let requested = shutdown.clone();
    jobs.thread("health-database", shutdown, move || {
        while !requested.is_requested() {
            state.begin();
            state.end(probe());
            let pause = async { timeout(DatabaseHealth::INTERVAL, requested.requested()).await };
            // The pause ends early when the job must end.
            let _ = runtime.block_on(pause);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> InternalError {
        InternalError::new("no connection")
    }

    fn answer() -> Result<Option<DiskSpace>, InternalError> {
        Ok(None)
    }

    #[test]
    fn failure_lasts_until_the_next_answer() {
        let state = DatabaseHealth::new();
        assert!(state.answers());
        state.begin();
        assert!(state.answers(), "it has time to answer");
        state.end(Err(failure()));
        assert!(!state.answers());
        state.begin();
        assert!(!state.answers());
        state.end(answer());
        assert!(state.answers());
    }

    #[test]
    fn late_answer_counts_as_none() {
        let state = DatabaseHealth::new();
        state.lock().asked_at = Instant::now().checked_sub(DatabaseHealth::ANSWER_LIMIT * 2);
        assert!(!state.answers());
        state.end(answer());
        assert!(state.answers());
    }
}
