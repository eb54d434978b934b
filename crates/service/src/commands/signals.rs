use std::{
    io,
    sync::mpsc::{Receiver, channel},
    thread,
};

use log::{info, warn};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
    low_level::signal_name,
};

/// Answers when the program is first told to end. When it is told once more, it ends at once: what
/// must survive is in the database.
pub(crate) fn until_told_to_end() -> io::Result<Receiver<()>> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (told, receiver) = channel();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut pending = signals.forever();
        if let Some(signal) = pending.next() {
            info!(signal = signal_name(signal).unwrap_or("a signal"); "ending; once more ends at once");
            // Whoever waited may have gone already.
            let _ = told.send(());
        }
        if let Some(signal) = pending.next() {
            warn!(signal = signal_name(signal).unwrap_or("a signal"); "ending at once");
            std::process::exit(128 + signal);
        }
    })?;
    Ok(receiver)
}
