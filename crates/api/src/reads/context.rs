use std::sync::Arc;

use grid_batch_core::batches::{BatchFormat, StoredBatch};
use grid_batch_core::events::EventStore;
use grid_batch_core::operators::OperatorStore;
use grid_batch_core::queries::{BatchDetails, BatchQueryStore, SearchLimits};
use grid_batch_core::queue::Ahead;
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_withdrawals::WithdrawalStore;

use super::{CountsSource, HistorySource, LedgerSource, PauseSource, access::Served};
use crate::{
    GasAdminReport,
    access::Caller,
    batches::{KnownWaits, NamedBatch},
    gas_admins::GasAdminSource,
    http::ApiError,
    state::ApiState,
};

/// Facts that are available if the builder has their source.
#[derive(Clone, Default)]
pub(crate) struct ReadSources {
    /// `None`: no service is ever paused.
    pub(crate) pauses: Option<Arc<PauseSource>>,
    pub(crate) ledgers: Option<Arc<LedgerSource>>,
    pub(crate) history: Option<Arc<HistorySource>>,
    pub(crate) counts: Option<Arc<CountsSource>>,
    pub(crate) known_waits: KnownWaits,
    pub(crate) search: Option<SearchLimits>,
}

/// What the handlers below `/v1` need.
pub(crate) struct ReadContext {
    pub(crate) api: Arc<ApiState>,
    pub(crate) batches: Arc<dyn BatchQueryStore>,
    pub(crate) gas_admins: Option<Arc<GasAdminSource>>,
    /// `None`: the history of a batch is what its rows tell.
    pub(crate) events: Option<Arc<dyn EventStore>>,
    /// `None`: nothing is known of what operators did.
    pub(crate) operators: Option<Arc<dyn OperatorStore>>,
    /// `None`: no batch belongs to a withdrawal or transaction.
    pub(crate) withdrawals: Option<Arc<dyn WithdrawalStore>>,
    /// `None`: the bytes of batches are opaque.
    pub(crate) format: Option<Arc<dyn BatchFormat>>,
    pub(crate) serves: Served,
    pub(crate) sources: ReadSources,
}

impl ReadContext {
    /// The one batch that is named and that the caller may see.
    pub(super) async fn find(&self, named: &NamedBatch) -> Result<StoredBatch, ApiError> {
        let (batches, mut named) = (Arc::clone(&self.batches), named.clone());
        if let Some(service_id) = named.service_id {
            named.service_id = Some(self.resolve(service_id).await?);
        }
        self.api.reads.run(move || named.find_in(&*batches)).await
    }

    /// The service with this id; also that of the gas admin with this name or address.
    pub(super) async fn resolve(&self, service_id: ServiceId) -> Result<ServiceId, ApiError> {
        // The id of a gas admin's service has colons; names and addresses have none.
        let Some(source) = self.gas_admins.clone().filter(|_| !service_id.as_str().contains(':'))
        else {
            return Ok(service_id);
        };
        let reports = self.api.read(move || source()).await?;
        let is_named = |report: &GasAdminReport| {
            report.name == service_id.as_str()
                || report.address.eq_ignore_ascii_case(service_id.as_str())
        };
        match reports.iter().find(|report| is_named(report)) {
            Some(report) => Ok(report.gas_admin.parse()?),
            None => Ok(service_id),
        }
    }

    /// The details of a batch, without a batch of another service that the caller may not see.
    pub(super) fn details(
        &self,
        caller: &Caller,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> Result<Option<BatchDetails>, ApiError> {
        let details = self.batches.details(service_id, batch_id).map_err(ApiError::read_failed)?;
        let Some(mut details) = details else { return Ok(None) };
        let visible = |ahead: Ahead| ahead.visible(|service_id| caller.may(service_id));
        let ahead = details.ahead.take().map(visible);
        details.ahead =
            KnownWaits::ahead(&self.sources.known_waits.of(service_id), &details.batch, ahead);
        Ok(Some(details))
    }
}
