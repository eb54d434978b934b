use std::sync::Arc;

use futures_core::future::BoxFuture;

use crate::{
    BatchStatusReader, Ledger, LedgerPosition, ServiceId, StatusReport, Submission,
    SubmissionAnswer, SubmissionSender, monitor::BatchResult,
};

/// A ledger as the sender of a submitter and the status reader of a poller.
#[derive(Clone)]
pub struct LedgerParts(pub Arc<dyn Ledger>);

impl SubmissionSender for LedgerParts {
    type Id = ServiceId;

    fn send<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        self.0.send(url, submission)
    }

    fn check_node<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, Result<(), String>> {
        self.0.check_node(url, submission)
    }

    fn position<'a>(&'a self, url: &'a str) -> BoxFuture<'a, BatchResult<LedgerPosition>> {
        self.0.position(url)
    }
}

impl BatchStatusReader for LedgerParts {
    type Status = StatusReport;

    fn get_batch_statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        Box::pin(async move {
            self.0.check_asked_service(service_id)?;
            self.0.statuses(service_id, batch_ids).await
        })
    }

    fn available_connections(&self) -> usize {
        self.0.connections()
    }
}
