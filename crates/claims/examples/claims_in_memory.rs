//! Two instances share the services of a store in memory: the second takes over when the first one
//! stops.
//!
//! `cargo run -p grid-batch-claims --example claims_in_memory`

use std::{
    collections::BTreeMap,
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    time::Duration,
};

use grid_batch_claims::{ChangeFollowUp, ClaimMaintainer, ClaimMaintainerOptions};
use grid_batch_core::{
    BatchResult, Claim, ClaimKeeper, PollTriggers, ServiceId, SubmittedBatch, Takeover, WakeUps,
};

/// A service's epoch and its owner.
type Owners = BTreeMap<ServiceId, (u64, Option<&'static str>)>;

/// One instance's claims in a table that all instances share. Leases never expire here.
#[derive(Clone)]
struct InMemoryClaims {
    instance: &'static str,
    owners: Arc<Mutex<Owners>>,
}

impl InMemoryClaims {
    fn owners(&self) -> MutexGuard<'_, Owners> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_if(&self, limit: usize, wanted: impl Fn(&ServiceId) -> bool) -> Takeover {
        let mut takeover = Takeover::default();
        let mut owners = self.owners();
        let free = owners.iter_mut().filter(|(id, (_, owner))| owner.is_none() && wanted(id));
        for (service_id, (epoch, owner)) in free.take(limit) {
            *epoch += 1;
            *owner = Some(self.instance);
            takeover.claims.push(Claim { service_id: service_id.clone(), epoch: *epoch });
        }
        takeover
    }
}

impl ClaimKeeper for InMemoryClaims {
    fn renew(&self) -> BatchResult<bool> {
        Ok(true)
    }

    fn register_again(&self) -> BatchResult<()> {
        Ok(())
    }

    fn take(&self, limit: usize) -> BatchResult<Takeover> {
        Ok(self.take_if(limit, |_| true))
    }

    fn take_services(&self, services: &[ServiceId]) -> BatchResult<Takeover> {
        Ok(self.take_if(services.len(), |id| services.contains(id)))
    }

    fn with_submitter(&self) -> BatchResult<Vec<SubmittedBatch>> {
        Ok(Vec::new())
    }

    fn recover(&self, _orphans: &[SubmittedBatch]) -> BatchResult<Vec<SubmittedBatch>> {
        Ok(Vec::new())
    }

    fn release(&self) -> BatchResult<usize> {
        let mut owners = self.owners();
        let own = owners.values_mut().filter(|(_, owner)| *owner == Some(self.instance));
        Ok(own.map(|(_, owner)| *owner = None).count())
    }
}

/// Sends every wake-up to the main thread, instead of waking a queue.
struct PrintedWakeUps {
    instance: &'static str,
    woken: mpsc::Sender<(&'static str, ServiceId)>,
}

impl WakeUps for PrintedWakeUps {
    fn wake(&self, service_id: &ServiceId) {
        // An error means that the main thread has ended.
        let _ = self.woken.send((self.instance, service_id.clone()));
    }

    fn wake_after(&self, service_id: &ServiceId, _delay: Duration) {
        self.wake(service_id);
    }
}

/// There is no ledger to poll.
struct NoPoller;

impl PollTriggers for NoPoller {
    fn trigger(&self, _service_id: &ServiceId) {}

    fn submitted(&self, _service_id: &ServiceId) {}
}

fn main() -> Result<(), Box<dyn Error>> {
    let services = ["circuit::one", "circuit::two"].map(str::parse::<ServiceId>);
    let services = services.into_iter().collect::<Result<Vec<_>, _>>()?;
    let owners = services.iter().map(|service| (service.clone(), (0, None))).collect();
    let owners = Arc::new(Mutex::new(owners));
    let (woken, wake_ups) = mpsc::channel();
    let start = |instance: &'static str| {
        let queue = PrintedWakeUps { instance, woken: woken.clone() };
        ClaimMaintainer::start(
            InMemoryClaims { instance, owners: Arc::clone(&owners) },
            ClaimMaintainerOptions::default(),
            ChangeFollowUp::new(queue, NoPoller),
        )
    };

    let first = start("the first instance")?;
    print_wake_ups(&wake_ups, services.len())?;
    let second = start("the second instance")?;
    drop(first);
    print_wake_ups(&wake_ups, services.len())?;
    drop(second);
    Ok(())
}

fn print_wake_ups(
    wake_ups: &mpsc::Receiver<(&'static str, ServiceId)>,
    count: usize,
) -> Result<(), mpsc::RecvTimeoutError> {
    for _ in 0..count {
        let (instance, service) = wake_ups.recv_timeout(Duration::from_secs(10))?;
        println!("{instance} owns {service}");
    }
    Ok(())
}
