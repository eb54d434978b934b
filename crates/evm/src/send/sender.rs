use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{Outcome, ScopeId, Submission, SubmissionAnswer, SubmissionSender};

use super::{answer::Step, attempt::SendAttempt, parked_log::ParkedLog, plan::SendPlan};
use crate::{context::EvmContext, scope::AccountScopeId};

/// Sends withdrawals to pools: it signs a transaction, stores it, and only then sends it.
pub struct EvmSender {
    context: Arc<EvmContext>,
    parked_log: ParkedLog,
}

impl EvmSender {
    pub(crate) fn new(context: Arc<EvmContext>) -> Self {
        Self { context, parked_log: ParkedLog::default() }
    }

    async fn attempt(
        &self,
        url: &str,
        submission: &Submission<AccountScopeId>,
    ) -> Step<SubmissionAnswer> {
        let attempt = SendAttempt::load(&self.context, url, submission).await?;
        let answer = self.advance(&attempt, url, submission).await;
        let answer = answer.unwrap_or_else(|answer| answer);
        self.parked_log.record(submission.scope_id(), &attempt.payment.pool, &answer);
        Ok(answer)
    }

    async fn advance(
        &self,
        attempt: &SendAttempt<'_>,
        url: &str,
        submission: &Submission<AccountScopeId>,
    ) -> Step<SubmissionAnswer> {
        if let SendPlan::Finished(answer) = SendPlan::for_payment(&attempt.payment) {
            return Ok(answer);
        }
        attempt.check_chain(submission.scope_id()).await?;
        if let SendPlan::Resend(assigned) = SendPlan::for_payment(&attempt.payment)
            && let Some(answer) = attempt.resend(assigned).await?
        {
            return Ok(answer);
        }
        // A transaction that is not stored may have paid the withdrawal.
        let count = attempt.settle_nonces(submission.scope_id()).await?;
        let attempt = SendAttempt::load(&self.context, url, submission).await?;
        match SendPlan::for_payment(&attempt.payment) {
            SendPlan::Finished(answer) => Ok(answer),
            SendPlan::Cancel => Err(attempt.cancelled()),
            SendPlan::AssignNonce => attempt.send_with_new_nonce(count).await,
            SendPlan::Resend(assigned) => {
                let answer = attempt.resend(assigned).await?;
                answer.ok_or_else(|| attempt.parked("its nonce was settled a moment ago"))
            }
        }
    }
}

impl SubmissionSender for EvmSender {
    type Id = AccountScopeId;

    fn send<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<AccountScopeId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        Box::pin(async move {
            let answer = self.attempt(url, submission).await.unwrap_or_else(|answer| answer);
            if answer.outcome == Outcome::Accepted {
                self.context.hints.sent(submission.scope_id().service_id());
            }
            answer
        })
    }
}

impl fmt::Debug for EvmSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvmSender").finish_non_exhaustive()
    }
}
