use std::{
    collections::BTreeSet,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread::JoinHandle,
    time::Duration,
};

use grid_batch_core::{BatchResult, InternalError, ServiceId, WakeUps};
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

/// The result of one look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DependentsLook {
    /// Services that may have a batch to submit now.
    pub ready: BTreeSet<ServiceId>,
    /// Whether more batches can be evaluated.
    pub more: bool,
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
    /// Starts the thread. `look` evaluates some batches; the services that are ready then are woken.
    pub fn start(
        (requests, received): (DependentsRequests, ReceivedRequests),
        wake_ups: impl WakeUps + 'static,
        look: impl FnMut() -> BatchResult<DependentsLook> + Send + 'static,
    ) -> Result<Self, InternalError> {
        let mut worker = DependentsWorker { look, wake_ups, has_failed: false };
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

struct DependentsWorker<L, W> {
    look: L,
    wake_ups: W,
    has_failed: bool,
}

impl<L: FnMut() -> BatchResult<DependentsLook>, W: WakeUps> DependentsWorker<L, W> {
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
            Ok(DependentsLook { ready, more }) => {
                self.has_failed = false;
                ready.iter().for_each(|service_id| self.wake_ups.wake(service_id));
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
    use std::sync::mpsc::{Sender, channel};

    use grid_batch_core::BatchError;

    use super::*;

    /// Reports the services that are woken.
    struct Woken(Sender<ServiceId>);

    impl WakeUps for Woken {
        fn wake(&self, service_id: &ServiceId) {
            self.0.send(service_id.clone()).unwrap();
        }

        fn wake_after(&self, _: &ServiceId, _: Duration) {
            panic!("nothing is delayed");
        }
    }

    fn ready(name: &str, more: bool) -> BatchResult<DependentsLook> {
        Ok(DependentsLook { ready: [name.parse().unwrap()].into(), more })
    }

    #[test]
    fn job_looks_until_nothing_is_left_and_wakes_services() {
        let (sender, woken) = channel();
        let mut looks = vec![ready("c", false), ready("b", true), ready("a", true)];
        looks.insert(0, Err(BatchError::Unavailable("no connection".to_owned())));
        let channel = DependentsRequests::new();
        let requests = channel.0.clone();
        let look = move || looks.pop().unwrap_or_else(|| Ok(DependentsLook::default()));
        let job = DependentsJob::start(channel, Woken(sender), look).unwrap();
        (0..5).for_each(|_| requests.request());
        let names: Vec<_> = woken.iter().take(3).map(|id| id.to_string()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        drop(job);
        assert!(woken.recv().is_err(), "the thread has ended");
        requests.request();
    }

    #[test]
    fn job_looks_without_being_asked() {
        let (sender, woken) = channel();
        let look = || ready("a", false);
        let _job = DependentsJob::start(DependentsRequests::new(), Woken(sender), look).unwrap();
        assert!(woken.recv_timeout(Duration::from_secs(30)).is_ok());
    }

    #[test]
    fn error_is_logged_and_tried_again() {
        let (sender, woken) = channel();
        let mut failures = 2;
        let look = move || match failures {
            0 => ready("a", false),
            _ => {
                failures -= 1;
                Err(BatchError::Unavailable("no connection".to_owned()))
            }
        };
        let _job = DependentsJob::start(DependentsRequests::new(), Woken(sender), look).unwrap();
        assert!(woken.recv_timeout(Duration::from_secs(30)).is_ok());
    }
}
