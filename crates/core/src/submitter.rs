use std::fmt;

use crate::{InternalError, ScopeId};

/// Says where a batch is to be sent; asked at each attempt.
pub trait UrlResolver: fmt::Debug + Sync + Send {
    /// The scope of the batches.
    type Id: ScopeId;

    /// The address for batches of this scope.
    fn url(&self, scope_id: &Self::Id) -> String;
}

/// Is told what becomes of submissions, one at a time.
///
/// See [`GroupObserver`](crate::GroupObserver) for groups.
pub trait SubmitterObserver: Sync + Send {
    /// The scope of the submissions.
    type Id: ScopeId;

    /// Takes note of an update. Without a status, the submission has begun, or `message` is the
    /// error that ended it.
    fn notify(
        &self,
        batch_header: String,
        scope_id: Self::Id,
        status: Option<u16>,
        message: Option<String>,
    );
}

/// A submitter that is configured and not running.
pub trait RunnableSubmitter<S: ScopeId> {
    /// What it becomes.
    type RunningSubmitter: RunningSubmitter<S>;

    /// Starts it.
    fn run(self) -> Result<Self::RunningSubmitter, InternalError>;
}

/// A submitter at work: the handle to stop it by.
pub trait RunningSubmitter<S: ScopeId>: ShutdownHandle {
    /// What it becomes.
    type RunnableSubmitter: RunnableSubmitter<S>;

    /// Stops it, when what is under way has finished, and gives back what can be started again.
    fn stop(self) -> Result<Self::RunnableSubmitter, InternalError>;
}

/// Ends something that runs, in two steps, so that several can wind down at the same time.
pub trait ShutdownHandle {
    /// Tells it to begin to end.
    fn signal_shutdown(&mut self) -> Result<(), InternalError>;

    /// Waits until it has ended.
    fn wait_for_shutdown(self) -> Result<(), InternalError>;
}
