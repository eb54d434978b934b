use std::{sync::Arc, time::Duration};

use grid_batch_core::claims::StatePauseStore;
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::ledger::Ledger;
use grid_batch_core::{BatchResult, ServiceId};
use grid_batch_support::{BlockingPool, Job, Jobs};
use log::{info, warn};
use tokio::time::sleep;

/// How long to wait between two comparisons.
const INTERVAL: Duration = Duration::from_secs(1);

/// Starts the job that pauses services whose nodes have different states, and resumes them when the states agree.
pub fn compare_states<S>(
    ledger: Arc<dyn Ledger>,
    claims: S,
    stream: impl RecordedSubscriber + 'static,
    jobs: &Jobs,
) -> Job
where
    S: StatePauseStore + Clone + Sync + 'static,
{
    let blocking = jobs.blocking().clone();
    jobs.spawn("state-roots", async move {
        loop {
            match compare(&*ledger, &claims, &blocking).await {
                Ok(services) if services.is_empty() => {}
                Ok(services) => stream.recorded(Recorded::Resumed(&services)),
                Err(error) => warn!(error:%;
                    "cannot record whether the state roots of nodes differ"),
            }
            sleep(INTERVAL).await;
        }
    })
}

/// Compares the states and records what has changed. Returns the services that continue.
async fn compare<S: StatePauseStore + Clone + 'static>(
    ledger: &dyn Ledger,
    claims: &S,
    blocking: &BlockingPool,
) -> BatchResult<Vec<ServiceId>> {
    let store = claims.clone();
    let paused = blocking.ask(move || store.services_with_different_states()).await?;
    let mut compared = ledger.compare_states(&paused).await;
    compared.retain(|(service, differ)| paused.contains(service) != *differ);
    if compared.is_empty() {
        return Ok(Vec::new());
    }
    let store = claims.clone();
    blocking.ask(move || record(&store, compared)).await
}

fn record(
    claims: &impl StatePauseStore,
    compared: Vec<(ServiceId, bool)>,
) -> BatchResult<Vec<ServiceId>> {
    let mut resumed = Vec::new();
    for (service, differ) in compared {
        if !claims.set_states_differ(&service, differ)? {
            continue;
        }
        if differ {
            warn!(service:%; "the service is paused until the state roots agree");
        } else {
            info!(service:%; "the service goes on: the state roots of its nodes agree");
            resumed.push(service);
        }
    }
    Ok(resumed)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Mutex};

    use grid_batch_support::lock;

    use super::*;

    /// The paused services.
    #[derive(Default)]
    struct Pauses(Mutex<BTreeSet<String>>);

    impl StatePauseStore for Pauses {
        fn services_with_different_states(&self) -> BatchResult<Vec<ServiceId>> {
            unreachable!("the test does not use it")
        }

        fn set_states_differ(&self, service_id: &ServiceId, differ: bool) -> BatchResult<bool> {
            let (name, mut paused) = (service_id.to_string(), lock(&self.0));
            Ok(if differ { paused.insert(name) } else { paused.remove(&name) })
        }
    }

    #[test]
    fn services_whose_pause_ends_continue() {
        let [one, two]: [ServiceId; 2] = ["a::b", "a::c"].map(|id| id.parse().unwrap());
        let pauses = Pauses::default();
        assert_eq!(record(&pauses, vec![(one.clone(), true)]).unwrap(), []);
        let compared = vec![(one.clone(), false), (two.clone(), false)];
        assert_eq!(record(&pauses, compared).unwrap(), [one], "the other one was not paused");
    }
}
