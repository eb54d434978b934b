use std::{fmt, time::Duration};

/// The progress of a demonstration.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DemoProgress {
    /// The time since the start of this run.
    pub time: Duration,
    /// Batches that are to be sent, over all runs.
    pub total: u64,
    /// Batches that the server has accepted in this run.
    pub accepted: u64,
    /// Attempts in this run.
    pub submitted: u64,
    /// Batches that ended as committed or invalid, over all runs.
    pub ended: u64,
    /// How often a batch was sent again.
    pub retried: u64,
    /// Batches that are in doubt now.
    pub in_doubt: u64,
    /// Batches that are held now.
    pub held: u64,
    /// Batches that ended per second, since the last report.
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
