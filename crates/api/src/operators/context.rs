use std::{slice, sync::Arc};

use grid_batch_core::batches::StoredBatch;
use grid_batch_core::operators::{ActionEffect, ActionOutcome, OperatorAction, OperatorStore};
use grid_batch_core::queries::BatchQueryStore;

use crate::{
    batches::{BatchRequestError, NamedBatch},
    http::{ApiError, RequestError},
    state::{ApiState, SharedStore, StoreAccess, StoredCallback},
};

/// How many actions are carried out at once.
pub(crate) const WRITES: usize = 4;
/// How many requests about many batches are. They take long, and a pause must not wait for them.
pub(crate) const MANY: usize = 2;

/// Calls back the batches that this instance has taken and not sent, and that an operator has stopped since.
pub(crate) type RecallFn = dyn Fn() + Send + Sync;

/// What the handlers of operators need.
pub(crate) struct OperatorContext {
    pub(crate) api: Arc<ApiState>,
    pub(crate) queries: Arc<dyn BatchQueryStore>,
    pub(crate) store: SharedStore<dyn OperatorStore>,
    pub(crate) writes_of_many: StoreAccess,
    pub(crate) stored: StoredCallback,
    pub(crate) recall: Arc<RecallFn>,
}

impl OperatorContext {
    /// The one batch that is named and that the caller may act on.
    pub(super) fn find(&self, named: &NamedBatch) -> Result<StoredBatch, ApiError> {
        named.find_in(&*self.queries).map_err(|error| match error.get() {
            Some(BatchRequestError::BatchNotFound(_)) => {
                RequestError::UnknownTarget { kind: "batch" }.into()
            }
            _ => error,
        })
    }

    /// Does it, and wakes the queue of its service.
    pub(super) fn act(&self, action: &OperatorAction) -> Result<ActionEffect, ApiError> {
        let kind = action.target.kind();
        match self.store.store.act(action).map_err(ApiError::write_failed)? {
            ActionOutcome::Done(effect) => {
                if let (Some(service), false) = (action.target.service_id(), action.dry_run) {
                    self.stored.notify(slice::from_ref(service));
                }
                Ok(effect)
            }
            ActionOutcome::Refused(refusal) => Err(refusal.into()),
            ActionOutcome::NotFound => Err(RequestError::UnknownTarget { kind }.into()),
        }
    }
}
