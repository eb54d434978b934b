//! The job that evaluates batches whose blockers have ended.

use grid_batch_claims::{
    ChangeFollowUp, DependentsJob, DependentsLook, DependentsRequests, ReceivedRequests,
};
use grid_batch_core::InternalError;
use grid_batch_queuer::WakeUp;
use grid_batch_store::{FreedDependents, Store};

/// How many batches are evaluated before services are woken.
const STEP: usize = 1_000;

/// Requests a look if this process has left batches to evaluate.
pub(super) fn request(
    store: &Store,
    requests: &DependentsRequests,
) -> impl Fn() + Send + Sync + 'static {
    let (store, requests) = (store.clone(), requests.clone());
    move || {
        if store.dependents_wait() {
            requests.request();
        }
    }
}

/// Starts the job. Where declared access is not used, it only works on invalid batches that stop others.
pub(super) fn start(
    store: &Store,
    wake_up: WakeUp,
    follow_up: &ChangeFollowUp,
    channel: (DependentsRequests, ReceivedRequests),
) -> Result<DependentsJob, InternalError> {
    let (store, follow_up) = (store.clone(), follow_up.clone());
    let look = move || {
        let freed = store.free_dependents(STEP);
        follow_up.ended_unsent(store.take_ended_unsent());
        let FreedDependents { ready, more } = freed?;
        Ok(DependentsLook { ready, more })
    };
    DependentsJob::start(channel, wake_up, look)
}
