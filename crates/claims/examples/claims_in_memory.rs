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

use grid_batch_claims::{ClaimMaintainer, ClaimMaintainerOptions, ClaimRequests, Jobs};
use grid_batch_core::claims::{Claim, ClaimKeeper, SubmittedBatch, Takeover};
use grid_batch_core::events::Recorded;
use grid_batch_core::{BatchResult, ServiceId};

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

fn main() -> Result<(), Box<dyn Error>> {
    let services = ["circuit::one", "circuit::two"].map(str::parse::<ServiceId>);
    let services = services.into_iter().collect::<Result<Vec<_>, _>>()?;
    let owners = services.iter().map(|service| (service.clone(), (0, None))).collect();
    let owners = Arc::new(Mutex::new(owners));
    let (sender, taken) = mpsc::channel();
    let jobs = Jobs::start()?;
    let start = |instance: &'static str| {
        let sender = sender.clone();
        // A server would wake its queue and its poller.
        let subscriber = move |entry: Recorded<'_>| {
            let Recorded::TakenOver(takeover) = entry else { return };
            for claim in &takeover.claims {
                // An error means that the main thread has ended.
                let _ = sender.send((instance, claim.service_id.clone()));
            }
        };
        let (requests, received) = ClaimRequests::new();
        ClaimMaintainer::start(
            &jobs,
            InMemoryClaims { instance, owners: Arc::clone(&owners) },
            ClaimMaintainerOptions::default(),
            subscriber,
            requests,
            received,
        )
    };

    let first = start("the first instance")?;
    print_taken(&taken, services.len())?;
    let second = start("the second instance")?;
    drop(first);
    print_taken(&taken, services.len())?;
    drop(second);
    Ok(())
}

fn print_taken(
    taken: &mpsc::Receiver<(&'static str, ServiceId)>,
    count: usize,
) -> Result<(), mpsc::RecvTimeoutError> {
    for _ in 0..count {
        let (instance, service) = taken.recv_timeout(Duration::from_secs(10))?;
        println!("{instance} owns {service}");
    }
    Ok(())
}
