use std::io;

use grid_batch_core::Timestamp;

use crate::{
    answer::{Answer, Reply},
    ask::Ask,
    common::Common,
};

/// What a request wants, as far as faults are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    Submission,
    Statuses,
    Other,
}

/// One kind of ledger: its state and its words.
///
/// Time passes only in [`advance`](Self::advance), which is called before every request, and every
/// few milliseconds while something is under way.
pub(crate) trait Ledger: Send {
    /// What a request wants.
    fn question(&self, ask: &Ask) -> Question;

    /// Answers a request. One whose client waits is asked again later.
    fn respond(&mut self, ask: &Ask, common: &mut Common, now: Timestamp) -> Reply;

    /// Does all that is due.
    fn advance(&mut self, common: &mut Common, now: Timestamp) -> io::Result<()>;

    /// Whether nothing is under way.
    fn is_idle(&self) -> bool;

    /// Loses what a restart loses.
    fn forget(&mut self, now: Timestamp);

    /// The answer when the ledger itself is broken.
    fn broken(&self) -> Answer;

    /// The answer to a submission that was accepted all the same, if there is one.
    fn timed_out(&self) -> Option<Answer>;

    /// The answer to a question for statuses that is to be asked again.
    fn unavailable(&self) -> Answer;

    /// An answer with statuses that is JSON, and nothing that a client can read.
    fn wrong_typed(&self) -> &'static str;

    /// The longest body that is read.
    fn body_limit(&self) -> usize;

    /// How many requests are handled at a time, those of waiting clients included.
    fn workers(&self) -> usize;

    /// Whether the names of headers are written with capitals.
    fn has_capital_headers(&self) -> bool;
}
