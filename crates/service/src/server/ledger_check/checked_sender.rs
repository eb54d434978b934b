use std::sync::Arc;

use futures_core::future::BoxFuture;
use grid_batch_core::{
    BatchError, BatchResult, LedgerPresent, Outcome, ScopeId, Submission, SubmissionAnswer,
    SubmissionSender,
};

use super::LedgerCheck;

/// Sends batches only to nodes that have confirmed their ledger within the last seconds.
pub(in crate::server) struct CheckedSender<S: ScopeId> {
    sender: Arc<dyn SubmissionSender<Id = S>>,
    check: LedgerCheck,
}

impl<S: ScopeId> CheckedSender<S> {
    pub(in crate::server) fn new(
        sender: Arc<dyn SubmissionSender<Id = S>>,
        check: LedgerCheck,
    ) -> Self {
        Self { sender, check }
    }
}

impl<S: ScopeId> SubmissionSender for CheckedSender<S> {
    type Id = S;

    fn send<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<S>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        Box::pin(async move {
            if let Err(reason) = self.check.confirm_now(url).await {
                return not_sent(reason);
            }
            self.check.expect_of(submission.scope_id().service_id().as_str());
            let answer = self.sender.send(url, submission).await;
            let has_failed = answer.status.is_none()
                && matches!(answer.outcome, Outcome::NotSent | Outcome::Ambiguous);
            if has_failed {
                self.check.connection_failed(url);
            }
            answer
        })
    }

    fn present<'a>(&'a self, url: &'a str) -> BoxFuture<'a, BatchResult<LedgerPresent>> {
        Box::pin(async move {
            self.check.confirm_now(url).await.map_err(BatchError::Unavailable)?;
            self.sender.present(url).await
        })
    }
}

fn not_sent(reason: String) -> SubmissionAnswer {
    SubmissionAnswer {
        outcome: Outcome::NotSent,
        status: None,
        message: Some(reason),
        retry_after: None,
    }
}
