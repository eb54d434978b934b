use std::sync::Arc;

use grid_batch_core::{
    Ahead, BatchDetails, BatchPageStore, BatchQueryStore, EventStore, HeaderId, OperatorStore,
    SearchLimits, ServiceId, ServiceQueryStore, StoredBatch,
};

use super::{HistorySource, LedgerSource, OutageSource, PauseSource};
use crate::{
    access::Caller, batches::NamedBatch, gas_admins::GasAdminSource, http::ApiError,
    state::ApiState,
};

/// What is read below `/v1`.
#[derive(Clone)]
pub(crate) struct ReadParts {
    pub(crate) pages: Arc<dyn BatchPageStore>,
    pub(crate) services: Arc<dyn ServiceQueryStore>,
}

/// What can be told if the builder says where it is.
#[derive(Clone, Default)]
pub(crate) struct ReadSources {
    /// `None`: no service is ever paused.
    pub(crate) pauses: Option<Arc<PauseSource>>,
    pub(crate) ledgers: Option<Arc<LedgerSource>>,
    pub(crate) history: Option<Arc<HistorySource>>,
    /// `None`: all nodes answer, as far as is known.
    pub(crate) outages: Option<Arc<OutageSource>>,
    pub(crate) search: Option<SearchLimits>,
}

/// What the handlers below `/v1` need.
pub(crate) struct ReadContext {
    pub(crate) api: Arc<ApiState>,
    pub(crate) batches: Arc<dyn BatchQueryStore>,
    pub(crate) pages: Arc<dyn BatchPageStore>,
    pub(crate) services: Arc<dyn ServiceQueryStore>,
    pub(crate) gas_admins: Option<Arc<GasAdminSource>>,
    /// `None`: the history of a batch is what its rows tell.
    pub(crate) events: Option<Arc<dyn EventStore>>,
    /// `None`: nothing is known of what operators did.
    pub(crate) operators: Option<Arc<dyn OperatorStore>>,
    pub(crate) pauses: Option<Arc<PauseSource>>,
    pub(crate) ledgers: Option<Arc<LedgerSource>>,
    pub(crate) history: Option<Arc<HistorySource>>,
    pub(crate) outages: Option<Arc<OutageSource>>,
    pub(crate) search: Option<SearchLimits>,
}

impl ReadContext {
    /// The one batch that is named and that the caller may see.
    pub(super) async fn find(&self, named: &NamedBatch) -> Result<StoredBatch, ApiError> {
        let (batches, named) = (Arc::clone(&self.batches), named.clone());
        self.api.reads.run(move || named.find_in(&*batches)).await
    }

    /// The details of a batch, without a batch of another service that the caller may not see.
    pub(super) fn details(
        &self,
        caller: &Caller,
        service_id: &ServiceId,
        batch_id: &HeaderId,
    ) -> Result<Option<BatchDetails>, ApiError> {
        let details = self.batches.details(service_id, batch_id).map_err(ApiError::read_failed)?;
        let visible = |ahead: Ahead| ahead.visible(|service_id| caller.may(service_id));
        Ok(details.map(|it| BatchDetails { ahead: it.ahead.map(visible), ..it }))
    }
}
