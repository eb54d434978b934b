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
