use grid_batch_core::ledger::{Outcome, Submission, SubmissionAnswer};
use grid_batch_core::{ScopeId, ServiceId};

use super::{
    answer::{self, SendResult},
    attempt::SendAttempt,
    plan::SendPlan,
};
use crate::{Evm, scope::AccountScopeId};

/// Sends withdrawals to pools: signs a transaction, stores it, and only then sends it.
impl Evm {
    pub(crate) async fn send_withdrawal(
        &self,
        url: &str,
        submission: &Submission<ServiceId>,
    ) -> SubmissionAnswer {
        let scope = match AccountScopeId::from_service_id(submission.scope_id()) {
            Ok(scope) => scope,
            Err(error) => return answer::refused(error),
        };
        let answer = self.attempt(url, &scope, submission).await.unwrap_or_else(|answer| answer);
        if answer.outcome == Outcome::Accepted {
            self.context.wake_up.sent(scope.service_id());
        }
        answer
    }

    async fn attempt(
        &self,
        url: &str,
        scope: &AccountScopeId,
        submission: &Submission<ServiceId>,
    ) -> SendResult<SubmissionAnswer> {
        let mut attempt = SendAttempt::load(&self.context, url, scope, submission).await?;
        let answer = attempt.run().await.unwrap_or_else(|answer| answer);
        self.context.parked_log.record(scope, &attempt.payment.pool, &answer);
        Ok(answer)
    }
}

impl SendAttempt<'_> {
    async fn run(&mut self) -> SendResult<SubmissionAnswer> {
        if let SendPlan::Finished(answer) = SendPlan::for_payment(&self.payment) {
            return Ok(answer);
        }
        self.check_chain().await?;
        if let SendPlan::Resend(assigned) = SendPlan::for_payment(&self.payment)
            && let Some(answer) = self.resend(assigned).await?
        {
            return Ok(answer);
        }
        // A transaction that is not stored may have paid the withdrawal.
        let count = self.settle_nonces().await?;
        self.reload().await?;
        match SendPlan::for_payment(&self.payment) {
            SendPlan::Finished(answer) => Ok(answer),
            SendPlan::Cancel => Err(self.cancelled()),
            SendPlan::AssignNonce => self.send_with_new_nonce(count).await,
            SendPlan::Resend(assigned) => {
                let answer = self.resend(assigned).await?;
                answer.ok_or_else(|| self.parked("its nonce was settled a moment ago"))
            }
        }
    }
}
