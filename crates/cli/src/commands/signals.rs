use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI32, Ordering::SeqCst},
    mpsc::{Receiver, Sender, channel},
};

use grid_batch_support::spawn_thread;
use log::{info, warn};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
    low_level::signal_name,
};

use crate::commands::failure::Failure;

/// Whether a shutdown can be requested now, or a signal has to exit at once.
#[derive(Debug, Default)]
pub(crate) struct ShutdownPhase {
    exits_at_once: AtomicBool,
    /// The first signal; 0 before it.
    signal: AtomicI32,
}

impl ShutdownPhase {
    /// From now on, the first signal exits at once, because the next step may wait for a database that does not answer.
    /// A signal that was just received exits, too.
    pub(crate) fn begin_exit_at_once(&self) {
        self.exits_at_once.store(true, SeqCst);
        if let Some(signal) = self.received() {
            exit_at_once(signal);
        }
    }

    /// From now on, the first signal requests a shutdown.
    pub(crate) fn end_exit_at_once(&self) {
        self.exits_at_once.store(false, SeqCst);
    }

    fn received(&self) -> Option<i32> {
        Some(self.signal.load(SeqCst)).filter(|signal| *signal != 0)
    }

    /// Stores the first signal. Returns whether it exits at once. One of two threads sees the value that the other has
    /// stored: this thread sees the phase, or the thread that begins the phase sees the signal.
    fn receive(&self, signal: i32) -> bool {
        self.signal.store(signal, SeqCst);
        self.exits_at_once.load(SeqCst)
    }
}

/// Receives a message at the first SIGINT or SIGTERM, unless the process exits at once in this phase. It always exits at
/// the second one: everything that must survive is in the database. The sender is for other reasons to shut down.
pub(crate) fn shutdown_channel(
    phase: Arc<ShutdownPhase>,
) -> Result<(Sender<()>, Receiver<()>), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (sender, receiver) = channel();
    let other_reasons = sender.clone();
    spawn_thread("signals", move || {
        let mut pending = signals.forever();
        if let Some(signal) = pending.next() {
            if phase.receive(signal) {
                exit_at_once(signal);
            }
            info!(signal = name(signal); "shutting down; send the signal again to exit at once");
            // The command may have ended already.
            let _ = sender.send(());
        }
        if let Some(signal) = pending.next() {
            exit_at_once(signal);
        }
    })?;
    Ok((other_reasons, receiver))
}

fn exit_at_once(signal: i32) -> ! {
    warn!(signal = name(signal); "exiting at once");
    std::process::exit(128 + signal);
}

fn name(signal: i32) -> &'static str {
    signal_name(signal).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_before_the_phase_is_seen_by_the_phase() {
        let phase = ShutdownPhase::default();
        assert!(!phase.receive(SIGTERM), "it requests a shutdown");
        assert_eq!(phase.received(), Some(SIGTERM));
    }

    #[test]
    fn signal_in_the_phase_exits_at_once() {
        let phase = ShutdownPhase::default();
        phase.begin_exit_at_once();
        assert!(phase.receive(SIGINT));
        phase.end_exit_at_once();
        assert!(!phase.receive(SIGINT));
    }
}
