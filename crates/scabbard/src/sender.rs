use std::time::Duration;

use grid_batch_core::{
    ItemId, Outcome, ScopeId, ServiceId, ServiceScopeId, Submission, SubmissionAnswer,
};
use grid_batch_protocol::{list_of_one, transaction_ids};

use crate::{Scabbard, context::ScabbardContext, outcome::read_answer, unknown_services::DeniedBy};

/// Submits batches to Scabbard services, one batch per request.
impl Scabbard {
    pub(crate) async fn post(
        &self,
        url: &str,
        submission: &Submission<ServiceId>,
    ) -> SubmissionAnswer {
        let id: ItemId = match submission.batch_header().parse::<grid_batch_protocol::HeaderId>() {
            Ok(id) => id.into(),
            // Every node rejects such a batch.
            Err(error) => {
                return SubmissionAnswer::without_response(Outcome::Rejected, error.to_string());
            }
        };
        let scope = match ServiceScopeId::from_service_id(submission.scope_id()) {
            Ok(scope) => scope,
            Err(error) => {
                return SubmissionAnswer::without_response(Outcome::Refused, error.to_string());
            }
        };
        let batch = (scope.service_id().clone(), id);
        let checked = self.0.check_not_sent_before(submission, &scope, &batch).await;
        if let Err(answer) = checked {
            return self.0.explain_unknown_service(&scope, answer);
        }
        if let Some(answer) = self.0.refuse_while_states_differ(&scope).await {
            return answer;
        }
        let transactions = transaction_ids(submission.serialized_batch()).unwrap_or_default();
        self.0.foreign_transactions.sent(&batch.0, &transactions);
        let attempt = submission.attempt_id().map(|attempt_id| attempt_id.attempt);
        let post = self.0.history.begin_post(&batch, attempt, self.0.moment(&batch.0));
        let list = list_of_one(submission.serialized_batch());
        let result = self.0.client.submit(url, &scope, list).await;
        if let Ok(response) = &result {
            let now = self.0.clock.monotonic();
            let node = (url, DeniedBy::Node);
            self.0.unknown_services.record(scope.service_id(), node, response, now);
        }
        let answer = read_answer(result);
        post.finish(answer.outcome);
        self.0.explain_unknown_service(&scope, answer)
    }
}

impl ScabbardContext {
    /// The same answer, or that the ledger does not have the service.
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

/// The answer for a batch that was not sent, and is tried again after this time.
pub(crate) fn try_again(after: Duration, message: &str) -> SubmissionAnswer {
    let answer = SubmissionAnswer::without_response(Outcome::Busy, message.to_owned());
    SubmissionAnswer { retry_after: Some(after), ..answer }
}
