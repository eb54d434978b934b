use grid_batch_core::ScopeId;

/// Observes submissions one at a time.
///
/// See [`GroupObserver`](grid_batch_core::GroupObserver) for groups.
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
