use std::marker::PhantomData;

use grid_batch_claims::ChangeFollowUp;
use grid_batch_core::{ScopeId, SubmitterObserver};

/// Subscribes to the events of a service whenever a batch of it was submitted.
pub(super) struct EventObserver<S> {
    follow_up: ChangeFollowUp,
    scope: PhantomData<fn() -> S>,
}

impl<S> EventObserver<S> {
    pub(super) fn new(follow_up: ChangeFollowUp) -> Self {
        Self { follow_up, scope: PhantomData }
    }
}

impl<S: ScopeId> SubmitterObserver for EventObserver<S> {
    type Id = S;

    fn notify(&self, _: String, scope_id: S, _: Option<u16>, _: Option<String>) {
        self.follow_up.follow_events(scope_id.service_id());
    }
}
