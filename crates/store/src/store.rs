//! The public methods of [`Store`]. Each delegates to the area that implements it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use grid_batch_core::{
    ActionEffect, ActionFilter, ActionOutcome, ActionRefusal, AddOutcome, Ahead, BatchConflict,
    BatchDetails, BatchFilter, BatchPage, BatchSelection, Change, ChangeOutcome, Decision,
    EndedDependents, Halt, InstanceId, ItemId, ItemIdPrefix, LedgerIdentity, ListCursor, NewBatch,
    NewToken, Operator, OperatorAction, OperatorDecision, OperatorTarget, OperatorVerb, PageCursor,
    PageOrder, QueueDepth, RecordedAction, RecordedLedger, Removable, Removed, RetentionCursor,
    ServiceId, ServicePause, StoredBatch, StoredToken, SubmittedBatch, Timestamp, TokenId,
};
use grid_batch_withdrawals::{
    CancelOutcome, FailedFilter, FailedWithdrawal, GasAdminQueue, PaymentBudget, PoolSum,
    RetryOutcome, Reward, RewardConflict, RewardId, ScheduleOutcome, UnsettledNonce, Withdrawal,
    WithdrawalConflict, WithdrawalDetails, WithdrawalFilter, WithdrawalId,
};

use crate::{
    DatabaseUrl, EndedDelays, FreedDependents, LockedService, OpenBatchesInDoubt, OpenStates,
    PoolConnections, QueueCounts, ServiceCounts, Store, StoreError, StoreOptions, batch, claims,
    intake, operator, restored,
    sql::{
        Connection,
        file_lock::FileLock,
        migrations::{self, SchemaVersion},
        program_pool::ProgramPool,
        url::Access,
    },
    submission, withdrawals,
};

/// Locks an SQLite file, which must exist, so that no process works on it meanwhile.
fn stopped_file(
    url: &DatabaseUrl,
    even_if_running: bool,
) -> Result<Option<Arc<FileLock>>, StoreError> {
    url.existing().check_exists()?;
    match even_if_running {
        true => Ok(None),
        false => FileLock::acquire(url),
    }
}

impl Store {
    /// Opens the database and brings its schema up to date. An SQLite file that does not exist is
    /// created.
    ///
    /// Each new connection to PostgreSQL is checked: if the database may have lost its latest commits,
    /// because it moved to another server or to another timeline, every open batch is put in doubt
    /// before anything else is done.
    pub fn open(url: &DatabaseUrl, options: StoreOptions) -> Result<Self, StoreError> {
        restored::checked(Self::connect(url, options)?)
    }

    /// Opens a database that a server uses, for an operator's command: it is neither created nor
    /// migrated. Otherwise as [`open`](Self::open).
    pub fn open_existing(url: &DatabaseUrl, options: StoreOptions) -> Result<Self, StoreError> {
        restored::checked(Self::connect(&url.existing(), options)?)
    }

    /// Uses a pool of connections that the program has for its own database. The program puts
    /// [`SessionSettings`](crate::SessionSettings) on the pool, and runs the [`migrations`](crate::migrations()) before; both are
    /// checked. Otherwise as [`open`](Self::open).
    ///
    /// The pool must have a connection for each thread that uses the store at the same time. On PostgreSQL, a
    /// [`ClaimStore`](crate::ClaimStore) that is told of the work of other instances keeps one more.
    pub fn over(pool: impl Into<ProgramPool>, options: StoreOptions) -> Result<Self, StoreError> {
        restored::checked(Self::connect_over(pool.into(), options)?)
    }

    /// Opens a database that a server uses, to read: nothing is written, so that the rights to read are
    /// enough. Methods that write fail.
    pub fn open_to_read(url: &DatabaseUrl, options: StoreOptions) -> Result<Self, StoreError> {
        Self::connect(&url.with_access(Access::Read), options)
    }

    /// Opens one connection and closes it again, to find out whether the database can be used now.
    pub fn check_reachable(url: &DatabaseUrl, options: &StoreOptions) -> Result<(), StoreError> {
        let connection = Connection::open(url, options.session_limits(), &options.namespace);
        let failed = |source| StoreError::Connect { url: url.to_string(), source };
        connection.map(|_: Connection| ()).map_err(failed)
    }

    /// The version of a database's schema. Nothing is written. An SQLite file that does not exist has none.
    pub fn schema_version(
        url: &DatabaseUrl,
        options: &StoreOptions,
    ) -> Result<SchemaVersion, StoreError> {
        if url.file().is_some_and(|file| !file.exists()) {
            return Ok(migrations::no_schema(url.dialect()));
        }
        let url = url.with_access(Access::Read);
        let connection = Connection::open(&url, options.session_limits(), &options.namespace);
        let failed = |source| StoreError::Connect { url: url.to_string(), source };
        migrations::schema_version(&mut connection.map_err(failed)?)
    }

    /// Puts every open batch of a database in doubt that was restored from a backup: in the time that
    /// was lost, each may have been sent. Nothing that is open now is submitted before evidence or an
    /// operator's decision; batches that are added later are not affected.
    ///
    /// Refuses while an instance runs, unless `even_if_running`. Repeating it is safe.
    pub fn mark_restored(
        url: &DatabaseUrl,
        options: StoreOptions,
        even_if_running: bool,
    ) -> Result<OpenBatchesInDoubt, StoreError> {
        let lock = stopped_file(url, even_if_running)?;
        let in_doubt = restored::mark_restored(url, options, even_if_running)?;
        lock.map_or(Ok(()), |lock| lock.forget())?;
        Ok(in_doubt)
    }

    /// Records that a database has moved to another server without any loss, so that no batch is put in
    /// doubt when it is opened. Refuses while an instance runs.
    pub fn mark_moved(url: &DatabaseUrl, options: StoreOptions) -> Result<(), StoreError> {
        let lock = stopped_file(url, false)?;
        restored::mark_moved(url, options)?;
        lock.map_or(Ok(()), |lock| lock.forget())
    }

    /// What the settings of the database may cost, one message for each setting that does not keep
    /// every commit.
    pub fn durability_warnings(&self) -> Result<Vec<String>, StoreError> {
        restored::durability_warnings(self)
    }

    /// Stores lists of batches, all in one commit: each list whole or, on a conflict, not at all.
    ///
    /// The batches of one service are queued in the given order, after all batches that were
    /// committed before.
    ///
    /// If another transaction keeps a row of a service locked, the lists of other services are stored in
    /// commits of their own, and those of this one are refused with
    /// [`BatchConflict::ServiceLocked`].
    ///
    /// ```no_run
    /// # use grid_batch_core::NewBatch;
    /// # fn example(store: grid_batch_store::Store, list: &[NewBatch]) -> Result<(), Box<dyn std::error::Error>> {
    /// for outcomes in store.add(&[list])? {
    ///     println!("{} batches are stored", outcomes?.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn add(
        &self,
        lists: &[&[NewBatch]],
    ) -> Result<Vec<Result<Vec<AddOutcome>, BatchConflict>>, StoreError> {
        intake::add(self, lists)
    }

    /// Records changes of batches in one commit, and returns the outcome of each. When a batch ends,
    /// the next one of its service becomes its head.
    ///
    /// If another transaction keeps a row of a service locked, changes of the other services are
    /// recorded in commits of their own, and the error names the locked ones. Recording a change again
    /// is safe.
    pub fn record(&self, changes: &[Change]) -> Result<Vec<ChangeOutcome>, StoreError> {
        batch::record(self, changes).complete()
    }

    /// Evaluates up to `limit` batches that waited for others which have ended: those that the commit of the
    /// end did not evaluate, because they are of other services or too many. Returns the services that got
    /// a next batch.
    ///
    /// Any instance may call it, whichever services it claims. It costs one read if there is nothing to do.
    pub fn free_dependents(&self, limit: usize) -> Result<FreedDependents, StoreError> {
        submission::free_dependents(self, limit)
    }

    /// How many batches this process has ended without sending them since this was called last: they depend
    /// on an invalid batch, or an operator ended what follows one. A commit that was repeated may count twice.
    pub fn take_ended_unsent(&self) -> u64 {
        self.scheduler.take_ended()
    }

    /// Whether this process has left something to [`free_dependents`](Self::free_dependents) since this
    /// was asked last. It only saves time. Call `free_dependents` at intervals to find what other
    /// processes leave.
    pub fn dependents_wait(&self) -> bool {
        self.scheduler.take_left_dependents()
    }

    /// The services of which other transactions keep a row locked, as far as this process has met them.
    /// Their batches wait.
    pub fn locked_services(&self) -> Vec<LockedService> {
        self.locked.list()
    }

    /// Since when a row of this service is locked by another transaction, if it is, as far as this process has
    /// met it.
    pub fn locked_since(&self, service_id: &ServiceId) -> Option<Timestamp> {
        self.locked.since(service_id)
    }

    /// The batches with this id: at most one for each service.
    pub fn find(&self, batch_id: &ItemId) -> Result<Vec<StoredBatch>, StoreError> {
        operator::find(self, batch_id)
    }

    /// The batches with this transaction.
    pub fn find_by_transaction(
        &self,
        transaction_id: &ItemId,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        operator::find_by_transaction(self, transaction_id)
    }

    /// Up to `count` batches whose ids begin with these digits, ordered by id: of one service, or of all.
    pub fn find_by_prefix(
        &self,
        prefix: &ItemIdPrefix,
        service_id: Option<&ServiceId>,
        count: usize,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        operator::find_by_prefix(self, prefix, service_id, count)
    }

    /// Everything that is stored about one batch.
    pub fn details(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> Result<Option<BatchDetails>, StoreError> {
        operator::details(self, service_id, batch_id)
    }

    /// What is ahead of the open batches of a service that were stored at these times: `None` for one
    /// that is the first, or has ended. Counts up to [`Ahead::MAX_COUNTED`], so that the cost does not
    /// grow with the queue.
    pub fn ahead(
        &self,
        service_id: &ServiceId,
        created_at: &[Timestamp],
    ) -> Result<Vec<Option<Ahead>>, StoreError> {
        operator::ahead(self, service_id, created_at)
    }

    /// The bytes of a batch, exactly as they were added.
    pub fn serialized_batch(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        operator::serialized_batch(self, service_id, batch_id)
    }

    /// The oldest open batches of a service, in order: the input of a strategy.
    pub fn open_batches(
        &self,
        service_id: &ServiceId,
        count: usize,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        operator::open_batches(self, service_id, count)
    }

    /// Up to `count` held batches, ordered by the names of their services, from the service after
    /// `after`.
    pub fn held_batches(
        &self,
        after: Option<&ServiceId>,
        count: usize,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        operator::held_batches(self, after, count)
    }

    /// The batches that are held and wait behind another one of their service: the hold begins when it
    /// is their turn. In the order in which they were stored.
    pub fn waiting_holds(&self) -> Result<Vec<StoredBatch>, StoreError> {
        operator::waiting_holds(self)
    }

    /// Holds an open batch for an operator, with a reason, also in its attempts.
    ///
    /// A batch that the ledger does not have is not sent before it is released or decided. One that is
    /// at the ledger is followed, and ends if the ledger reports a final status or evidence proves that
    /// it was applied; it is not sent again. A submission that is under way is not stopped.
    pub fn hold_batch(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        reason: &str,
    ) -> Result<ChangeOutcome, StoreError> {
        self.act_on(OperatorVerb::Hold, (service_id, batch_id, None), Some(reason))
    }

    /// Ends any hold of a batch, so that it continues by the ordinary rules. They may
    /// hold it again.
    pub fn release_batch(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        reason: Option<&str>,
    ) -> Result<ChangeOutcome, StoreError> {
        self.act_on(OperatorVerb::Release, (service_id, batch_id, None), reason)
    }

    /// Ends the delay of the batch that is next in a service, or in all services, and the hold that began
    /// because the ledger refused it again and again. A running server finds these batches when it next
    /// looks for ready services.
    ///
    /// An operator's own hold stays. So does the delay of a service of which another transaction keeps a
    /// row locked; the result names such services.
    pub fn end_delays(&self, service: Option<&ServiceId>) -> Result<EndedDelays, StoreError> {
        let target = service.cloned().map(OperatorTarget::Service);
        self.retry_delayed(&OperatorAction {
            verb: OperatorVerb::Retry,
            target: target.unwrap_or(OperatorTarget::AllServices),
            reason: None,
            operator: Operator::program(),
            dry_run: false,
        })
    }

    /// As [`end_delays`](Self::end_delays), of the target of an action, which is a service or all. Logs the
    /// action for each batch.
    pub fn retry_delayed(&self, action: &OperatorAction) -> Result<EndedDelays, StoreError> {
        operator::end_delays(self, action)
    }

    /// Records what an operator decided about this attempt of an open batch, also among its failed
    /// attempts. An attempt of 0 is that of a batch that was never tried.
    ///
    /// The attempt is the one that the operator looked at. If the batch is at another one, nothing
    /// changes, because the decision is not about it. Nothing changes either while the batch is with a
    /// submitter, because it may be on its way.
    pub fn decide(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        attempt: u32,
        decision: impl Into<OperatorDecision>,
    ) -> Result<ChangeOutcome, StoreError> {
        let OperatorDecision { decision, reason } = decision.into();
        let verb = match decision {
            Decision::Committed => OperatorVerb::EndCommitted,
            Decision::Invalid => OperatorVerb::EndInvalid,
            Decision::Absent => OperatorVerb::Resubmit,
        };
        self.act_on(verb, (service_id, batch_id, Some(attempt)), reason.as_deref())
    }

    /// Up to `count` invalid batches that stop others, until an operator decides or until what follows has
    /// ended, ordered by service and position, after one of them.
    pub fn halts(&self, after: Option<&Halt>, count: usize) -> Result<Vec<Halt>, StoreError> {
        operator::halts(self, after, count)
    }

    /// Lets go on what an invalid batch stops. What depends on it ends as invalid.
    pub fn continue_after(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        reason: Option<&str>,
    ) -> Result<ChangeOutcome, StoreError> {
        self.act_on(OperatorVerb::Continue, (service_id, batch_id, None), reason)
    }

    /// Ends what an invalid batch stops, as invalid and without sending it: in the parallel strategy, the
    /// batches that wait for it, and those that wait for these; in the others, all batches of the service
    /// that were never sent. Batches that are added later are not affected.
    ///
    /// They end in steps of a commit each. If the process ends in between, a server ends the others.
    pub fn end_following(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        reason: &str,
    ) -> Result<ChangeOutcome, StoreError> {
        self.act_on(OperatorVerb::EndFollowing, (service_id, batch_id, None), Some(reason))
    }

    /// Does what an operator asks for and logs it, in one commit. A dry run only finds out what would happen.
    pub fn act(&self, action: &OperatorAction) -> Result<ActionOutcome, StoreError> {
        match &action.target {
            OperatorTarget::Nonces { .. } => withdrawals::act_on_nonces(self, action),
            _ => operator::act(self, action),
        }
    }

    /// The batches of this target that are with a submitter of any instance. After a pause, a drain or a hold of
    /// the target, no others are sent.
    pub fn being_sent(&self, target: &OperatorTarget) -> Result<Vec<SubmittedBatch>, StoreError> {
        submission::being_sent(self, target)
    }

    /// Up to `count` actions of operators before the one with this number, the latest first.
    pub fn actions(
        &self,
        filter: &ActionFilter,
        before: Option<i64>,
        count: usize,
    ) -> Result<Vec<RecordedAction>, StoreError> {
        operator::actions(self, filter, before, count)
    }

    /// Acts on one batch, as a program that names no operator.
    fn act_on(
        &self,
        verb: OperatorVerb,
        (service_id, batch_id, attempt): (&ServiceId, &ItemId, Option<u32>),
        reason: Option<&str>,
    ) -> Result<ChangeOutcome, StoreError> {
        let (service_id, batch_id) = (service_id.clone(), *batch_id);
        let outcome = self.act(&OperatorAction {
            verb,
            target: OperatorTarget::Batch { service_id, batch_id, attempt },
            reason: reason.map(str::to_owned),
            operator: Operator::program(),
            dry_run: false,
        })?;
        match outcome {
            ActionOutcome::Done(ActionEffect { state: Some(state), next_waits, .. }) => {
                Ok(ChangeOutcome::Applied { state, next_waits })
            }
            ActionOutcome::Refused(ActionRefusal::Batch(stale)) => Ok(ChangeOutcome::Stale(stale)),
            ActionOutcome::NotFound => Ok(ChangeOutcome::NotFound),
            other => Err(StoreError::corrupt(format!("an action on a batch was {other:?}"))),
        }
    }

    /// Looks at everything that waits for a batch that has ended, until nothing is left to do now.
    pub(crate) fn free_all_dependents(&self) -> Result<(), StoreError> {
        const STEP: usize = 256;
        while self.free_dependents(STEP)?.more {}
        Ok(())
    }

    /// The ledger has applied these transactions. Batches that miss no other one get a position in the order of
    /// their service. Returns the services that got a next batch.
    pub fn found_at_ledger(
        &self,
        transaction_ids: &[ItemId],
    ) -> Result<BTreeSet<ServiceId>, StoreError> {
        operator::found_at_ledger(self, transaction_ids)
    }

    /// The ledger does not have these transactions. Batches end as invalid that depend on one which only
    /// invalid batches have, if the ledger was asked since that is so.
    pub fn absent_at_ledger(
        &self,
        transaction_ids: &[ItemId],
    ) -> Result<EndedDependents, StoreError> {
        operator::absent_at_ledger(self, transaction_ids)
    }

    /// Holds batches that have missed a transaction for longer than `longest`, until it arrives, the ledger
    /// has it, or an operator releases or decides. Returns how many.
    pub fn hold_missing(&self, longest: Duration) -> Result<usize, StoreError> {
        operator::hold_missing(self, longest)
    }

    /// One page of batches, ordered by service and then by age, the oldest first.
    ///
    /// The cost of a page grows with the number of batches that it shows, and with the number that
    /// the filter skips.
    pub fn list(
        &self,
        filter: &BatchFilter,
        after: Option<&PageCursor>,
        count: usize,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        operator::list(self, filter, after, count)
    }

    /// One page of batches, in the order in which they were stored. A limited number of batches is examined
    /// for each page, however many are stored.
    pub fn batch_page(
        &self,
        selection: &BatchSelection,
        order: PageOrder,
        after: Option<ListCursor>,
        count: usize,
    ) -> Result<BatchPage, StoreError> {
        operator::batch_page(self, selection, order, after, count)
    }

    /// How many batches the filter selects.
    pub fn count(&self, filter: &BatchFilter) -> Result<u64, StoreError> {
        operator::count(self, filter)
    }

    /// How many open batches a service has. The cost does not depend on their number.
    pub fn depth(&self, service: &ServiceId) -> Result<u64, StoreError> {
        operator::depth(self, service)
    }

    /// Up to `count` services that have open batches, each with their number, ordered by name,
    /// from the service after `after`.
    pub fn depths(
        &self,
        after: Option<&ServiceId>,
        count: usize,
    ) -> Result<Vec<QueueDepth>, StoreError> {
        operator::depths(self, after, count)
    }

    /// Which of these services are paused, and why: by themselves, or because all are.
    pub fn pauses(
        &self,
        services: &[ServiceId],
    ) -> Result<HashMap<ServiceId, ServicePause>, StoreError> {
        operator::pauses(self, services)
    }

    /// How many events this store has written since it was opened, with those of transactions that failed.
    pub fn events_written(&self) -> u64 {
        self.scheduler.events().count()
    }

    /// The connections to the database, by pool.
    pub fn connections(&self) -> Vec<PoolConnections> {
        self.pools.connections()
    }

    /// How many services this instance claims.
    pub fn count_claims(&self, instance: &InstanceId) -> Result<u64, StoreError> {
        operator::count_claims(self, instance)
    }

    /// How many batches are open, and which queues are full. The cost grows with the number of services, and of
    /// batches that miss a transaction.
    pub fn queue_counts(&self) -> Result<QueueCounts, StoreError> {
        operator::queue_counts(self)
    }

    /// How many services have open batches, and how many of them are in trouble. The cost grows with their
    /// number.
    pub fn service_counts(&self) -> Result<ServiceCounts, StoreError> {
        operator::service_counts(self)
    }

    /// Stores an access token, unless another one that is not revoked has its name. Returns whether it did.
    pub fn create_token(&self, token: &NewToken) -> Result<bool, StoreError> {
        operator::create_token(self, token)
    }

    /// Up to `count` access tokens, also those that do not work any more, ordered by id.
    pub fn tokens(
        &self,
        after: Option<TokenId>,
        count: usize,
    ) -> Result<Vec<StoredToken>, StoreError> {
        operator::tokens(self, after, count)
    }

    /// The access tokens that are not revoked. Some may have expired.
    pub fn unrevoked_tokens(&self) -> Result<Vec<StoredToken>, StoreError> {
        operator::unrevoked_tokens(self)
    }

    /// Records that these access tokens were used.
    pub fn note_token_use(&self, ids: &[TokenId]) -> Result<(), StoreError> {
        operator::note_token_use(self, ids)
    }

    /// Revokes the access token with this id or name. Returns whether there was one that was not revoked.
    pub fn revoke_token(&self, id_or_name: &str) -> Result<bool, StoreError> {
        operator::revoke_token(self, id_or_name)
    }

    /// The states of the batches in lanes, and how old the oldest open batch is. The cost grows with the number
    /// of lanes in use.
    pub fn open_states(&self) -> Result<OpenStates, StoreError> {
        operator::open_states(self)
    }

    /// The ledger that the database is bound to; `None` before the first instance has confirmed its
    /// ledger ([`ClaimStore::confirm_ledger`](crate::ClaimStore::confirm_ledger)).
    pub fn ledger(&self) -> Result<Option<RecordedLedger>, StoreError> {
        claims::recorded_ledger(self)
    }

    /// Binds the database to this ledger, whatever it was bound to before. It is refused while
    /// instances run.
    ///
    /// **Open batches that the earlier ledger may have are looked for at this one.** If it does not
    /// have them, they are submitted to it.
    pub fn rebind_ledger(&self, ledger: &LedgerIdentity) -> Result<(), StoreError> {
        claims::rebind_ledger(self, ledger)
    }

    /// Removes batches that ended before `before`, with their bytes and everything that is stored
    /// about them.
    ///
    /// One step examines at most `count` batches, the oldest first, in one commit. It never removes
    /// an open batch, nor the latest batch of a withdrawal. A removed batch that is added again
    /// counts as new, so clients must not repeat requests that are older than `before`.
    ///
    /// The last step is the one that finds only batches that were stored after `before`: those behind
    /// them are younger still.
    pub fn remove_ended(
        &self,
        before: Timestamp,
        from: Option<RetentionCursor>,
        count: usize,
    ) -> Result<Removed, StoreError> {
        operator::remove_ended(self, before, from, count)
    }

    /// What [`remove_ended`](Self::remove_ended) would remove in the same step.
    pub fn count_removable(
        &self,
        before: Timestamp,
        from: Option<RetentionCursor>,
        count: usize,
    ) -> Result<Removable, StoreError> {
        operator::count_removable(self, before, from, count)
    }

    /// Stores withdrawals, each with its first batch, all in one commit, except those whose id
    /// another withdrawal has. The batches are queued as [`add`](Self::add) does.
    ///
    /// There is at most one withdrawal with an id, however many requests come at once. If the id is
    /// derived from what may be paid only once, no other lock is needed.
    ///
    /// ```no_run
    /// # use grid_batch_withdrawals::{ScheduleOutcome, Withdrawal};
    /// # fn example(store: grid_batch_store::Store, withdrawal: Withdrawal) -> Result<(), Box<dyn std::error::Error>> {
    /// for outcome in store.schedule(&[withdrawal])? {
    ///     match outcome? {
    ///         ScheduleOutcome::Stored { ahead, .. } => println!("scheduled behind {ahead} others"),
    ///         ScheduleOutcome::AlreadyStored => println!("was scheduled before, and is paid once"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn schedule(
        &self,
        withdrawals: &[Withdrawal],
    ) -> Result<Vec<Result<ScheduleOutcome, WithdrawalConflict>>, StoreError> {
        withdrawals::schedule(self, withdrawals)
    }

    /// Requests that a withdrawal is cancelled, if that is still possible. The end of its batch
    /// shows whether it was.
    pub fn cancel_withdrawal(&self, id: &WithdrawalId) -> Result<CancelOutcome, StoreError> {
        withdrawals::cancel_withdrawal(self, id)
    }

    /// Retries a failed withdrawal with another batch. Of two requests at the same time, one starts
    /// the retry.
    ///
    /// While a transaction of an earlier generation may be paid, no other is signed.
    pub fn retry_withdrawal(&self, id: &WithdrawalId) -> Result<RetryOutcome, StoreError> {
        withdrawals::retry_withdrawal(self, id)
    }

    /// The open withdrawals of these gas admins, and what failed last.
    pub fn gas_admin_queues(
        &self,
        services: &[ServiceId],
    ) -> Result<Vec<GasAdminQueue>, StoreError> {
        withdrawals::gas_admin_queues(self, services)
    }

    /// What was scheduled from each of these pools in the last 24 hours.
    pub fn pool_sums(&self, pools: &[&str]) -> Result<Vec<PoolSum>, StoreError> {
        withdrawals::pool_sums(self, pools)
    }

    /// What the payment limits leave now.
    pub fn payment_budget(&self) -> Result<PaymentBudget, StoreError> {
        withdrawals::payment_budget(self)
    }

    /// One page of failed withdrawals, in the order in which they were scheduled: those after this one.
    /// What the filter says about the reason is left to [`FailedFilter::find`].
    pub fn failed_withdrawals(
        &self,
        filter: &FailedFilter,
        after: Option<&WithdrawalId>,
        limit: usize,
    ) -> Result<Vec<FailedWithdrawal>, StoreError> {
        withdrawals::failed_withdrawals(self, filter, after, limit)
    }

    /// The nonces of which it cannot be decided what the chain used them for, with the reason.
    pub fn undecided_nonces(&self) -> Result<Vec<(ServiceId, UnsettledNonce)>, StoreError> {
        withdrawals::undecided_nonces(self)
    }

    /// Records an operator's decision about an undecided nonce: it was used for this withdrawal. `false`: it is
    /// not undecided, or the withdrawal cannot have been paid with it.
    pub fn decide_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        paid: &WithdrawalId,
    ) -> Result<bool, StoreError> {
        withdrawals::decide_nonce(self, service_id, nonce, paid)
    }

    /// Everything that is stored about a withdrawal.
    pub fn withdrawal(&self, id: &WithdrawalId) -> Result<Option<WithdrawalDetails>, StoreError> {
        withdrawals::withdrawal(self, id)
    }

    /// One page of withdrawals, the newest first: those that are older than `before`. No withdrawal
    /// is older than one that is not stored.
    ///
    /// The cost of a page grows with the number of withdrawals that it shows, and, where the filter
    /// names more than one of pool, service, reward and beneficiary, with the number that it skips.
    pub fn withdrawals(
        &self,
        filter: &WithdrawalFilter,
        before: Option<&WithdrawalId>,
        count: usize,
    ) -> Result<Vec<WithdrawalDetails>, StoreError> {
        withdrawals::withdrawals(self, filter, before, count)
    }

    /// Stores a reward. A reward with the same id and terms is not stored again, even when its
    /// `created_at` differs.
    pub fn add_reward(
        &self,
        reward: &Reward,
    ) -> Result<Result<AddOutcome, RewardConflict>, StoreError> {
        withdrawals::add_reward(self, reward)
    }

    /// The reward with this id.
    pub fn reward(&self, id: &RewardId) -> Result<Option<Reward>, StoreError> {
        withdrawals::reward(self, id)
    }
}
