use std::{
    io::{IsTerminal, Write, stderr},
    time::{Duration, Instant},
};

use crate::commands::operator::rough;

/// How far a command is: one line on a terminal, which is written again and again.
#[derive(Debug)]
pub(in crate::commands) struct ProgressLine {
    started: Instant,
    /// `None`: nothing is shown.
    shown: Option<usize>,
}

impl ProgressLine {
    /// The line is on standard error, if that is a terminal.
    pub(in crate::commands) fn start() -> Self {
        Self { started: Instant::now(), shown: stderr().is_terminal().then_some(0) }
    }

    /// Shows how many of all are done.
    pub(in crate::commands) fn show(&mut self, done: usize, all: usize, what: &str) {
        let line = line(done, all, what, self.started.elapsed());
        self.write(&line);
    }

    fn write(&mut self, line: &str) {
        let Some(shown) = &mut self.shown else { return };
        let length = line.chars().count();
        // The rest of a longer line is overwritten.
        let rest = shown.saturating_sub(length);
        let _ = write!(stderr(), "\r{line}{:rest$}", "").and_then(|()| stderr().flush());
        *shown = length;
    }
}

/// Removes the line.
impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown.is_some_and(|shown| shown > 0) {
            self.write("");
            let _ = write!(stderr(), "\r");
        }
    }
}

fn line(done: usize, all: usize, what: &str, elapsed: Duration) -> String {
    let line = format!("{done} of {all} {what}");
    let rate = done as f64 / elapsed.as_secs_f64();
    if done == 0 || !rate.is_finite() || rate <= 0.0 {
        return line;
    }
    let left = Duration::from_secs_f64((all.saturating_sub(done) as f64 / rate).min(1e9));
    let rate = if rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") };
    format!("{line}, {rate}/s, {} left", rough(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_the_time_left_are_told() {
        let after = Duration::from_secs;
        assert_eq!(line(0, 100, "batches have ended", after(0)), "0 of 100 batches have ended");
        assert_eq!(line(5, 100, "batches", after(10)), "5 of 100 batches, 0.5/s, 3 min left");
        assert_eq!(line(100, 100, "batches", after(2)), "100 of 100 batches, 50/s, 0 s left");
        assert_eq!(line(1, 9, "files", after(0)), "1 of 9 files");
    }
}
