use std::{fmt, time::Duration};

/// The progress of a demonstration.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DemoProgress {
    /// The time since the start of this run.
    pub time: Duration,
    /// The number of batches to send, over all runs.
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

impl DemoProgress {
    /// The numbers of the progress: the name, the value and the meaning of each.
    pub const WORDS: [(&str, &str); 6] = [
        ("accepted", "the server has stored them"),
        ("submitted", "attempts to hand a batch to the ledger"),
        ("ended", "committed, or invalid, at the ledger"),
        ("sent again", "after the ledger was busy, late, refused or lost a batch"),
        ("in doubt", "the ledger may have it: no answer arrived"),
        ("held", "nothing can be proved: the operator decides"),
    ];

    /// The progress in lines of up to 80 characters that say what each number means.
    pub fn explained(&self) -> Vec<String> {
        let Self { accepted, submitted, ended, total, retried, in_doubt, held, .. } = self;
        let numbers = [accepted, submitted, ended, retried, in_doubt, held];
        let time = self.time.as_secs_f64();
        let first = format!(
            "{time:10.1} s  {ended} of {total} batches ended, {:.0} a second",
            self.per_second
        );
        let line = |((name, meaning), number): (&(&str, &str), &u64)| {
            format!("{name:>12}  {number:>8}  {meaning}")
        };
        [first].into_iter().chain(Self::WORDS.iter().zip(numbers).map(line)).collect()
    }
}

/// One line of up to 80 characters, while there are fewer than 100,000 batches.
impl fmt::Display for DemoProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepted, ended, retried, in_doubt, held, .. } = self;
        let time = self.time.as_secs_f64();
        write!(
            f,
            "{time:6.1} s {accepted:>5} accepted {ended:>5} ended {retried:>4} sent again \
             {in_doubt:>3} in doubt {held:>3} held"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_large_run_fit() {
        let progress = DemoProgress {
            time: Duration::from_secs(9_999),
            total: 99_999,
            accepted: 99_999,
            submitted: 999_999,
            ended: 99_999,
            retried: 9_999,
            in_doubt: 999,
            held: 999,
            per_second: 9_999.0,
        };
        let lines = [progress.explained(), vec![progress.to_string()]].concat();
        assert_eq!(lines.len(), 8);
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    }
}
