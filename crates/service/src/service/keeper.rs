//! Keeps the instance's claims: says that it lives, and takes services that nobody works on.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use grid_batch_core::{InternalError, ServiceId};
use grid_batch_store::{ClaimStore, StoreError, Takeover};
use log::{info, warn};

use crate::service::afterwards::Afterwards;

/// The thread that keeps the claims. Dropping it gives them up: to be dropped when nothing is being
/// sent any more.
#[derive(Debug)]
pub(super) struct Keeper {
    hand_over: HandOver,
    thread: Option<JoinHandle<()>>,
}

/// Tells the keeper of services whose batches were handed in here. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct HandOver(Sender<Message>);

/// Why the claims cannot be kept now, if they cannot.
#[derive(Debug, Clone, Default)]
pub(super) struct Trouble(Arc<Mutex<Option<String>>>);

#[derive(Debug)]
enum Message {
    HandedIn(Vec<ServiceId>),
    End,
}

impl HandOver {
    /// Takes the services that nobody works on at once, instead of at the next look.
    pub(super) fn handed_in(&self, services: &[ServiceId]) {
        // Without a keeper the service ends.
        let _ = self.0.send(Message::HandedIn(services.to_vec()));
    }
}

impl Trouble {
    pub(super) fn reason(&self) -> Option<String> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper {
    /// How often to look for services that nobody works on, at most.
    const LOOK_EVERY: Duration = Duration::from_millis(500);
    /// How many services are taken between two renewals.
    const AT_ONCE: usize = 2_000;

    pub(super) fn start(
        claims: ClaimStore,
        expiry: Duration,
        afterwards: Afterwards,
        trouble: Trouble,
    ) -> Result<Self, InternalError> {
        let (messages, received) = channel();
        let look_every = Self::LOOK_EVERY.min(expiry / 4);
        let work = Work { claims, afterwards, trouble, received, look_every };
        let thread = thread::Builder::new()
            .name("claims".to_owned())
            .spawn(move || work.until_the_end())
            .map_err(|error| InternalError::from_source("no thread for claims", error))?;
        Ok(Self { hand_over: HandOver(messages), thread: Some(thread) })
    }

    pub(super) fn hand_over(&self) -> HandOver {
        self.hand_over.clone()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // An error says that the thread has ended.
        let _ = self.hand_over.0.send(Message::End);
        if let Some(thread) = self.thread.take() {
            // A panic has been printed already; there is nobody to tell here.
            let _ = thread.join();
        }
    }
}

struct Work {
    claims: ClaimStore,
    afterwards: Afterwards,
    trouble: Trouble,
    received: Receiver<Message>,
    look_every: Duration,
}

impl Work {
    fn until_the_end(self) {
        let mut next_look = Instant::now();
        loop {
            let wait = next_look.saturating_duration_since(Instant::now());
            match self.received.recv_timeout(wait) {
                Ok(Message::HandedIn(services)) => self.take_of(services),
                Err(RecvTimeoutError::Timeout) => {
                    let more = self.look();
                    next_look =
                        Instant::now() + if more { Duration::ZERO } else { self.look_every };
                }
                Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        match self.claims.release() {
            Ok(services) => info!(services = services; "the claims are given up"),
            Err(error) => warn!(error:% = error; "the claims are left to expire"),
        }
    }

    /// Renews, and takes what is free; whether there may be more.
    fn look(&self) -> bool {
        let taken = self.renew().and_then(|()| self.claims.take(Keeper::AT_ONCE));
        match self.note(taken) {
            Some(takeover) => {
                let more = takeover.claims.len() >= Keeper::AT_ONCE;
                self.took(takeover);
                more
            }
            None => false,
        }
    }

    fn renew(&self) -> Result<(), StoreError> {
        if self.claims.renew()? {
            return Ok(());
        }
        warn!("the instance was silent for too long, and others took its services; it begins anew");
        self.claims.begin_anew()
    }

    /// Many requests may have come while the last was cared for.
    fn take_of(&self, mut services: Vec<ServiceId>) {
        while let Ok(Message::HandedIn(more)) = self.received.try_recv() {
            services.extend(more);
        }
        services.sort_unstable();
        services.dedup();
        if let Some(takeover) = self.note(self.claims.take_of(&services)) {
            self.took(takeover);
        }
    }

    fn took(&self, takeover: Takeover) {
        let Takeover { claims, in_doubt } = takeover;
        if claims.is_empty() {
            return;
        }
        info!(services = claims.len(); "services are taken");
        if !in_doubt.is_empty() {
            warn!(batches = in_doubt.len();
                "the owner before was sending batches when it ended; they are in doubt");
        }
        for claim in claims {
            self.afterwards.wake_up.wake(claim.service_id);
        }
        for (service_id, _) in in_doubt {
            self.afterwards.follow(&service_id);
            self.afterwards.trigger.trigger(service_id.as_str());
        }
    }

    /// Says it once when trouble begins, and once when it ends.
    fn note<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        let mut trouble = self.trouble.lock();
        match result {
            Ok(value) => {
                if trouble.take().is_some() {
                    info!("the claims are kept again");
                }
                Some(value)
            }
            Err(error) => {
                if trouble.is_none() {
                    warn!(error:% = error; "the claims cannot be kept; it is tried again");
                }
                *trouble = Some(error.to_string());
                None
            }
        }
    }
}
