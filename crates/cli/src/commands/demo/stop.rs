use std::{
    process::{ExitCode, exit},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering::SeqCst},
    },
};

use grid_batch_support::{Shutdown, spawn_thread};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::commands::{failure::Failure, print::print_stderr};

/// A signal stops the demonstration; a second one exits at once.
#[derive(Debug, Clone)]
pub(super) struct StopSignal {
    stop: Shutdown,
    /// The first signal; 0 before it.
    first: Arc<AtomicI32>,
}

impl StopSignal {
    pub(super) fn request(stop: Shutdown) -> Result<Self, Failure> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let request = Self { stop, first: Arc::default() };
        let received = request.clone();
        spawn_thread("signals", move || {
            for signal in signals.forever() {
                if let Some(code) = received.receive(signal) {
                    exit(code);
                }
                print_stderr(
                    "\nStopping, and removing temporary files; Ctrl-C again exits at once.",
                );
            }
        })?;
        Ok(request)
    }

    /// Stops the demonstration, or returns the exit code with which to exit at once.
    fn receive(&self, signal: i32) -> Option<i32> {
        let is_first = self.first.compare_exchange(0, signal, SeqCst, SeqCst).is_ok();
        self.stop.request();
        (!is_first).then_some(128 + signal)
    }

    /// The exit code of a command that a signal has stopped.
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(u8::try_from(128 + self.first.load(SeqCst)).unwrap_or(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_signal_exits_at_once() {
        let request = StopSignal { stop: Shutdown::new(), first: Arc::default() };
        assert!(!request.stop.is_requested());
        assert_eq!(request.receive(SIGINT), None);
        assert!(request.stop.is_requested());
        assert_eq!(request.receive(SIGTERM), Some(143));
        assert_eq!(request.exit_code(), ExitCode::from(130));
    }
}
