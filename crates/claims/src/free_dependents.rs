use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread::JoinHandle,
    time::Duration,
};

use grid_batch_core::{BatchResult, InternalError};
use grid_batch_support::spawn_thread;
use log::warn;

/// A thread that evaluates batches whose blockers have ended, where the commit of the end did not: those of
/// other services, and those beyond the limit of one commit.
///
/// It looks for them when it is asked to, and at an interval, because other instances leave batches, too.
/// Dropping it ends the thread.
#[derive(Debug)]
pub struct DependentsJob {
    requests: Option<DependentsRequests>,
    thread: Option<JoinHandle<()>>,
}

/// Asks a [`DependentsJob`] to look now. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DependentsRequests(SyncSender<Request>);

/// The receiving end of [`DependentsRequests`].
#[derive(Debug)]
pub struct ReceivedRequests(Receiver<Request>);

#[derive(Debug)]
enum Request {
    Look,
    End,
}

/// How often it looks without being asked.
const INTERVAL: Duration = Duration::from_millis(500);

impl DependentsRequests {
    /// Where to ask for looks, also before the job has started.
    pub fn new() -> (Self, ReceivedRequests) {
        let (sender, receiver) = sync_channel(1);
        (Self(sender), ReceivedRequests(receiver))
    }

    /// Asks for a look. One that has not begun yet serves several requests.
    pub fn request(&self) {
        // An error means that a request waits already, or that the thread has ended.
        let _ = self.0.try_send(Request::Look);
    }
}

impl DependentsJob {
    /// Starts the thread. `look` evaluates some batches, and returns whether more can be evaluated.
    pub fn start(
        (requests, received): (DependentsRequests, ReceivedRequests),
        look: impl FnMut() -> BatchResult<bool> + Send + 'static,
    ) -> Result<Self, InternalError> {
        let mut worker = DependentsWorker { look, has_failed: false };
        let thread = spawn_thread("dependents", move || worker.run(&received.0))?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }
}

impl Drop for DependentsJob {
    fn drop(&mut self) {
        if let Some(requests) = self.requests.take() {
            let _ = requests.0.send(Request::End);
        }
        if let Some(thread) = self.thread.take() {
            // The panic hook has printed a panic already.
            let _ = thread.join();
        }
    }
}

struct DependentsWorker<L> {
    look: L,
    has_failed: bool,
}

impl<L: FnMut() -> BatchResult<bool>> DependentsWorker<L> {
    fn run(&mut self, requests: &Receiver<Request>) {
        loop {
            match requests.recv_timeout(INTERVAL) {
                Ok(Request::Look) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Request::End) | Err(RecvTimeoutError::Disconnected) => return,
            }
            while self.look() {
                if let Ok(Request::End) = requests.try_recv() {
                    return;
                }
            }
        }
    }

    /// Looks once. Returns whether there are more.
    fn look(&mut self) -> bool {
        match (self.look)() {
            Ok(more) => {
                self.has_failed = false;
                more
            }
            Err(error) => {
                if !self.has_failed {
                    warn!(error:% = error;
                        "cannot free the batches whose blockers have ended; it is tried again");
                }
                self.has_failed = true;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use grid_batch_core::BatchError;

    use super::*;

    fn unavailable() -> BatchResult<bool> {
        Err(BatchError::Unavailable("no connection".to_owned()))
    }

    #[test]
    fn job_looks_until_nothing_is_left() {
        let (sender, looked) = channel();
        let mut looks = vec![Ok(false), Ok(true), Ok(true), unavailable()];
        let (requests, received) = DependentsRequests::new();
        let asked = requests.clone();
        let look = move || {
            let more = looks.pop().unwrap_or(Ok(false));
            sender.send(more.clone()).unwrap();
            more
        };
        let job = DependentsJob::start((requests, received), look).unwrap();
        (0..5).for_each(|_| asked.request());
        let found: Vec<_> = looked.iter().take(4).collect();
        assert_eq!(found, [unavailable(), Ok(true), Ok(true), Ok(false)]);
        drop(job);
        assert!(looked.iter().all(|more| more == Ok(false)), "the thread has ended");
        asked.request();
    }

    #[test]
    fn job_looks_without_being_asked() {
        let (sender, looked) = channel();
        let look = move || {
            // The test has ended when nothing receives it.
            let _ = sender.send(());
            Ok(false)
        };
        let _job = DependentsJob::start(DependentsRequests::new(), look).unwrap();
        assert!(looked.recv_timeout(Duration::from_secs(30)).is_ok());
    }

    #[test]
    fn error_is_logged_and_tried_again() {
        let (sender, looked) = channel();
        let mut failures = 2;
        let look = move || match failures {
            0 => {
                let _ = sender.send(());
                Ok(false)
            }
            _ => {
                failures -= 1;
                unavailable()
            }
        };
        let _job = DependentsJob::start(DependentsRequests::new(), look).unwrap();
        assert!(looked.recv_timeout(Duration::from_secs(30)).is_ok());
    }
}
