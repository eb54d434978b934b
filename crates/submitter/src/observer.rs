use grid_batch_core::ScopeId;
use grid_batch_core::ledger::SubmissionOutcome;

/// Observes submissions one at a time.
///
/// [`notify`](Self::notify) is for a person to read: it does not tell whether a batch may be sent again. What decides about
/// that implements [`submission_ended`](Self::submission_ended), or [`GroupObserver`](grid_batch_core::ledger::GroupObserver), which
/// can also report a failure.
pub trait SubmitterObserver: Sync + Send {
    /// The scope of the submissions.
    type Id: ScopeId;

    /// Handles an update. Without a status, the submission has started, or it failed with the error
    /// in `message`.
    fn notify(
        &self,
        batch_header: String,
        scope_id: Self::Id,
        status: Option<u16>,
        message: Option<String>,
    );

    /// Handles the end of a submission. By default, it calls [`notify`](Self::notify).
    ///
    /// The [class](grid_batch_core::ledger::Outcome::class) of the outcome tells whether the batch may be sent again. A
    /// [`RetryQueue`](crate::RetryQueue) sends again what may be.
    ///
    /// ```
    /// use grid_batch_core::{ScopeId, ledger::{OutcomeClass, SubmissionOutcome}};
    ///
    /// fn what_next<S: ScopeId>(outcome: &SubmissionOutcome<S>) -> &'static str {
    ///     match outcome.answer.outcome.class() {
    ///         OutcomeClass::Accepted => "follow it until it is committed",
    ///         OutcomeClass::NotSent => "send it again after a delay",
    ///         OutcomeClass::Refused => "send it again after something was corrected",
    ///         OutcomeClass::Rejected => "it is invalid",
    ///         OutcomeClass::Ambiguous => "never send it again before the ledger was asked for it",
    ///     }
    /// }
    /// ```
    fn submission_ended(&self, outcome: &SubmissionOutcome<Self::Id>) {
        let SubmissionOutcome { batch_header, scope_id, answer, .. } = outcome;
        let response = SubmissionResponse::of(outcome);
        let message = match &response {
            Some(response) => Some(response.message().to_owned()).filter(|text| !text.is_empty()),
            // An end without a message would look like the start of the submission.
            None => Some(answer.message.clone().unwrap_or_else(|| answer.outcome.to_string())),
        };
        let status = response.map(|response| response.status());
        self.notify(batch_header.clone(), scope_id.clone(), status, message);
    }
}

/// The answer to a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionResponse<S: ScopeId> {
    batch_header: String,
    scope_id: S,
    status: u16,
    message: String,
    attempts: u16,
}

impl<S: ScopeId> SubmissionResponse<S> {
    /// The ledger's answer of this HTTP status and body, after so many attempts.
    pub fn new(
        batch_header: String,
        scope_id: S,
        status: u16,
        message: String,
        attempts: u16,
    ) -> Self {
        Self { batch_header, scope_id, status, message, attempts }
    }

    /// The ledger's last HTTP response to a submission, if there was one.
    pub fn of(outcome: &SubmissionOutcome<S>) -> Option<Self> {
        let SubmissionOutcome { batch_header, scope_id, attempts, answer, .. } = outcome;
        let message = answer.message.clone().unwrap_or_default();
        Some(Self::new(batch_header.clone(), scope_id.clone(), answer.status?, message, *attempts))
    }

    /// The batch's id: its header's signature.
    pub fn batch_header(&self) -> &str {
        &self.batch_header
    }

    /// The scope of the batch.
    pub fn scope_id(&self) -> &S {
        &self.scope_id
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The body.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How many POSTs it took.
    pub fn attempts(&self) -> u16 {
        self.attempts
    }
}
