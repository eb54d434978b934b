use std::{
    mem::take,
    sync::mpsc::Receiver,
    time::{Duration, Instant},
};

use grid_batch_core::claims::{ClaimKeeper, Takeover};
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::{BatchResult, InternalError, ServiceId};
use grid_batch_support::{Job, Jobs, Shutdown, ShutdownHandle};
use log::{info, warn};

use crate::{
    ClaimHealth, ClaimRequests, ReceivedClaimRequests,
    requests::{PendingRequests, Request},
};

/// How a [`ClaimMaintainer`] works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimMaintainerOptions {
    /// How often the lease is renewed and free services are searched for. Several intervals must fit
    /// into the lease's idle expiry.
    pub renewal_interval: Duration,
    /// How many services are taken between two renewals, so that a long takeover does not delay
    /// the renewal.
    pub takeover_limit: usize,
}

impl Default for ClaimMaintainerOptions {
    fn default() -> Self {
        Self { renewal_interval: Duration::from_millis(500), takeover_limit: 2_000 }
    }
}

impl ClaimMaintainerOptions {
    /// The default, with at least four renewals in this idle expiry.
    pub fn for_idle_expiry(idle_expiry: Duration) -> Self {
        let usual = Self::default();
        Self { renewal_interval: usual.renewal_interval.min(idle_expiry / 4), ..usual }
    }
}

/// A thread that maintains the claims of one instance: it renews the lease and takes services that no live instance
/// owns. The renewal must never wait for other work, so it has a thread of its own.
///
/// Dropping it releases the claims and ends the thread. Stop the submitter first: services with a
/// batch that is being submitted are not released and wait for the lease to expire.
#[derive(Debug)]
pub struct ClaimMaintainer {
    requests: ClaimRequests,
    health: ClaimHealth,
    job: Option<Job>,
}

impl ClaimMaintainer {
    /// Starts the thread. It renews the lease at once.
    pub fn start(
        jobs: &Jobs,
        claims: impl ClaimKeeper + 'static,
        options: ClaimMaintainerOptions,
        subscriber: impl RecordedSubscriber + 'static,
        requests: ClaimRequests,
        received: ReceivedClaimRequests,
    ) -> Result<Self, InternalError> {
        let health = ClaimHealth::default();
        let worker = MaintainerWorker::new(claims, options, subscriber, health.clone());
        let job = jobs.thread("claims", Shutdown::new(), move || worker.run(&received.0))?;
        Ok(Self { requests, health, job: Some(job) })
    }

    /// Whether the claims can be maintained.
    pub fn health(&self) -> ClaimHealth {
        self.health.clone()
    }
}

impl Drop for ClaimMaintainer {
    fn drop(&mut self) {
        let Some(mut job) = self.job.take() else { return };
        // This job does not end by itself, so the thread is still there and this cannot fail.
        let _ = job.signal_shutdown();
        self.requests.send(Request::End);
        // A panic has been logged already.
        let _ = job.join();
    }
}

/// What the maintainer's thread works with.
struct MaintainerWorker<K> {
    claims: K,
    options: ClaimMaintainerOptions,
    subscriber: Box<dyn RecordedSubscriber>,
    health: ClaimHealth,
    next_renewal: Instant,
    /// When to take requested services next.
    next_take: Instant,
    takes: bool,
}

/// The time between two lookups of requested services. Most of them are claimed already.
const TAKE_INTERVAL: Duration = Duration::from_millis(20);

impl<K: ClaimKeeper> MaintainerWorker<K> {
    fn new(
        claims: K,
        options: ClaimMaintainerOptions,
        subscriber: impl RecordedSubscriber + 'static,
        health: ClaimHealth,
    ) -> Self {
        let subscriber = Box::new(subscriber);
        let (next_renewal, next_take) = (Instant::now(), Instant::now());
        Self { claims, options, subscriber, health, next_renewal, next_take, takes: true }
    }

    fn run(mut self, requests: &Receiver<Request>) {
        let mut pending = PendingRequests::default();
        loop {
            pending.receive(requests, self.wait(&pending));
            if pending.end {
                break;
            }
            self.handle(&mut pending);
        }
        match self.claims.release() {
            Ok(services) => info!(services = services; "claims released"),
            Err(error) => warn!(error:% = error; "cannot release claims; they will expire"),
        }
    }

    /// How long until there is something to do.
    fn wait(&self, pending: &PendingRequests) -> Duration {
        let due = (!pending.services.is_empty()).then_some(self.next_take);
        let next = due.map_or(self.next_renewal, |time| time.min(self.next_renewal));
        next.saturating_duration_since(Instant::now())
    }

    /// Handles requests, and renews the lease when that is due, however many requests there are. Requested services
    /// wait until `next_take`, so that a busy server looks up many at once.
    fn handle(&mut self, pending: &mut PendingRequests) {
        self.takes &= !pending.stop_taking;
        if Instant::now() >= self.next_take && !pending.services.is_empty() {
            let services: Vec<ServiceId> = take(&mut pending.services).into_iter().collect();
            if self.takes {
                self.take(|claims| claims.take_services(&services));
            }
            self.next_take = Instant::now() + TAKE_INTERVAL;
        }
        if Instant::now() >= self.next_renewal {
            let takeover_is_complete = self.renew_and_take();
            let pause =
                if takeover_is_complete { self.options.renewal_interval } else { Duration::ZERO };
            self.next_renewal = Instant::now() + pause;
        }
    }

    /// Renews the lease and takes services. Returns `false` if there may be more services to take.
    fn renew_and_take(&self) -> bool {
        if self.health.update(self.renew()).is_none() || !self.takes {
            return true;
        }
        let limit = self.options.takeover_limit;
        self.take(|claims| claims.take(limit)) < limit
    }

    fn renew(&self) -> BatchResult<()> {
        if self.claims.renew()? {
            return Ok(());
        }
        warn!("the lease expired before it was renewed; registering as a new instance");
        self.claims.register_again()
    }

    /// Takes services and returns their number.
    fn take(&self, take: impl FnOnce(&K) -> BatchResult<Takeover>) -> usize {
        let Some(takeover) = self.health.update(take(&self.claims)) else { return 0 };
        let Takeover { claims, in_doubt, .. } = &takeover;
        if !claims.is_empty() {
            info!(services = claims.len(); "services claimed");
        }
        if !in_doubt.is_empty() {
            warn!(batches = in_doubt.len();
                "the previous owner was submitting batches when it lost its claims; they are in doubt");
        }
        self.health.count(&takeover);
        if !claims.is_empty() {
            self.subscriber.recorded(Recorded::TakenOver(&takeover));
        }
        claims.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{channel, sync_channel};

    use grid_batch_core::claims::Claim;
    use grid_batch_core::mocks::MockClaimKeeper;
    use grid_batch_core::{BatchError, ServiceId};

    use super::*;

    fn service() -> ServiceId {
        "circuit::service".parse().unwrap()
    }

    fn takeover(count: usize) -> Takeover {
        let claim = |number| Claim { service_id: format!("s{number}").parse().unwrap(), epoch: 1 };
        Takeover { claims: (0..count).map(claim).collect(), ..Takeover::default() }
    }

    /// A worker, and the takeovers that its subscriber is called with.
    fn worker(claims: MockClaimKeeper) -> (MaintainerWorker<MockClaimKeeper>, Receiver<Takeover>) {
        let (sender, heard) = sync_channel(9);
        let subscriber = move |entry: Recorded<'_>| {
            let Recorded::TakenOver(takeover) = entry else { panic!("{entry:?}") };
            sender.send(takeover.clone()).unwrap();
        };
        let options = ClaimMaintainerOptions {
            renewal_interval: Duration::from_secs(3_600),
            takeover_limit: 2,
        };
        let health = ClaimHealth::default();
        (MaintainerWorker::new(claims, options, subscriber, health), heard)
    }

    fn request() -> PendingRequests {
        PendingRequests { services: [service()].into(), ..PendingRequests::default() }
    }

    #[test]
    fn requested_services_are_taken_before_the_next_renewal() {
        let mut claims = MockClaimKeeper::new();
        claims
            .expect_take_services()
            .once()
            .withf(|services| services == [service()])
            .returning(|_| Ok(takeover(1)));
        let (mut worker, heard) = worker(claims);
        worker.next_renewal = Instant::now() + worker.options.renewal_interval;
        worker.handle(&mut request());
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [takeover(1)]);
    }

    #[test]
    fn requests_do_not_delay_the_renewal() {
        let mut claims = MockClaimKeeper::new();
        claims.expect_take_services().returning(|_| Ok(takeover(1)));
        claims.expect_renew().once().returning(|| Ok(true));
        claims.expect_take().once().returning(|_| Ok(takeover(0)));
        let (mut worker, _heard) = worker(claims);
        let started = Instant::now();
        worker.handle(&mut request());
        assert!(worker.next_renewal > started + Duration::from_secs(3_000));
    }

    #[test]
    fn worker_that_stops_taking_still_renews() {
        let mut claims = MockClaimKeeper::new();
        claims.expect_renew().times(2).returning(|| Ok(true));
        let (mut worker, heard) = worker(claims);
        worker.handle(&mut PendingRequests { stop_taking: true, ..request() });
        worker.next_renewal = Instant::now();
        worker.handle(&mut request());
        assert!(heard.try_recv().is_err(), "nothing is taken");
    }

    #[test]
    fn full_takeover_is_continued_at_once() {
        let mut claims = MockClaimKeeper::new();
        claims.expect_renew().once().returning(|| Ok(true));
        claims.expect_take().once().withf(|limit| *limit == 2).returning(|_| Ok(takeover(2)));
        let (mut worker, heard) = worker(claims);
        worker.handle(&mut PendingRequests::default());
        assert_eq!(heard.try_recv(), Ok(takeover(2)));
        assert!(worker.next_renewal <= Instant::now());
    }

    #[test]
    fn expired_lease_registers_a_new_instance() {
        let mut claims = MockClaimKeeper::new();
        claims.expect_renew().once().returning(|| Ok(false));
        claims.expect_register_again().once().returning(|| Ok(()));
        claims.expect_take().once().returning(|_| Ok(takeover(1)));
        let (mut worker, heard) = worker(claims);
        worker.handle(&mut PendingRequests::default());
        assert_eq!(heard.try_recv(), Ok(takeover(1)));
    }

    #[test]
    fn failed_renewal_takes_nothing_and_is_unhealthy() {
        let mut claims = MockClaimKeeper::new();
        let error = BatchError::Unavailable("no connection".to_owned());
        let returned = error.clone();
        claims.expect_renew().once().returning(move || Err(returned.clone()));
        let (mut worker, _heard) = worker(claims);
        worker.handle(&mut PendingRequests::default());
        assert_eq!(worker.health.error(), Some(error));
        assert!(worker.next_renewal > Instant::now(), "it does not retry without a pause");
    }

    #[test]
    fn request_to_end_is_found_among_others() {
        let mut claims = MockClaimKeeper::new();
        claims.expect_release().once().returning(|| Ok(0));
        let (sender, requests) = channel();
        for request in [Request::Claim(vec![service()]), Request::End, Request::StopTaking] {
            sender.send(request).unwrap();
        }
        // Otherwise this call would block forever, because the sender still exists.
        worker(claims).0.run(&requests);
    }

    #[test]
    fn dropped_maintainer_releases_its_claims() {
        let mut claims = MockClaimKeeper::new();
        claims.expect_renew().returning(|| Ok(true));
        claims.expect_take().returning(|_| Ok(takeover(0)));
        claims.expect_release().once().returning(|| Ok(0));
        let (requests, received) = ClaimRequests::new();
        let (sent, ignored) = (requests.clone(), |_: Recorded<'_>| ());
        let options = ClaimMaintainerOptions::default();
        let jobs = Jobs::start().unwrap();
        drop(ClaimMaintainer::start(&jobs, claims, options, ignored, requests, received).unwrap());
        assert_eq!(jobs.reports(), []);
        sent.claim(&[service()]);
    }
}
