use std::{fmt, time::Duration};

/// How far a demonstration has come.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DemoProgress {
    /// Since this start.
    pub time: Duration,
    /// Batches that are to be handed in, over all starts.
    pub total: u64,
    /// Batches that the service has taken since this start.
    pub accepted: u64,
    /// Batches that were handed to the ledger, since this start.
    pub submitted: u64,
    /// Batches that ended as committed or invalid, over all starts.
    pub ended: u64,
    /// How often a batch was, or is to be, sent again.
    pub retried: u64,
    /// Batches that may be at the ledger, and nobody knows, now.
    pub in_doubt: u64,
    /// Batches that wait for a person, now.
    pub held: u64,
    /// Batches that ended, per second, since the last progress.
    pub per_second: f64,
}

impl fmt::Display for DemoProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepted, submitted, ended, total, retried, in_doubt, held, per_second, .. } =
            self;
        let time = self.time.as_secs_f64();
        write!(
            f,
            "{time:6.1} s   accepted {accepted:>6}   submitted {submitted:>6}   \
             ended {ended:>6} of {total}   retried {retried:>4}   in doubt {in_doubt:>3}   \
             held {held:>3}   {per_second:>5.0}/s"
        )
    }
}
