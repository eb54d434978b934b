//! The claims of one instance among several on one database.
//!
//! # The order of locks
//!
//! 1. rows of `instances`: one's own shared, those that are robbed shared and not waited for
//! 2. rows of `service_id_claims`: never waited for
//! 3. rows of `services`: not waited for by who takes; by all others in the order of their names
//! 4. rows of `batch_statuses`: by who marks not waited for; by all others under the lock of 3
//! 5. rows of `withdrawals` under the lock of 3, and of `account_nonces`: nothing is locked after them
//!
//! Who marks a batch shares the row of the claim, and who changes the claimant has it alone: so no
//! service changes hands while a batch of it is being marked, and none is marked while it does.
//! A statement that gives a service to another looks at its lanes after it has that lock: only then
//! does it see all that was marked before.

mod file_lock;
mod free;
mod hand_over;
mod instance;
mod options;
mod release;
mod share;
mod take;
mod which;

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use grid_batch_core::{
    BatchResult, ClaimKeeper, InstanceId, RoundStore, ServiceId, TakenBatch, Takeover, Timestamp,
};

pub use options::{ClaimError, ClaimOptions};

use crate::{Store, StoreError, round::Sender};
use file_lock::FileLock;
use instance::micros;

/// The store as one instance of several sees it: it works on services that it claims, and on no
/// other.
///
/// A claim lasts as long as its instance says that it lives; the database's clock alone decides
/// that. Who takes a service raises its epoch, and whatever the owner before still writes changes
/// nothing. Clones are one and the same instance.
///
/// ```no_run
/// use grid_batch_store::{ClaimOptions, ClaimStore, Store};
///
/// # fn example(store: Store) -> Result<(), Box<dyn std::error::Error>> {
/// let claims = ClaimStore::register(store, ClaimOptions::default())?;
/// // Again and again, several times within the first expiry:
/// if !claims.renew()? {
///     claims.register_again()?;
/// }
/// let takeover = claims.take(10_000)?;
/// println!("{} services more, {} batches in doubt", takeover.claims.len(), takeover.in_doubt.len());
///
/// for taken in claims.take_round(&claims.ready_services(None, 100)?)? {
///     // ... POST taken.serialized_batch ...
/// }
/// // At the end:
/// claims.release()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ClaimStore {
    store: Store,
    options: Arc<ClaimOptions>,
    instance: Arc<RwLock<InstanceId>>,
    lock: Arc<Option<FileLock>>,
}

impl ClaimStore {
    /// Registers a new instance; it claims nothing yet.
    ///
    /// Where it is given a name that another instance has, that one must have let its first expiry
    /// pass: then it is ended, and all that it claims can be taken at once.
    ///
    /// An SQLite file is for one process: as long as this value or a clone of it lives, no other can
    /// register. So all that was claimed before can be taken at once. Who only looks at a database,
    /// or adds to it, needs no claims, and no lock.
    pub fn register(store: Store, options: ClaimOptions) -> Result<Self, StoreError> {
        options.check()?;
        let lock = FileLock::of(store.pools.url())?;
        let instance = store.register_instance(&options, lock.is_some())?;
        Ok(Self {
            store,
            options: Arc::new(options),
            instance: Arc::new(RwLock::new(instance)),
            lock: Arc::new(lock),
        })
    }

    /// Registers once more, as a new instance, after [`renew`](Self::renew) has said that this one
    /// was given up for dead. It claims nothing; what it claimed before can be taken again.
    pub fn register_again(&self) -> Result<(), StoreError> {
        let instance = self.store.register_instance(&self.options, self.lock.is_some())?;
        *self.instance.write().unwrap_or_else(PoisonError::into_inner) = instance;
        Ok(())
    }

    /// Which instance this is: an id that no other start has.
    pub fn instance(&self) -> InstanceId {
        self.instance.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The store, whoever claims what.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Up to `limit` claimed services that have a batch to be tried now, in the order of their
    /// names, from the one after `after`. Going on from the last one answered, and then from the
    /// beginning, gives every service its turn.
    pub fn ready_services(
        &self,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> Result<Vec<ServiceId>, StoreError> {
        self.store.ready_services(self.instance().as_str(), after, limit)
    }

    /// Takes the next batch of each of these services that is claimed and has one to be tried now,
    /// and marks it as being with a submitter: the durable sign that it may be on its way. Takes
    /// nothing where a submission could outlast the last expiry.
    ///
    /// Services that are busy, waiting out a delay, or unknown give nothing; a service that is
    /// named twice gives one batch.
    pub fn take_round(&self, services: &[ServiceId]) -> Result<Vec<TakenBatch>, StoreError> {
        let instance = self.instance();
        let longest_submission = micros(self.options.longest_submission);
        let sender = Sender { instance: instance.as_str(), longest_submission };
        self.store.take_round(services, sender)
    }

    /// Takes batches back that were taken and certainly not sent, to be taken again at any time.
    pub fn give_back(&self, batches: &[TakenBatch]) -> Result<(), StoreError> {
        self.store.give_back(batches)
    }

    /// Puts batches of claimed services in doubt that were handed to a submitter at `submitted_by`
    /// or before and are still recorded as being with it; answers how many those were.
    ///
    /// While submitters are at work those are batches that were taken longer ago than any
    /// submission lasts: a round may have been marked whose answer never came back. Those of an
    /// owner before are recovered when their services are taken.
    pub fn recover(&self, submitted_by: Timestamp) -> Result<usize, StoreError> {
        self.store.recover(self.instance().as_str(), submitted_by)
    }
}

impl ClaimKeeper for ClaimStore {
    fn renew(&self) -> BatchResult<bool> {
        Ok(Self::renew(self)?)
    }

    fn register_again(&self) -> BatchResult<()> {
        Ok(Self::register_again(self)?)
    }

    fn take(&self, limit: usize) -> BatchResult<Takeover> {
        Ok(Self::take(self, limit)?)
    }

    fn take_services(&self, services: &[ServiceId]) -> BatchResult<Takeover> {
        Ok(Self::take_services(self, services)?)
    }

    fn recover(&self, taken_by: Timestamp) -> BatchResult<usize> {
        Ok(Self::recover(self, taken_by)?)
    }

    fn release(&self) -> BatchResult<usize> {
        Ok(Self::release(self)?)
    }
}

impl RoundStore for ClaimStore {
    fn ready_services(
        &self,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceId>> {
        Ok(Self::ready_services(self, after, limit)?)
    }

    fn take_round(&self, services: &[ServiceId]) -> BatchResult<Vec<TakenBatch>> {
        Ok(Self::take_round(self, services)?)
    }

    fn give_back(&self, batches: &[TakenBatch]) -> BatchResult<()> {
        Ok(Self::give_back(self, batches)?)
    }
}

impl fmt::Debug for ClaimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimStore")
            .field("instance", &self.instance())
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
