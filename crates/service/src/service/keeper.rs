//! Keeps the instance's claims: says that it lives, and takes services that nobody works on.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use grid_batch_core::{InternalError, ServiceId, Takeover};
use grid_batch_store::{ClaimStore, StoreError};
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
    TakeNoMore,
    End,
}

/// What has come together.
#[derive(Debug, Default, PartialEq, Eq)]
struct Orders {
    handed_in: Vec<ServiceId>,
    take_no_more: bool,
    end: bool,
}

impl Orders {
    /// All that has come, or comes within this time.
    fn within(wait: Duration, received: &Receiver<Message>) -> Self {
        let first = match received.recv_timeout(wait) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Message::End),
        };
        let mut orders = Self::default();
        for message in first.into_iter().chain(received.try_iter()) {
            match message {
                Message::HandedIn(services) => orders.handed_in.extend(services),
                Message::TakeNoMore => orders.take_no_more = true,
                Message::End => orders.end = true,
            }
        }
        orders.handed_in.sort_unstable();
        orders.handed_in.dedup();
        orders
    }
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
        let work = Work::new(claims, afterwards, trouble, look_every);
        let thread = thread::Builder::new()
            .name("claims".to_owned())
            .spawn(move || work.until_the_end(&received))
            .map_err(|error| InternalError::from_source("no thread for claims", error))?;
        Ok(Self { hand_over: HandOver(messages), thread: Some(thread) })
    }

    pub(super) fn hand_over(&self) -> HandOver {
        self.hand_over.clone()
    }

    /// Keeps what is claimed, and takes nothing more: the service is ending.
    pub(super) fn take_no_more(&self) {
        // An error says that the thread has ended.
        let _ = self.hand_over.0.send(Message::TakeNoMore);
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
    look_every: Duration,
    next_look: Instant,
    takes: bool,
}

impl Work {
    fn new(
        claims: ClaimStore,
        afterwards: Afterwards,
        trouble: Trouble,
        look_every: Duration,
    ) -> Self {
        let next_look = Instant::now();
        Self { claims, afterwards, trouble, look_every, next_look, takes: true }
    }

    fn until_the_end(mut self, received: &Receiver<Message>) {
        loop {
            let wait = self.next_look.saturating_duration_since(Instant::now());
            let orders = Orders::within(wait, received);
            if orders.end {
                break;
            }
            self.follow(orders);
        }
        match self.claims.release() {
            Ok(services) => info!(services = services; "the claims are given up"),
            Err(error) => warn!(error:% = error; "the claims are left to expire"),
        }
    }

    /// However much is handed in, the instance says in time that it lives.
    fn follow(&mut self, orders: Orders) {
        self.takes &= !orders.take_no_more;
        if self.takes && !orders.handed_in.is_empty() {
            self.take(|claims| claims.take_services(&orders.handed_in));
        }
        if Instant::now() < self.next_look {
            return;
        }
        let renewed = self.renew();
        let lives = self.note(renewed).is_some();
        let more = lives && self.takes && self.take(|claims| claims.take(Keeper::AT_ONCE));
        self.next_look = Instant::now() + if more { Duration::ZERO } else { self.look_every };
    }

    /// Takes services, and says whether there may be more.
    fn take(&self, take: impl FnOnce(&ClaimStore) -> Result<Takeover, StoreError>) -> bool {
        let Some(takeover) = self.note(take(&self.claims)) else { return false };
        let more = takeover.claims.len() >= Keeper::AT_ONCE;
        self.took(takeover);
        more
    }

    fn renew(&self) -> Result<(), StoreError> {
        if self.claims.renew()? {
            return Ok(());
        }
        warn!("the instance was silent for too long, and others took its services; it begins anew");
        self.claims.register_again()
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use grid_batch_core::{HeaderId, NewBatch};
    use grid_batch_poller::PollTrigger;
    use grid_batch_queuer::WakeUp;
    use grid_batch_store::{ClaimOptions, Store, StoreOptions};

    use super::*;
    use crate::service::counts::Counters;

    /// A keeper's work over a database with one service that nobody claims.
    struct Bench {
        _dir: tempfile::TempDir,
        work: Work,
        woken: Arc<AtomicUsize>,
    }

    fn service() -> ServiceId {
        "a::b".parse().unwrap()
    }

    fn bench() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", dir.path().join("batches.db").display());
        let store = Store::open(&url.parse().unwrap(), StoreOptions::default()).unwrap();
        let batch = NewBatch {
            service_id: service(),
            batch_id: HeaderId::from_bytes([1; 64]),
            transaction_ids: Vec::new(),
            serialized_batch: vec![1],
        };
        store.add(&[&[batch]]).unwrap().remove(0).unwrap();
        let woken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&woken);
        let wake_up = WakeUp::new(move || {
            counted.fetch_add(1, SeqCst);
        });
        let afterwards = Afterwards {
            wake_up: wake_up.unwrap(),
            trigger: PollTrigger::new(),
            follower: None,
            counters: Counters::default(),
        };
        let claims = ClaimStore::register(store, ClaimOptions::default()).unwrap();
        let never = Duration::from_secs(3_600);
        let work = Work::new(claims, afterwards, Trouble::default(), never);
        Bench { _dir: dir, work, woken }
    }

    fn handed_in() -> Orders {
        Orders { handed_in: vec![service()], ..Orders::default() }
    }

    #[test]
    fn the_end_is_not_lost_among_what_was_handed_in() {
        let (messages, received) = channel();
        for message in [
            Message::HandedIn(vec![service()]),
            Message::HandedIn(vec![service()]),
            Message::End,
            Message::HandedIn(vec![service()]),
        ] {
            messages.send(message).unwrap();
        }
        // It would wait for more for ever.
        bench().work.until_the_end(&received);
    }

    #[test]
    fn a_service_is_taken_when_a_batch_of_it_is_handed_in() {
        let mut bench = bench();
        bench.work.next_look = Instant::now() + bench.work.look_every;
        bench.work.follow(handed_in());
        assert_eq!(bench.woken.load(SeqCst), 1);
    }

    #[test]
    fn who_is_ending_takes_nothing_and_lives_on() {
        let mut bench = bench();
        bench.work.follow(Orders { take_no_more: true, ..handed_in() });
        bench.work.next_look = Instant::now();
        bench.work.follow(handed_in());
        assert_eq!(bench.woken.load(SeqCst), 0);
        assert!(bench.work.claims.renew().unwrap());
    }

    #[test]
    fn it_says_that_it_lives_however_much_is_handed_in() {
        let mut bench = bench();
        let begun = Instant::now();
        bench.work.follow(handed_in());
        assert!(bench.work.next_look > begun, "it has looked");
    }
}
