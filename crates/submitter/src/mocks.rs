//! `mockall` mocks of the traits, for tests of the layers above.
#![expect(missing_docs, reason = "each mock and its methods are described by the trait it mocks")]

use futures_core::future::BoxFuture;
use grid_batch_core::batches::LedgerPosition;
use grid_batch_core::ledger::{Submission, SubmissionAnswer};
use grid_batch_core::{BatchResult, InternalError, ScopeId};
use mockall::mock;

use crate::{
    RunnableSubmitter, RunningSubmitter, ShutdownHandle, SubmissionSender, SubmitterObserver,
};

pub use grid_batch_nodes::mocks::MockUrlResolver;

// `mockall` cannot set expectations on methods whose result borrows from their arguments. This mock has a method of
// the same name with a `'static` result, and the trait's method calls it.
mock! {
    pub SubmissionSender<S: ScopeId> {
        pub fn send(&self, url: &str, submission: &Submission<S>)
            -> BoxFuture<'static, SubmissionAnswer>;
        pub fn position(&self, url: &str) -> BoxFuture<'static, BatchResult<LedgerPosition>>;
    }
}

impl<S: ScopeId> SubmissionSender for MockSubmissionSender<S> {
    type Id = S;

    fn send<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<S>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        Self::send(self, url, submission)
    }

    fn position<'a>(&'a self, url: &'a str) -> BoxFuture<'a, BatchResult<LedgerPosition>> {
        Self::position(self, url)
    }
}

// `automock` takes one type for an associated type, and mocks no supertraits.
mock! {
    pub SubmitterObserver<S: ScopeId> {}
    impl<S: ScopeId> SubmitterObserver for SubmitterObserver<S> {
        type Id = S;
        fn notify(
            &self,
            batch_header: String,
            scope_id: S,
            status: Option<u16>,
            message: Option<String>,
        );
    }
}

mock! {
    pub RunnableSubmitter<S: ScopeId> {}
    impl<S: ScopeId> RunnableSubmitter<S> for RunnableSubmitter<S> {
        type RunningSubmitter = MockRunningSubmitter<S>;
        fn run(self) -> Result<MockRunningSubmitter<S>, InternalError>;
    }
}

mock! {
    pub RunningSubmitter<S: ScopeId> {}
    impl<S: ScopeId> ShutdownHandle for RunningSubmitter<S> {
        fn signal_shutdown(&mut self) -> Result<(), InternalError>;
        fn wait_for_shutdown(self) -> Result<(), InternalError>;
    }
    impl<S: ScopeId> RunningSubmitter<S> for RunningSubmitter<S> {
        type RunnableSubmitter = MockRunnableSubmitter<S>;
        fn stop(self) -> Result<MockRunnableSubmitter<S>, InternalError>;
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::GlobalScopeId;

    use super::*;

    #[test]
    fn mocked_submitter_runs_and_stops() {
        let mut runnable = MockRunnableSubmitter::<GlobalScopeId>::new();
        runnable.expect_run().return_once(|| {
            let mut running = MockRunningSubmitter::new();
            running.expect_stop().return_once(|| Ok(MockRunnableSubmitter::new()));
            Ok(running)
        });
        assert!(runnable.run().unwrap().stop().is_ok());
    }
}
