//! Status requests to one node.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::{BatchError, BatchResult, ScopeId, ServiceId, ServiceScopeId};
use grid_batch_http::{HttpResponse, origin};

use crate::{
    context::{ScabbardContext, parse_batch_id},
    message::response_message,
    status_response::{BatchReport, parse_statuses},
    unknown_services::DeniedBy,
};

impl ScabbardContext {
    /// Requests the statuses of these batches from one node, and remembers those that it reports as
    /// committed.
    ///
    /// After some errors the caller [may ask another node](may_ask_another).
    pub(crate) async fn query_statuses(
        &self,
        node: &str,
        scope: &ServiceScopeId,
        ids: &[&str],
    ) -> BatchResult<Vec<BatchReport>> {
        self.query_statuses_of_service(node, scope, scope.service_id(), ids).await
    }

    /// The same for a node at which the `service` of the batches has this scope.
    pub(crate) async fn query_statuses_of_service(
        &self,
        node: &str,
        scope: &ServiceScopeId,
        service: &ServiceId,
        ids: &[&str],
    ) -> BatchResult<Vec<BatchReport>> {
        let reports = match self.client.get_statuses(node, scope, ids).await {
            Ok(response) => {
                let now = self.clock.monotonic();
                let by =
                    if scope.service_id() == service { DeniedBy::Node } else { DeniedBy::Peer };
                self.unknown_services.record(scope.service_id(), node, by, &response, now);
                parse_response(response, ids)
            }
            Err(error) => Err(error.into()),
        };
        let reports = reports.map_err(|error| error.at(&origin(node)))?;
        for batch in &reports {
            if batch.report.status == LedgerStatus::Committed {
                self.remember_committed(service, batch)?;
            }
        }
        Ok(reports)
    }

    fn remember_committed(&self, service: &ServiceId, batch: &BatchReport) -> BatchResult<()> {
        let batch_id = parse_batch_id(&batch.report.batch_id)?;
        self.history.mark_committed(&(service.clone(), batch_id));
        self.applied.add_committed(service, &batch.applied);
        Ok(())
    }
}

/// The prefix of the error of a node that does not have the service.
const NOT_FOUND: &str = "HTTP status 404";

/// Whether another node may answer, because this one cannot answer now or does not have the service.
pub(crate) fn may_ask_another(error: &BatchError) -> bool {
    match error {
        BatchError::Unavailable(_) => true,
        BatchError::InvalidAnswer(text) => text.contains(NOT_FOUND),
        _ => false,
    }
}

pub(crate) fn parse_response(
    response: HttpResponse,
    ids: &[&str],
) -> BatchResult<Vec<BatchReport>> {
    let status = response.status;
    let body = response.successful_body(response_message).map_err(|error| match error {
        BatchError::InvalidAnswer(text) if !matches!(status, 200 | 404) => {
            BatchError::InternalError(format!("{text}; check the configuration of the ledger"))
        }
        error => error,
    });
    parse_statuses(&body?, ids)
}
