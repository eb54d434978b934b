use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    marker::PhantomData,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use grid_batch_core::batches::BatchBytes;
use grid_batch_core::ledger::Submission;
use grid_batch_core::queue::{Admission, Round, RoundStore, ServiceShare, TakenBatch};
use grid_batch_core::{BatchResult, Clock, Moment, MonotonicTime, ScopeId, ServiceId, SystemClock};
use grid_batch_support::GroupPause;
use grid_batch_work::WorkTable;
use log::{error, warn};

use crate::{
    WakeUp,
    memory_budget::{MemoryBudget, MemoryPermit},
    service_queue::ServiceQueue,
};

/// The options of a queue.
#[derive(Debug, Clone)]
pub struct QueueOptions {
    /// Limit on the number of batches, and of services, in one round.
    pub round_size: usize,
    /// Limit on the number of batches of one service in a round.
    pub most_of_service: usize,
    /// Limit on the total size, in bytes, of the batches that were taken and whose submissions have not ended. A round
    /// takes only batches that fit. A batch that is larger than the limit is taken when there is no other large one.
    pub memory_limit: usize,
    /// How often to scan for ready services for which the queue was not woken.
    pub poll_interval: Duration,
    /// A batch that was taken this long ago and has not been polled is given back to the store, because a submitter
    /// would have too little time to send it before another instance may take over the service. The time starts before
    /// the store is asked, so it includes the time that the store takes.
    pub give_back_after: Duration,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            round_size: 100,
            most_of_service: 1,
            memory_limit: 64 << 20,
            poll_interval: Duration::from_secs(1),
            give_back_after: Duration::from_secs(45),
            clock: Arc::new(SystemClock),
        }
    }
}

/// The queue that a submitter polls.
///
/// `next` returns `None` when nothing can be submitted now; it may return more later. The queue takes a whole round
/// from the store at a time and marks its batches as being with a submitter. [`buffered`](Self::buffered) is the number
/// of those that have not been polled yet. Dropping the queue gives them back.
pub struct BatchQueue<S: ScopeId, R: RoundStore> {
    store: R,
    wake_up: WakeUp,
    options: QueueOptions,
    round: VecDeque<BufferedBatch>,
    /// When the store was asked for the round.
    asked_at: Moment,
    scan: ServiceScan,
    /// The services whose batches did not fit into a round. They are offered first in each round, so that a large batch
    /// is taken eventually.
    left: ServiceQueue,
    budget: MemoryBudget,
    admission: Option<Arc<dyn Admission>>,
    table: Option<WorkTable>,
    pause: GroupPause,
    scope: PhantomData<fn() -> S>,
}

/// The services of which a round may take batches.
struct Candidates {
    shares: Vec<ServiceShare>,
    /// How many batches of each service are wanted.
    wanted: usize,
    /// Whether others got no place.
    others_wait: bool,
}

/// A batch that was taken but not polled yet.
struct BufferedBatch {
    taken: TakenBatch,
    permit: MemoryPermit,
}

/// The position of the scan for ready services.
#[derive(Debug, Default)]
struct ServiceScan {
    after: Option<ServiceId>,
    /// When the next scan starts. `None`: a scan is in progress.
    next: Option<MonotonicTime>,
}

impl<S: ScopeId, R: RoundStore> BatchQueue<S, R> {
    /// A queue over this store, woken for ready services by `wake_up`.
    pub fn new(store: R, wake_up: WakeUp, options: QueueOptions) -> Self {
        let poll = wake_up.clone();
        Self {
            store,
            wake_up,
            round: VecDeque::new(),
            asked_at: Moment::now(&*options.clock),
            scan: ServiceScan::default(),
            left: ServiceQueue::default(),
            budget: MemoryBudget::new(options.memory_limit, move || poll.notify()),
            admission: None,
            table: None,
            pause: GroupPause::BRIEF,
            scope: PhantomData,
            options,
        }
    }

    /// Enters each attempt in this table, so that it can be called back. Give the table to the submitter as well, which
    /// reports the end of each attempt.
    #[must_use]
    pub fn with_table(mut self, table: WorkTable) -> Self {
        self.table = Some(table);
        self
    }

    /// Takes batches only of services for which `admission` has a place. Give it to the submitter as well.
    #[must_use]
    pub fn with_admission(mut self, admission: Arc<dyn Admission>) -> Self {
        self.admission = Some(admission);
        self
    }

    /// The number of batches that were taken from the store but not polled yet.
    pub fn buffered(&self) -> usize {
        self.round.len()
    }

    /// Takes the next round. If the store fails, the next call tries again.
    ///
    /// If services got no place, the round is tried again without them, so that the services after them get their turn.
    fn refill(&mut self) {
        const MOST_TRIES: usize = 100;
        if !self.wake_up.is_empty() {
            thread::sleep(self.pause.wait());
        }
        for _ in 0..MOST_TRIES {
            if !self.refill_once() {
                return;
            }
        }
    }

    /// Takes a round. Returns whether it is empty only because services got no place while others are left.
    ///
    /// While a scan is due, a quarter of the round is kept for services that were not woken.
    fn refill_once(&mut self) -> bool {
        self.asked_at = Moment::now(&*self.options.clock);
        let now = self.options.clock.monotonic();
        let round_size = self.options.round_size;
        let scanned = if self.scan.is_due(now) { round_size.div_ceil(4) } else { 0 };
        let again = self.left.take(round_size / 2);
        let woken = self.wake_up.take(round_size.saturating_sub(scanned + again.len()));
        match self.take_round(&again, &woken, now) {
            Ok((round, others_wait)) => {
                self.add_round(round, &again);
                let others_are_left = !self.wake_up.is_empty() || self.scan.next.is_none();
                self.round.is_empty() && others_wait && others_are_left
            }
            Err(error) => {
                warn!(error:% = error; "cannot take a round from the store; it is tried again");
                self.left.put_back(again);
                self.wake_up.put_back(woken);
                false
            }
        }
    }

    fn add_round(&mut self, round: Round, again: &[ServiceId]) {
        for taken in round.batches {
            let permit = self.budget.count(taken.serialized_batch.len());
            self.round.push_back(BufferedBatch { taken, permit });
        }
        let (first, last) = round.left.into_iter().partition(|service| again.contains(service));
        self.left.put_back(first);
        self.left.extend(last);
    }

    /// Whether the round was taken too long ago for its batches to be sent.
    fn is_late(&self) -> bool {
        let elapsed = self.asked_at.longest_elapsed(&*self.options.clock);
        elapsed >= self.options.give_back_after
    }

    /// Gives back a round that the store returned too late, and queues its services again.
    fn give_back_late_round(&mut self) {
        warn!(
            batches = self.round.len();
            "the store took too long to return a round; its batches are given back unsent"
        );
        let services: Vec<_> =
            self.round.iter().map(|batch| batch.taken.service_id.clone()).collect();
        self.give_back();
        self.wake_up.put_back(services);
    }

    /// Gives the buffered batches back to the store.
    fn give_back(&mut self) {
        let batches: Vec<TakenBatch> = self.round.drain(..).map(|batch| batch.taken).collect();
        if batches.is_empty() {
            return;
        }
        if let Some(table) = &self.table {
            let mut work = table.lock();
            for taken in &batches {
                let batch_id = taken.batch_id.to_string();
                work.attempt_ended(taken.service_id.as_str(), &batch_id, taken.attempt_id());
            }
        }
        if let Err(error) = self.store.give_back(&batches) {
            error!(
                batches = batches.len(), error:% = error;
                "cannot give batches back to the store; they are in doubt until there is evidence"
            );
        }
        if let Some(admission) = &self.admission {
            batches.iter().for_each(|taken| admission.given_back(taken));
        }
    }

    /// Takes a round, beginning with the services that were left before. Also returns whether services got no place in
    /// it.
    fn take_round(
        &mut self,
        again: &[ServiceId],
        woken: &[ServiceId],
        now: MonotonicTime,
    ) -> BatchResult<(Round, bool)> {
        let Candidates { shares, wanted, others_wait } = self.candidates(again, woken, now)?;
        if shares.is_empty() {
            return Ok((Round::default(), others_wait));
        }
        let mut budget = self.budget.start_round();
        let started = Instant::now();
        let round = self.store.take_round(&shares, &mut |bytes| budget.fits(bytes));
        self.enter(round.as_ref().ok());
        budget.end();
        let ledger_time = self.table.as_ref().and_then(WorkTable::ledger_time);
        let taken = round.as_ref().map_or(0, |round| round.batches.len());
        self.pause.ended(started, taken, ledger_time);
        let taken = by_service(round.as_ref().ok());
        self.return_places(&shares, &taken, &round);
        if self.options.most_of_service > 1 {
            // They may have more.
            let full = taken.iter().filter(|(_, batches)| batches.len() >= wanted);
            self.wake_up.put_back(full.map(|(service_id, _)| ServiceId::clone(service_id)));
        }
        Ok((round?, others_wait))
    }

    /// The services that get a place. They ask in this order: those that were left before, the woken ones, and others
    /// if a scan is due.
    fn candidates(
        &mut self,
        again: &[ServiceId],
        woken: &[ServiceId],
        now: MonotonicTime,
    ) -> BatchResult<Candidates> {
        let mut services = [again, woken].concat();
        services.extend(self.scan(self.options.round_size.saturating_sub(services.len()), now)?);
        let mut seen = HashSet::new();
        services.retain(|service| seen.insert(service.clone()) && is_scope::<S>(service));
        let wanted = self.options.round_size / services.len().max(1);
        let wanted = wanted.clamp(1, self.options.most_of_service.max(1));
        let asked = services.len();
        let share = |service_id: ServiceId| {
            let admission = self.admission.as_ref();
            let batches = admission.map_or(wanted, |it| it.admit(&service_id, wanted));
            (batches > 0).then_some(ServiceShare { service_id, batches })
        };
        let shares: Vec<ServiceShare> = services.into_iter().filter_map(share).collect();
        let others_wait = shares.len() < asked;
        Ok(Candidates { shares, wanted, others_wait })
    }

    /// Enters the taken batches in the table.
    fn enter(&self, round: Option<&Round>) {
        let (Some(table), Some(round)) = (&self.table, round) else { return };
        let (now, mut work) = (self.options.clock.monotonic(), table.lock());
        round.batches.iter().for_each(|taken| work.attempt_taken(taken, now));
    }

    /// Reports which batches were taken, and returns the places that are left over.
    ///
    /// The places of services that are tried again, because a batch did not fit or the store failed, wake no other
    /// service: it would fail in the same way, and services would wake each other endlessly.
    fn return_places(
        &self,
        shares: &[ServiceShare],
        taken: &HashMap<&ServiceId, Vec<&TakenBatch>>,
        round: &BatchResult<Round>,
    ) {
        let Some(admission) = &self.admission else { return };
        let left: Option<HashSet<&ServiceId>> =
            round.as_ref().ok().map(|round| round.left.iter().collect());
        for ServiceShare { service_id, batches: places } in shares {
            let batches = taken.get(service_id).map_or(&[][..], Vec::as_slice);
            if !batches.is_empty() {
                admission.taken(service_id, batches);
            }
            let unused = places.saturating_sub(batches.len());
            let asks_again = left.as_ref().is_none_or(|left| left.contains(service_id));
            match unused {
                0 => {}
                unused if asks_again => admission.put_back(service_id, unused),
                unused => admission.release(service_id, unused),
            }
        }
    }

    /// Up to `limit` ready services, if a scan is due.
    fn scan(&mut self, limit: usize, now: MonotonicTime) -> BatchResult<Vec<ServiceId>> {
        if limit == 0 || !self.scan.is_due(now) {
            return Ok(Vec::new());
        }
        let found = self.store.ready_services(self.scan.after.as_ref(), limit)?;
        let is_end = found.len() < limit;
        self.scan = match found.last() {
            Some(last) if !is_end => ServiceScan { after: Some(last.clone()), next: None },
            // The scan started in the middle, so it continues at the beginning.
            _ if self.scan.after.is_some() => ServiceScan::default(),
            _ => ServiceScan { after: None, next: Some(now.plus(self.options.poll_interval)) },
        };
        Ok(found)
    }
}

impl ServiceScan {
    fn is_due(&self, now: MonotonicTime) -> bool {
        self.next.is_none_or(|next| next <= now)
    }
}

impl<S: ScopeId, R: RoundStore> Iterator for BatchQueue<S, R> {
    type Item = Submission<S>;

    fn next(&mut self) -> Option<Submission<S>> {
        if self.is_late() {
            self.give_back();
        }
        if self.round.is_empty() {
            self.refill();
            if !self.round.is_empty() && self.is_late() {
                self.give_back_late_round();
            }
        }
        let submission = into_submission(self.round.pop_front()?)?;
        let mut list = Vec::new();
        while let Some(listed) = self.round.pop_front_if(|batch| batch.taken.joins_list) {
            list.push(into_submission(listed)?.with_taken_at(self.asked_at));
        }
        Some(submission.with_list(list).with_taken_at(self.asked_at))
    }
}

impl<S: ScopeId, R: RoundStore> Drop for BatchQueue<S, R> {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl<S: ScopeId, R: RoundStore> fmt::Debug for BatchQueue<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchQueue")
            .field("buffered", &self.round.len())
            .field("wake_up", &self.wake_up)
            .field("scan", &self.scan)
            .finish_non_exhaustive()
    }
}

/// The batches of a round, by service.
fn by_service(round: Option<&Round>) -> HashMap<&ServiceId, Vec<&TakenBatch>> {
    let mut services = HashMap::<_, Vec<_>>::new();
    for taken in round.into_iter().flat_map(|round| &round.batches) {
        services.entry(&taken.service_id).or_default().push(taken);
    }
    services
}

/// Whether the service id is valid for this ledger. A batch that cannot be sent must not be marked as being
/// with a submitter.
fn is_scope<S: ScopeId>(service: &ServiceId) -> bool {
    match S::from_service_id(service) {
        Ok(_) => true,
        Err(error) => {
            error!(
                service:% = service, error:% = error;
                "the service id is not valid for this ledger; its batches are not sent"
            );
            false
        }
    }
}

fn into_submission<S: ScopeId>(batch: BufferedBatch) -> Option<Submission<S>> {
    let BufferedBatch { taken, permit } = batch;
    let scope = S::from_service_id(&taken.service_id).ok()?;
    let attempt_id = taken.attempt_id();
    let bytes = BatchBytes::with_guard(taken.serialized_batch, permit);
    let submission = Submission::new(taken.batch_id.to_string(), scope, bytes);
    let submission = submission.with_attempt_id(attempt_id).with_deadline(taken.deadline);
    Some(submission.with_trace(taken.trace))
}
