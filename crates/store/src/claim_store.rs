use std::{
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use grid_batch_core::{
    BatchFits, BatchResult, ClaimKeeper, EndedDependents, InstanceId, ItemId, LedgerConfirmation,
    LedgerIdentity, LookupLag, MissingTransactionStore, Notifications, Round, RoundStore,
    ServiceId, ServiceShare, SubmittedBatch, TakenBatch, Takeover,
};

use crate::{
    Store, StoreError,
    claims::{self, ClaimOptions, FormerInstance, NotificationConnection, Renewed, micros},
    missing, operator,
    sql::{file_lock::FileLock, find_locked::forget_unlocked},
    submission::{self, RoundOwner},
};

/// The store as one instance sees it: it works on the services that it claims, and on no other.
///
/// A claim lasts while the instance renews its lease, by the database's clock. A takeover raises the
/// epoch of the service, and later writes of the previous owner change nothing. Clones are the same
/// instance.
///
/// ```no_run
/// use grid_batch_store::{ClaimOptions, ClaimStore, Store};
///
/// # fn example(store: Store) -> Result<(), Box<dyn std::error::Error>> {
/// let claims = ClaimStore::register(store, ClaimOptions::default())?;
/// // Several times within the idle expiry:
/// if !claims.renew()? {
///     claims.register_again()?;
/// }
/// let takeover = claims.take(10_000)?;
/// println!("took {} services, {} batches in doubt", takeover.claims.len(), takeover.in_doubt.len());
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
    /// The ledger that the instance has confirmed.
    ledger: Arc<RwLock<Option<LedgerIdentity>>>,
    file_lock: Option<Arc<FileLock>>,
    /// Whether the last renewal found that an operator drains the instance.
    draining: Arc<AtomicBool>,
}

impl ClaimStore {
    /// Registers a new instance without claims, for a ledger that can have every service.
    pub fn register(store: Store, options: ClaimOptions) -> Result<Self, StoreError> {
        Self::register_for(store, options, |_| true)
    }

    /// Registers a new instance without claims.
    ///
    /// Fails if open batches of a service that the ledger can have were stored by a store with other rules
    /// about declared access. Those of other services stay as they are: the caller leaves them alone.
    ///
    /// If an earlier run has the same name, its idle expiry must be past; its services can then be
    /// taken at once.
    ///
    /// Only one process can register with an SQLite file, until it drops this value and all its
    /// clones. All services that were claimed before can be taken at once. Reading from a store and
    /// adding to it need no registration.
    pub fn register_for(
        store: Store,
        options: ClaimOptions,
        can_have: impl Fn(&ServiceId) -> bool,
    ) -> Result<Self, StoreError> {
        options.check()?;
        let file_lock = FileLock::acquire(store.pools.url())?;
        claims::check_scheduling(&store, can_have)?;
        if let Some(lock) = &file_lock {
            store.last_seen.keep_in(Arc::downgrade(lock));
        }
        let instance = claims::register(&store, &options, None, file_lock.is_some())?;
        Ok(Self {
            store,
            options: Arc::new(options),
            instance: Arc::new(RwLock::new(instance)),
            ledger: Arc::default(),
            file_lock,
            draining: Arc::default(),
        })
    }

    /// Registers as a new instance without claims, after [`renew`](Self::renew) has returned
    /// `false`. The services that were claimed before can be taken again.
    pub fn register_again(&self) -> Result<(), StoreError> {
        let ledger = self.ledger.read().unwrap_or_else(PoisonError::into_inner).clone();
        let draining = self.is_draining();
        let former = FormerInstance { instance: self.instance(), ledger, draining };
        let exclusive = self.file_lock.is_some();
        let instance = claims::register(&self.store, &self.options, Some(&former), exclusive)?;
        *self.instance.write().unwrap_or_else(PoisonError::into_inner) = instance;
        Ok(())
    }

    /// Compares the ledger of this instance with the one that the database is bound to, and binds the
    /// database to it if it is bound to none.
    ///
    /// Once the database is bound to a ledger, an instance takes services and batches only after it
    /// has confirmed that its nodes belong to the same one.
    pub fn confirm_ledger(
        &self,
        ledger: &LedgerIdentity,
    ) -> Result<LedgerConfirmation, StoreError> {
        let confirmation = claims::confirm_ledger(&self.store, &self.instance(), ledger)?;
        if confirmation == LedgerConfirmation::Confirmed {
            let mut confirmed = self.ledger.write().unwrap_or_else(PoisonError::into_inner);
            *confirmed = Some(ledger.clone());
        }
        Ok(confirmation)
    }

    /// The id of the instance, which is different in each run.
    pub fn instance(&self) -> InstanceId {
        self.instance.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The store, with the services of all instances.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Up to `count` transactions that batches of claimed services miss and that are to be looked for at the
    /// ledger now. Signers take turns. They count as asked about from now on: `pause` passes until the next
    /// time, and each time more.
    pub fn missing_transactions(
        &self,
        pause: Duration,
        count: usize,
    ) -> Result<Vec<ItemId>, StoreError> {
        missing::missing_transactions(&self.store, self.instance().as_str(), pause, count)
    }

    /// Extends the lease of the instance: its claims last for the expiries from now on. `false`: the
    /// instance was expired by another one, which may have taken its services; call
    /// [`register_again`](Self::register_again) or shut down.
    ///
    /// Renew several times within the idle expiry, because a renewal may fail or be late.
    pub fn renew(&self) -> Result<bool, StoreError> {
        let renewed = claims::renew(&self.store, &self.instance(), &self.options)?;
        if let Some(Renewed { draining }) = &renewed {
            self.draining.store(*draining, Relaxed);
        }
        self.store.measure_clock()?;
        forget_unlocked(&self.store)?;
        Ok(renewed.is_some())
    }

    /// Whether an operator drains the instance, as the last renewal found.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    /// Takes up to `count` services: unclaimed ones, all services of instances past their full
    /// expiry, and services without a batch with a submitter of instances past their idle expiry.
    ///
    /// A step is one commit; if a later step fails, the earlier ones stay. Batches that were with a
    /// submitter are in doubt afterwards. An instance past its own idle expiry takes nothing. One that drains
    /// takes nothing either, and releases services that have no batch with a submitter.
    pub fn take(&self, count: usize) -> Result<Takeover, StoreError> {
        if self.is_draining() {
            claims::release_drained(&self.store, &self.instance(), &self.options)?;
            return Ok(Takeover::default());
        }
        claims::take(&self.store, &self.instance(), &self.options, count)
    }

    /// Takes those of these services that [`take`](Self::take) could take, for example because a
    /// batch was just added to them. It ignores the fair share.
    pub fn take_services(&self, services: &[ServiceId]) -> Result<Takeover, StoreError> {
        claims::take_services(&self.store, &self.instance(), &self.options, services)
    }

    /// Releases all claims and removes the instance. Other instances can take the services at once.
    /// Returns the number of released services.
    ///
    /// A service with a batch with a submitter stays claimed, and the instance stays registered
    /// until its full expiry: stop the submitter first.
    pub fn release(&self) -> Result<usize, StoreError> {
        claims::release_all(&self.store, &self.instance(), &self.options)
    }

    /// Releases those of these services that have no batch with a submitter, and returns how many
    /// were released.
    pub fn release_services(&self, services: &[ServiceId]) -> Result<usize, StoreError> {
        claims::release_services(&self.store, &self.instance(), &self.options, services)
    }

    /// A function that exchanges notifications with other instances: it tells them of batches that clients of this one
    /// wait for, and of batches that have ended, and returns what has arrived since the last call. `None` if only one
    /// instance can use the database. It takes a connection of its own.
    pub fn work_notifications(
        &self,
    ) -> Option<impl FnMut(&[ItemId], &[ItemId]) -> BatchResult<Notifications> + Send + use<>> {
        if !claims::notifications_are_supported(self.store.dialect()) {
            return None;
        }
        let (claims, mut connection) = (self.clone(), NotificationConnection::default());
        Some(move |awaited: &[ItemId], ended: &[ItemId]| {
            let instance = claims.instance();
            if !awaited.is_empty() || !ended.is_empty() {
                connection.notify(&claims.store, instance.as_str(), awaited, ended)?;
            }
            Ok(connection.receive(&claims.store, instance.as_str())?)
        })
    }

    /// Up to `limit` claimed services that have a batch to submit, in the order of their ids, from
    /// the one after `after`.
    pub fn ready_services(
        &self,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> Result<Vec<ServiceId>, StoreError> {
        submission::ready_services(&self.store, self.instance().as_str(), after, limit)
    }

    /// Takes the next batch of each of these services that is claimed and has one to submit, and
    /// marks it durably as being with a submitter. Takes nothing if a submission could outlast the
    /// full expiry.
    ///
    /// A service whose batch is under way, delayed or held gives none. A service that is named
    /// twice gives one.
    pub fn take_round(&self, services: &[ServiceId]) -> Result<Vec<TakenBatch>, StoreError> {
        Ok(self.take_fitting_round(services, &mut |_| true)?.batches)
    }

    /// The same, without the batches that do not fit: `fits` is called with the length of each batch, in
    /// the order of `services`, before any bytes are read.
    pub fn take_fitting_round(
        &self,
        services: &[ServiceId],
        fits: &mut BatchFits<'_>,
    ) -> Result<Round, StoreError> {
        let one = |service_id: &ServiceId| ServiceShare::of_one(service_id.clone());
        self.take_shares(&services.iter().map(one).collect::<Vec<_>>(), fits)
    }

    /// Takes up to as many batches of each service as its share, in the order of the shares and of each
    /// service.
    pub fn take_shares(
        &self,
        shares: &[ServiceShare],
        fits: &mut BatchFits<'_>,
    ) -> Result<Round, StoreError> {
        let instance = self.instance();
        submission::take_round(&self.store, self.round_owner(&instance), shares, fits)
    }

    fn round_owner<'a>(&self, instance: &'a InstanceId) -> RoundOwner<'a> {
        let longest_submission = micros(self.options.longest_submission);
        RoundOwner { instance: instance.as_str(), longest_submission }
    }

    /// Returns batches that were taken and certainly not sent. They can be taken again at once.
    pub fn give_back(&self, batches: &[TakenBatch]) -> Result<(), StoreError> {
        submission::give_back(&self.store, batches)
    }

    /// The claimed services that are paused because their nodes have different states.
    pub fn services_with_different_states(&self) -> Result<Vec<ServiceId>, StoreError> {
        operator::services_with_different_states(&self.store, self.instance().as_str())
    }

    /// Begins or ends the pause of a claimed service whose nodes have different states. An operator's
    /// pause is another one. Returns whether anything changed.
    ///
    /// While it lasts, no batch of the service is taken, and no operator can have one submitted again.
    pub fn set_states_differ(
        &self,
        service_id: &ServiceId,
        differ: bool,
    ) -> Result<bool, StoreError> {
        operator::set_states_differ(&self.store, self.instance().as_str(), service_id, differ)
    }

    /// The batches of claimed services that are recorded as being with a submitter.
    pub fn with_submitter(&self) -> Result<Vec<SubmittedBatch>, StoreError> {
        submission::find_with_submitter(&self.store, self.instance().as_str())
    }

    /// The batches of these services that are recorded as being with the submitter of this instance, and that it
    /// must not begin to send: the service or the instance is paused, the instance drains, or the batch is held.
    pub fn stopped(&self, services: &[ServiceId]) -> Result<Vec<SubmittedBatch>, StoreError> {
        submission::find_stopped(&self.store, self.instance().as_str(), services)
    }

    /// The batches of claimed services that are under way: they were submitted, have not ended and are not
    /// held.
    pub fn under_way(&self) -> Result<Vec<(ServiceId, ItemId)>, StoreError> {
        submission::find_under_way(&self.store, self.instance().as_str())
    }

    /// Puts those of these batches in doubt that are still with the submitter of that attempt, in the
    /// same epoch. Returns these.
    ///
    /// A batch of a service of which another transaction keeps a row locked is left for a later call.
    ///
    /// While a submitter runs, an orphan is a batch that has been with it for longer than any
    /// submission lasts: the answer of the take was lost. Batches of a previous owner are put in
    /// doubt by the takeover.
    pub fn recover(&self, orphans: &[SubmittedBatch]) -> Result<Vec<SubmittedBatch>, StoreError> {
        submission::recover(&self.store, orphans)
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

    fn with_submitter(&self) -> BatchResult<Vec<SubmittedBatch>> {
        Ok(Self::with_submitter(self)?)
    }

    fn recover(&self, orphans: &[SubmittedBatch]) -> BatchResult<Vec<SubmittedBatch>> {
        Ok(Self::recover(self, orphans)?)
    }

    fn release(&self) -> BatchResult<usize> {
        Ok(Self::release(self)?)
    }
}

impl MissingTransactionStore for ClaimStore {
    fn missing_transactions(&self, pause: Duration, limit: usize) -> BatchResult<Vec<ItemId>> {
        Ok(Self::missing_transactions(self, pause, limit)?)
    }

    fn look_up_again(&self, transaction_ids: &[ItemId], pause: Duration) -> BatchResult<()> {
        Ok(missing::look_up_again(&self.store, transaction_ids, pause)?)
    }

    fn lookup_lag(&self) -> BatchResult<LookupLag> {
        Ok(missing::lookup_lag(&self.store)?)
    }

    fn found_at_ledger(&self, transaction_ids: &[ItemId]) -> BatchResult<Vec<ServiceId>> {
        Ok(self.store.found_at_ledger(transaction_ids)?.into_iter().collect())
    }

    fn absent_at_ledger(&self, transaction_ids: &[ItemId]) -> BatchResult<EndedDependents> {
        Ok(self.store.absent_at_ledger(transaction_ids)?)
    }

    fn hold_missing(&self, limit: Duration) -> BatchResult<usize> {
        Ok(self.store.hold_missing(limit)?)
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

    fn take_round(&self, shares: &[ServiceShare], fits: &mut BatchFits<'_>) -> BatchResult<Round> {
        Ok(self.take_shares(shares, fits)?)
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
