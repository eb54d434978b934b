use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{
    HeaderId, Outcome, ScopeId, ServiceScopeId, Submission, SubmissionAnswer, SubmissionSender,
};
use grid_batch_http::{HttpError, HttpResponse};
use grid_batch_protocol::list_of_one;

use crate::{
    outcome::{Rule, rule_of},
    shared::Shared,
    words::words_of,
};

/// Sends batches to Scabbard services, one a request.
pub struct ScabbardSender(pub(crate) Arc<Shared>);

impl SubmissionSender for ScabbardSender {
    type Id = ServiceScopeId;

    fn send<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<ServiceScopeId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        Box::pin(self.post(url, submission))
    }
}

impl ScabbardSender {
    async fn post(&self, url: &str, submission: &Submission<ServiceScopeId>) -> SubmissionAnswer {
        let id: HeaderId = match submission.batch_header().parse() {
            Ok(id) => id,
            // Every node refuses such a batch.
            Err(error) => return without_answer(Outcome::Rejected, error.to_string()),
        };
        let Shared { caller, watch, batches, .. } = &*self.0;
        let scope = submission.scope_id();
        let service = scope.service_id();
        let attempt = submission.attempt_id().map(|attempt_id| attempt_id.attempt);
        let live = watch.live(service);
        let posting = batches.begin_post(&(service.clone(), id), attempt, live);
        let list = list_of_one(submission.serialized_batch());
        let answer = caller.submit(url, scope, list).await;
        let rule = rule_of(&answer);
        posting.end(rule.outcome);
        submission_answer(rule, answer)
    }
}

fn submission_answer(rule: &Rule, answer: Result<HttpResponse, HttpError>) -> SubmissionAnswer {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return without_answer(rule.outcome, error.to_string()),
    };
    let words = words_of(&answer);
    SubmissionAnswer {
        outcome: rule.outcome,
        status: Some(answer.status),
        message: Some(if words.is_empty() { rule.why.to_owned() } else { words }),
        retry_after: answer.retry_after,
    }
}

fn without_answer(outcome: Outcome, message: String) -> SubmissionAnswer {
    SubmissionAnswer { outcome, status: None, message: Some(message), retry_after: None }
}

impl fmt::Debug for ScabbardSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScabbardSender").finish_non_exhaustive()
    }
}
