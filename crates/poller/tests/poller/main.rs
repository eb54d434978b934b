//! Tests of running monitors through their public interface.
#![expect(clippy::unwrap_used, reason = "tests unwrap what must succeed")]

/// The methods of a ledger that a test does not use.
macro_rules! unused_methods {
    () => {
        fn facts(&self) -> grid_batch_core::LedgerFacts {
            unreachable!("the test does not use it")
        }

        fn identity<'a>(
            &'a self,
            _: &'a str,
        ) -> futures_util::future::BoxFuture<'a, grid_batch_core::BatchResult<String>> {
            unreachable!("the test does not use it")
        }

        fn send<'a>(
            &'a self,
            _: &'a str,
            _: &'a grid_batch_core::Submission<grid_batch_core::ServiceId>,
        ) -> futures_util::future::BoxFuture<'a, grid_batch_core::SubmissionAnswer> {
            unreachable!("the test does not use it")
        }

        fn statuses<'a>(
            &'a self,
            _: &'a str,
            _: &'a [String],
        ) -> futures_util::future::BoxFuture<
            'a,
            grid_batch_core::BatchResult<Vec<grid_batch_core::StatusReport>>,
        > {
            unreachable!("the test does not use it")
        }

        fn find_evidence<'a>(
            &'a self,
            _: &'a grid_batch_core::UnresolvedBatch,
        ) -> futures_util::future::BoxFuture<
            'a,
            grid_batch_core::BatchResult<grid_batch_core::EvidenceReport>,
        > {
            unreachable!("the test does not use it")
        }
    };
}

mod answering;
mod ask_ahead;
mod earlier_attempts;
mod events;
mod evidence;
mod fair_nodes;
mod faults;
mod missing_transactions;
mod options;
mod pacing;
mod polling;
mod stalled;
mod stopping;
mod support;
mod triggering;
mod unusable_answers;
