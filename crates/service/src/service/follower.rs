use std::marker::PhantomData;

use grid_batch_core::{ScopeId, SubmitterObserver};

use crate::service::afterwards::Afterwards;

/// Listens to a service whenever a batch of it is on its way.
pub(super) struct Follower<S> {
    pub(super) afterwards: Afterwards,
    pub(super) scope: PhantomData<fn() -> S>,
}

impl<S: ScopeId> SubmitterObserver for Follower<S> {
    type Id = S;

    fn notify(&self, _: String, scope_id: S, _: Option<u16>, _: Option<String>) {
        self.afterwards.follow(scope_id.service_id());
    }
}
