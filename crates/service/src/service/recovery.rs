//! Batches that are said to be with a submitter and are with none: a round may have been marked
//! whose answer was lost.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::{self, JoinHandle},
    time::Duration,
};

use grid_batch_core::{Clock, InternalError, SystemClock, Timestamp};
use grid_batch_store::ClaimStore;
use log::{info, warn};

/// Looks for such batches now and then, until it is dropped.
#[derive(Debug)]
pub(super) struct Recovery {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Recovery {
    /// How often to look, and how much longer than any submission lasts.
    const EVERY: Duration = Duration::from_secs(30);

    /// A submission lasts `longest`; what was handed out before that is with nobody.
    pub(super) fn start(claims: ClaimStore, longest: Duration) -> Result<Self, InternalError> {
        let (end, ended) = channel();
        let thread = thread::Builder::new()
            .name("recovery".to_owned())
            .spawn(move || recover_until(&claims, longest, &ended))
            .map_err(|error| InternalError::from_source("no thread for recovery", error))?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Recovery {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been printed already; there is nobody to tell here.
            let _ = thread.join();
        }
    }
}

fn recover_until(claims: &ClaimStore, longest: Duration, ended: &Receiver<()>) {
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(Recovery::EVERY) {
        let now = SystemClock.now().as_micros();
        let before = (longest + Recovery::EVERY).as_micros();
        let before = Timestamp::from_micros(now - i64::try_from(before).unwrap_or(i64::MAX));
        match claims.recover(before) {
            Ok(0) => {}
            Ok(count) => info!(batches = count; "batches that were with no submitter are in doubt"),
            Err(error) => {
                warn!(error:% = error; "batches that are with no submitter cannot be looked for")
            }
        }
    }
}
