//! Asking a node for statuses.

use grid_batch_core::{BatchError, BatchResult, LedgerStatus, ScopeId, ServiceScopeId};
use grid_batch_http::HttpResponse;

use crate::{
    answer::{Told, read_statuses},
    shared::{Shared, located},
    words::words_of,
};

impl Shared {
    /// What this node says of these batches. What it says is applied is remembered.
    ///
    /// [`BatchError::Unavailable`] is what another node may know better.
    pub(crate) async fn ask(
        &self,
        node: &str,
        scope: &ServiceScopeId,
        ids: &[&str],
    ) -> BatchResult<Vec<Told>> {
        let told = match self.caller.ask(node, scope, ids).await {
            Ok(answer) => read_answer(&answer, ids),
            Err(error) => Err(error.into()),
        };
        let told = told.map_err(|error| located(node, error))?;
        for told in told.iter().filter(|told| told.report.status == LedgerStatus::Committed) {
            told.applied.iter().for_each(|id| self.seen.add(scope.service_id(), *id));
        }
        Ok(told)
    }
}

fn read_answer(answer: &HttpResponse, ids: &[&str]) -> BatchResult<Vec<Told>> {
    let status = answer.status;
    match (status, &answer.body) {
        (200, Ok(body)) => read_statuses(body, ids),
        (200, Err(error)) => Err(error.clone().into()),
        (404 | 408 | 429 | 500..=599, _) => {
            Err(BatchError::Unavailable(format!("{status}: {}", words_of(answer))))
        }
        _ => Err(BatchError::InternalError(format!(
            "the configuration is wrong, {status}: {}",
            words_of(answer)
        ))),
    }
}
