use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
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

/// Receives a message at the first SIGINT or SIGTERM. The second one exits the process at once:
/// everything that must survive is in the database.
#[cfg(feature = "demo")]
pub(crate) fn shutdown_receiver() -> Result<Receiver<()>, Failure> {
    let can_stop = Arc::new(AtomicBool::new(true));
    shutdown_channel(can_stop).map(|(_, receiver)| receiver)
}

/// The same, with a sender for other reasons to shut down. While `can_stop` is not set, the first signal
/// exits at once, because the start may wait for a database that does not answer.
pub(crate) fn shutdown_channel(
    can_stop: Arc<AtomicBool>,
) -> Result<(Sender<()>, Receiver<()>), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (sender, receiver) = channel();
    let other_reasons = sender.clone();
    spawn_thread("signals", move || {
        let mut pending = signals.forever();
        if let Some(signal) = pending.next() {
            if !can_stop.load(Relaxed) {
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
