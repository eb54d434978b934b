use std::sync::Arc;

use futures_core::future::BoxFuture;
use grid_batch_core::batches::LedgerPosition;
use grid_batch_core::ledger::{Ledger, Submission, SubmissionAnswer};
use grid_batch_core::{BatchResult, ScopeId, ServiceId};
use grid_batch_support::in_trace;

/// Sends a batch to a ledger once: an adapter's part of a submission.
///
/// It reads the ledger's response as an [`Outcome`](grid_batch_core::ledger::Outcome) and never sends twice. It has a timeout of its
/// own, shorter than the submitter's; if the batch may have arrived by then, the outcome is
/// [`Outcome::Ambiguous`](grid_batch_core::ledger::Outcome::Ambiguous). It must not block the thread that polls it.
pub trait SubmissionSender: Send + Sync {
    /// The scope of the batches.
    type Id: ScopeId;

    /// Sends the batch to the ledger at this URL.
    fn send<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<Self::Id>,
    ) -> BoxFuture<'a, SubmissionAnswer>;

    /// Sends batches of one service in one request, as in [`Ledger::send_list`].
    fn send_list<'a>(
        &'a self,
        url: &'a str,
        list: &'a [Submission<Self::Id>],
    ) -> BoxFuture<'a, Vec<SubmissionAnswer>> {
        Box::pin(async move {
            match list.first() {
                Some(first) => vec![self.send(url, first).await],
                None => Vec::new(),
            }
        })
    }

    /// Whether the batch may be sent to the node at this URL now, as in
    /// [`Ledger::check_node`].
    fn check_node<'a>(
        &'a self,
        _url: &'a str,
        _submission: &'a Submission<Self::Id>,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    /// Where the ledger is now, as the node at this URL says. It is asked before a batch with a deadline is sent.
    fn position<'a>(&'a self, _url: &'a str) -> BoxFuture<'a, BatchResult<LedgerPosition>> {
        Box::pin(async { Ok(LedgerPosition::default()) })
    }
}

/// A ledger as the sender of a submitter. Its requests about one batch carry the trace of the batch.
#[derive(Clone)]
pub struct LedgerSender(pub Arc<dyn Ledger>);

impl SubmissionSender for LedgerSender {
    type Id = ServiceId;

    fn send<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        traced(submission, self.0.send(url, submission))
    }

    fn send_list<'a>(
        &'a self,
        url: &'a str,
        list: &'a [Submission<ServiceId>],
    ) -> BoxFuture<'a, Vec<SubmissionAnswer>> {
        self.0.send_list(url, list)
    }

    fn check_node<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, Result<(), String>> {
        traced(submission, self.0.check_node(url, submission))
    }

    fn position<'a>(&'a self, url: &'a str) -> BoxFuture<'a, BatchResult<LedgerPosition>> {
        self.0.position(url)
    }
}

fn traced<'a, T: 'a>(
    submission: &'a Submission<ServiceId>,
    work: BoxFuture<'a, T>,
) -> BoxFuture<'a, T> {
    match submission.trace() {
        None => work,
        trace => Box::pin(in_trace(trace, work)),
    }
}
