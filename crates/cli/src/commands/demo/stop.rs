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
pub(super) struct StopSignal(Arc<AtomicI32>);

impl StopSignal {
    pub(super) fn request(stop: Shutdown) -> Result<Self, Failure> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let first = Arc::new(AtomicI32::new(0));
        let received = Arc::clone(&first);
        spawn_thread("signals", move || {
            for signal in signals.forever() {
                if first.swap(signal, SeqCst) != 0 {
                    exit(128 + signal);
                }
                stop.request();
                print_stderr(
                    "\nStopping, and removing temporary files; Ctrl-C again exits at once.",
                );
            }
        })?;
        Ok(Self(received))
    }

    /// The exit code of a command that a signal has stopped.
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(u8::try_from(128 + self.0.load(SeqCst)).unwrap_or(1))
    }
}
