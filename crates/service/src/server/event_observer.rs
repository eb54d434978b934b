use std::marker::PhantomData;

use grid_batch_claims::ChangeFollowUp;
use grid_batch_core::{ScopeId, SubmitterObserver};

use super::metrics::StageTimes;

/// Subscribes to the events of a service whenever a batch of it was submitted, and measures that.
pub(super) struct EventObserver<S> {
    follow_up: ChangeFollowUp,
    stages: StageTimes,
    scope: PhantomData<fn() -> S>,
}

impl<S> EventObserver<S> {
    pub(super) fn new(follow_up: ChangeFollowUp, stages: StageTimes) -> Self {
        Self { follow_up, stages, scope: PhantomData }
    }
}

impl<S: ScopeId> SubmitterObserver for EventObserver<S> {
    type Id = S;

    fn notify(&self, batch_id: String, scope_id: S, status: Option<u16>, message: Option<String>) {
        match (status, message) {
            (None, None) => self.stages.taken(&batch_id),
            _ => self.stages.answered(&batch_id),
        }
        self.follow_up.follow_events(scope_id.service_id());
    }
}
