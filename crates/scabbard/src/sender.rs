use std::time::Duration;

use grid_batch_core::ledger::{Outcome, Submission, SubmissionAnswer};
use grid_batch_core::{ScopeId, ServiceId, ServiceScopeId};
use grid_batch_protocol::{HeaderId, HeaderIdError, list_of_one, transaction_ids};

use crate::{Scabbard, context::ScabbardContext, outcome::read_answer, unknown_services::DeniedBy};

/// Submits batches to Scabbard services, one batch per request.
impl Scabbard {
    pub(crate) async fn post(
        &self,
        url: &str,
        submission: &Submission<ServiceId>,
    ) -> SubmissionAnswer {
        self.try_post(url, submission).await.unwrap_or_else(|answer| answer)
    }

    /// Sends the batch. The error is the answer for a batch that is not sent.
    async fn try_post(
        &self,
        url: &str,
        submission: &Submission<ServiceId>,
    ) -> Result<SubmissionAnswer, SubmissionAnswer> {
        let answer = SubmissionAnswer::without_response;
        // Every node rejects a batch with an invalid id.
        let id: HeaderId = (submission.batch_header().parse())
            .map_err(|error: HeaderIdError| answer(Outcome::Rejected, error.to_string()))?;
        let scope = ServiceScopeId::from_service_id(submission.scope_id())
            .map_err(|error| answer(Outcome::Refused, error.to_string()))?;
        let batch = (scope.service_id().clone(), id.into());
        let attempt = submission.attempt_id().map(|attempt_id| attempt_id.attempt);
        // Until the POST begins, no node can have this attempt, even if this future is dropped.
        let _attempt = self.0.history.begin_attempt(&batch, attempt);
        let explain = |answer| self.0.explain_unknown_service(&scope, answer);
        self.0.check_not_sent_before(submission, &scope, &batch).await.map_err(explain)?;
        self.0.check_states(&scope).await?;
        let transactions = transaction_ids(submission.serialized_batch()).unwrap_or_default();
        self.0.foreign_transactions.sent(&batch.0, &transactions);
        let post = self.0.history.begin_post(&batch, attempt, self.0.moment(&batch.0));
        let list = list_of_one(submission.serialized_batch());
        let result = self.0.client.submit(url, &scope, list).await;
        if let Ok(response) = &result {
            let now = self.0.clock.monotonic();
            self.0.unknown_services.record(scope.service_id(), url, DeniedBy::Node, response, now);
        }
        let answer = read_answer(result);
        post.finish(answer.outcome);
        if answer.outcome == Outcome::Accepted {
            self.0.next_batches.accepted(&batch);
        }
        Ok(explain(answer))
    }
}

impl ScabbardContext {
    /// Returns the same answer, or one that says that the ledger does not have the service.
    fn explain_unknown_service(
        &self,
        scope: &ServiceScopeId,
        answer: SubmissionAnswer,
    ) -> SubmissionAnswer {
        if !matches!(answer.outcome, Outcome::Refused | Outcome::NotSent) {
            return answer;
        }
        let Some(reason) = self.unknown_service(scope) else { return answer };
        SubmissionAnswer {
            outcome: Outcome::Refused,
            status: Some(404),
            message: Some(reason),
            retry_after: answer.retry_after,
        }
    }
}

/// The answer for a batch that was not sent and is tried again after this time.
pub(crate) fn try_again(after: Duration, message: &str) -> SubmissionAnswer {
    let answer = SubmissionAnswer::without_response(Outcome::Busy, message.to_owned());
    SubmissionAnswer { retry_after: Some(after), ..answer }
}
