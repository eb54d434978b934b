use std::{fmt, sync::Arc};

use grid_batch_core::{
    Outcome, ScopeId, Submission, SubmissionAnswer, SubmissionOutcome, SubmissionSender,
    UrlResolver,
};
use log::error;

use crate::{
    SubmitterCounters,
    panics::{catch, catch_future},
    redact::without_userinfo,
    resolver::{NO_ADDRESS, UrlHealth},
};

/// What all commands of a submitter share.
pub(crate) struct CommandFactory<S: ScopeId> {
    pub(crate) url_resolver: Arc<dyn UrlResolver<Id = S>>,
    pub(crate) url_health: Option<Arc<dyn UrlHealth>>,
    pub(crate) sender: Arc<dyn SubmissionSender<Id = S>>,
    pub(crate) counters: SubmitterCounters,
}

impl<S: ScopeId> CommandFactory<S> {
    pub(crate) fn command(self: &Arc<Self>, submission: Submission<S>) -> SubmissionCommand<S> {
        SubmissionCommand { shared: Arc::clone(self), submission, attempts: 0 }
    }
}

impl<S: ScopeId> fmt::Debug for CommandFactory<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandFactory").field("url_resolver", &self.url_resolver).finish()
    }
}

/// Sends one batch, as often as it is executed, and counts.
pub(crate) struct SubmissionCommand<S: ScopeId> {
    shared: Arc<CommandFactory<S>>,
    submission: Submission<S>,
    attempts: u16,
}

impl<S: ScopeId> SubmissionCommand<S> {
    /// Sends the batch once to where the resolver says. If `cut` ends first, the sending is cut off
    /// for the reason that it gives.
    pub(crate) async fn execute(
        &mut self,
        cut: impl Future<Output = &'static str>,
    ) -> SubmissionAnswer {
        self.attempts = self.attempts.saturating_add(1);
        let url = match self.url() {
            Ok(url) => url,
            Err(answer) => return answer,
        };
        if self.is_sent_again() {
            self.shared.counters.count_sent_again();
        }
        let answer = tokio::select! {
            biased;
            answer = self.send(&url) => answer,
            reason = cut => error_answer(Outcome::Ambiguous, reason),
        };
        self.report(&url, answer.outcome);
        answer
    }

    /// The outcome of the whole submission, of which this was the last answer.
    pub(crate) fn into_outcome(self, answer: SubmissionAnswer) -> SubmissionOutcome<S> {
        let attempt_id = self.submission.attempt_id();
        let (batch_header, scope_id, _) = self.submission.into_parts();
        SubmissionOutcome { batch_header, scope_id, attempt_id, attempts: self.attempts, answer }
    }

    fn url(&self) -> Result<String, SubmissionAnswer> {
        let url = catch(|| self.shared.url_resolver.url(self.submission.scope_id()));
        let url = url.map_err(|panic| {
            self.note_panic("the URL resolver", &panic);
            error_answer(Outcome::NotSent, format!("the URL resolver panicked: {panic}"))
        })?;
        match url.strip_prefix(NO_ADDRESS) {
            Some(reason) => Err(error_answer(Outcome::Refused, reason.trim_start())),
            None => Ok(url),
        }
    }

    fn is_sent_again(&self) -> bool {
        self.attempts > 1
            || self.submission.attempt_id().is_some_and(|attempt_id| attempt_id.attempt > 1)
    }

    async fn send(&self, url: &str) -> SubmissionAnswer {
        let sent = match catch(|| self.shared.sender.send(url, &self.submission)) {
            Ok(sending) => catch_future(sending).await,
            Err(panic) => Err(panic),
        };
        let mut answer = sent.unwrap_or_else(|panic| {
            self.note_panic("the sender", &panic);
            error_answer(Outcome::Ambiguous, format!("the sender panicked: {panic}"))
        });
        answer.message = answer.message.map(|text| without_userinfo(&text).into_owned());
        answer
    }

    fn report(&self, url: &str, outcome: Outcome) {
        let Some(health) = &self.shared.url_health else { return };
        if let Err(panic) = catch(|| health.report(self.submission.batch_header(), url, outcome)) {
            self.note_panic("the keeper of the nodes' health", &panic);
        }
    }

    fn note_panic(&self, who: &str, panic: &str) {
        self.shared.counters.count_panic();
        error!(batch = self.submission.batch_header(), error = panic; "{who} panicked");
    }
}

/// An answer that no ledger gave.
pub(crate) fn error_answer(outcome: Outcome, message: impl Into<String>) -> SubmissionAnswer {
    SubmissionAnswer { outcome, status: None, message: Some(message.into()), retry_after: None }
}
