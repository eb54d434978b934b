mod again;
mod answer;
mod broadcast;
mod course;
mod first;
mod gap;
mod gates;
mod parked;
mod stored;
mod task;

use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{Submission, SubmissionAnswer, SubmissionSender};

use crate::{
    AccountScopeId,
    sender::{
        course::{Course, course_of},
        parked::Parked,
        task::Task,
    },
    shared::Shared,
};

/// Sends withdrawals to pools: signs, stores what it signed, and only then sends it.
pub struct EvmSender {
    shared: Arc<Shared>,
    parked: Parked,
}

impl EvmSender {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, parked: Parked::default() }
    }

    async fn post(
        &self,
        url: &str,
        submission: &Submission<AccountScopeId>,
    ) -> Result<SubmissionAnswer, SubmissionAnswer> {
        let task = Task::of(&self.shared, url, submission).await?;
        let course = course_of(&task.payment);
        if let Course::Ended(answer) = course {
            return Ok(answer);
        }
        task.check_chain(submission.scope_id()).await?;
        match course {
            Course::Again(open) => task.again(open).await,
            _ => task.first().await,
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
            let answer = self.post(url, submission).await.unwrap_or_else(|answer| answer);
            self.parked.note(submission.scope_id(), &answer);
            answer
        })
    }
}

impl fmt::Debug for EvmSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvmSender").finish_non_exhaustive()
    }
}
