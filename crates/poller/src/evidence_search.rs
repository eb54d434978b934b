use std::{collections::HashSet, mem::take, sync::Arc, time::Duration};

use grid_batch_core::evidence::{Evidence, EvidenceReport, Resolution, UnresolvedBatch};
use grid_batch_core::polling::PollPace;
use grid_batch_core::{BatchError, BatchResult, Clock, MonotonicTime, ServiceId};
use grid_batch_nodes::RequestLimits;
use grid_batch_support::catch_panic;
use grid_batch_work::{DueKind, Look, Search, Work, WorkTable};
use log::{Level, debug, info, log, warn};
use tokio::time::Instant;

use crate::{
    InconclusivePolicy, MonitorCounters, MonitorOptions, earlier, evidence,
    evidence_requests::{RequestSize, end_of, one_for_each},
    failure_log::FailureLog,
    observed,
    per_service_queue::{PerServiceQueue, ServiceJob},
    resolution::{admitted, evidence_due_after, is_too_early, resolve},
};

/// Returns the policy of a service.
pub(crate) type InconclusivePolicyFn = Arc<dyn Fn(&ServiceId) -> InconclusivePolicy + Send + Sync>;

/// Decides when to search for evidence, about which batches, and what follows from it.
pub(crate) struct EvidenceSearch {
    /// Unresolved batches for which evidence is to be searched.
    queue: PerServiceQueue<UnresolvedBatch>,
    table: WorkTable,
    /// The number of batches of a service in one request.
    request_size: RequestSize,
    /// Batches that may be unresolved. They are read once their statuses are written.
    candidates: Vec<Candidates>,
    /// The time between two checks of the reported batches of a service.
    pause: Duration,
    request_failures: FailureLog,
    read_failures: FailureLog,
    not_admitted: FailureLog,
    policy: InconclusivePolicyFn,
    options: MonitorOptions,
    clock: Arc<dyn Clock>,
    counters: MonitorCounters,
}

/// Batches of one service that may be unresolved.
struct Candidates {
    service_id: String,
    batch_ids: Vec<String>,
    /// Those for which evidence is due, for example because the ledger did not report them.
    due: HashSet<String>,
}

/// Whether a request failed because a node could not be reached or cannot answer now.
pub(crate) fn is_outage(error: &BatchError) -> bool {
    matches!(error, BatchError::Unavailable(_))
}

impl EvidenceSearch {
    pub(crate) fn new(
        policy: InconclusivePolicyFn,
        options: MonitorOptions,
        clock: Arc<dyn Clock>,
        counters: MonitorCounters,
        limits: RequestLimits,
        table: WorkTable,
    ) -> Self {
        change_all(&mut table.lock(), |search| {
            (search.is_queued, search.is_in_flight) = (false, false);
        });
        Self {
            queue: PerServiceQueue::new(Duration::ZERO, limits),
            table,
            request_size: RequestSize::default(),
            candidates: Vec::new(),
            pause: options.quiet_after / PollPace::PART,
            request_failures: FailureLog::of("evidence requests"),
            read_failures: FailureLog::of("reads of unresolved batches"),
            not_admitted: FailureLog::of("searches for evidence"),
            policy,
            options,
            clock,
            counters,
        }
    }

    /// Adds the candidates of a ledger's answer: the batches for which evidence is due, and others that the ledger
    /// reported.
    pub(crate) fn add_candidates(
        &mut self,
        service_id: &str,
        due: &[String],
        reported: impl Iterator<Item = String>,
    ) {
        let now = self.clock.monotonic();
        let mut work = self.table.lock();
        let batch_ids = evidence::candidates(&mut work, service_id, due, reported, self.pause, now);
        if !batch_ids.is_empty() {
            let due = due.iter().cloned().collect();
            let service_id = service_id.to_owned();
            self.candidates.push(Candidates { service_id, batch_ids, due });
        }
    }

    /// Reads the candidates from the store, and queues those for which evidence is due.
    pub(crate) fn read_candidates(
        &mut self,
        pace: PollPace,
        read: impl Fn(&str, &[String]) -> BatchResult<Vec<UnresolvedBatch>>,
    ) {
        let now = self.clock.monotonic();
        let scheduled = evidence::take_scheduled(&mut self.table.lock(), now).into_iter();
        // They are due whether or not the ledger reported them when it was last asked.
        self.candidates.extend(scheduled.map(|(service_id, batch_ids)| Candidates {
            service_id,
            due: batch_ids.iter().cloned().collect(),
            batch_ids,
        }));
        for Candidates { service_id, batch_ids, due } in take(&mut self.candidates) {
            match read(&service_id, &batch_ids) {
                Ok(batches) => {
                    self.read_failures.succeeded(&service_id);
                    for batch in batches {
                        let is_due = due.contains(&batch.batch_id.to_string());
                        self.queue_if_due(batch, is_due, pace, now);
                    }
                }
                Err(error) => self.read_failures.failed(&service_id, &error),
            }
        }
    }

    /// Takes the batches whose earlier attempts can no longer arrive and for which no request is in
    /// flight, and queues the last searches that are due.
    pub(crate) fn take_over(&mut self, has_request: impl Fn(&str) -> bool) -> Vec<UnresolvedBatch> {
        let now = self.clock.monotonic();
        let last_looks = earlier::take_last_looks(&mut self.table.lock(), now);
        last_looks.into_iter().for_each(|batch| self.push(batch));
        let limit = self.options.late_arrival_limit;
        earlier::take_over(&mut self.table.lock(), limit, now, has_request)
    }

    /// Queues a batch unless it is queued already.
    fn push(&mut self, batch: UnresolvedBatch) {
        if !self.change(&batch, |search| std::mem::replace(&mut search.is_queued, true)) {
            self.queue.push(batch);
        }
    }

    /// Changes the record of the search for evidence about a batch.
    fn change<R>(&self, batch: &UnresolvedBatch, change: impl FnOnce(&mut Search) -> R) -> R {
        let mut work = self.table.lock();
        let mut entered = work.enter(batch.service());
        change(evidence::search(&mut entered, batch, self.clock.monotonic()).1)
    }

    fn queue_if_due(
        &mut self,
        batch: UnresolvedBatch,
        is_due: bool,
        pace: PollPace,
        now: MonotonicTime,
    ) {
        earlier::observe(&mut self.table.lock(), &batch, self.options.late_arrival_limit, now);
        // Otherwise, each slow search would be followed by another at once. The wait for earlier attempts, which ends
        // only when no search is under way, would then never end.
        if self.change(&batch, |search| search.is_in_flight) {
            return;
        }
        let Some(due_after) = evidence_due_after(&batch, is_due, &self.options) else {
            return;
        };
        // Searching too early does no harm, so stored times may be used as well.
        let time = self.clock.now();
        let mut work = self.table.lock();
        let time_in_state = observed::see(&mut work, &batch, now).max(time.since(batch.since));
        if time_in_state < due_after {
            let due = now.plus(due_after - time_in_state);
            return evidence::defer_reported(&mut work, &batch, due);
        }
        let next = now.plus(pace.pause(time.since(batch.submitted_at)));
        evidence::defer(&mut work, &batch, next);
        drop(work);
        self.push(batch);
    }

    /// Starts the next evidence request, about several batches of one service, if one may start now.
    pub(crate) fn start_next(&mut self) -> Option<Vec<UnresolvedBatch>> {
        let mut batches = vec![self.queue.start_next(Instant::now())?];
        let service = batches[0].service_id.clone();
        batches.extend(self.queue.take_more(service.as_str(), self.request_size.others()));
        for batch in &batches {
            self.change(batch, |search| {
                (search.is_queued, search.is_in_flight) = (false, true);
            });
        }
        Some(batches)
    }

    /// Ends an evidence request, and returns the resolutions that follow from it.
    pub(crate) fn ended(
        &mut self,
        batches: Vec<UnresolvedBatch>,
        reports: BatchResult<Vec<BatchResult<EvidenceReport>>>,
    ) -> Vec<(UnresolvedBatch, Resolution)> {
        for batch in &batches {
            self.change(batch, |search| search.is_in_flight = false);
        }
        let reports = one_for_each(&batches, reports);
        if let Some(service) = batches.first().map(|batch| batch.service_id.clone()) {
            let end = end_of(&reports);
            self.request_size.ended(end);
            self.queue.ended(service.as_str(), end);
        }
        let ended = batches.into_iter().zip(reports);
        ended.filter_map(|(batch, report)| self.batch_ended(batch, report)).collect()
    }

    fn batch_ended(
        &mut self,
        batch: UnresolvedBatch,
        report: BatchResult<EvidenceReport>,
    ) -> Option<(UnresolvedBatch, Resolution)> {
        match report {
            Ok(report) => {
                self.request_failures.succeeded(batch.service());
                let policy = self.policy(&batch);
                let report = admitted(&batch, report, &self.options, &mut self.not_admitted);
                let resolution = self.resolve(&batch, &report, policy);
                Some((batch, resolution))
            }
            Err(error) => {
                self.counters.count(|stats| stats.evidence_failures += 1);
                self.request_failures.failed(batch.service(), &error);
                let resolution = self.without_usable_answer(&batch, &error)?;
                Some((batch, resolution))
            }
        }
    }

    /// The resolution if no evidence was found because the request failed. A batch is held only if it cannot continue
    /// by itself: when a node that did not answer is back, evidence is searched again.
    fn without_usable_answer(
        &self,
        batch: &UnresolvedBatch,
        error: &BatchError,
    ) -> Option<Resolution> {
        if is_outage(error) {
            let now = self.clock.monotonic();
            let at = now.plus(self.options.pace().outage_pause());
            evidence::schedule(&mut self.table.lock(), batch, Look::Again, at);
            return None;
        }
        let report = EvidenceReport::with_detail(Evidence::Inconclusive, error.to_string());
        Some(self.resolve(batch, &report, InconclusivePolicy::Hold))
    }

    fn resolve(
        &self,
        batch: &UnresolvedBatch,
        report: &EvidenceReport,
        policy: InconclusivePolicy,
    ) -> Resolution {
        let now = self.clock.monotonic();
        let seen_for = observed::seen_for(&self.table.lock(), batch, now);
        let time_in_state = seen_for.max(self.clock.now().since(batch.since));
        // A batch that was reported as invalid waits until no earlier attempt can arrive.
        let may_be_held = !batch.held && !batch.invalid_reported && report.provable_in.is_none();
        if let Some(again_in) = [report.again_in, report.provable_in].into_iter().flatten().min() {
            let at = now.plus(again_in);
            evidence::schedule(&mut self.table.lock(), batch, Look::Again, at);
        }
        if report.evidence == Evidence::Inconclusive && may_be_held {
            self.schedule_hold(batch, seen_for, now);
        }
        if is_too_early(batch, report.evidence, time_in_state, &self.options, policy) {
            return Resolution::Evidence(Evidence::Inconclusive);
        }
        let left = self.options.absence_counts_after(batch).saturating_sub(seen_for);
        if report.evidence == Evidence::Absent && !left.is_zero() {
            evidence::schedule(&mut self.table.lock(), batch, Look::Absence, now.plus(left));
        }
        let resolution = resolve(batch, report, seen_for, &self.options, policy);
        self.log_and_count(batch, &resolution);
        resolution
    }

    /// Searches are repeated at growing pauses. The hold must not wait for the end of a pause.
    fn schedule_hold(&self, batch: &UnresolvedBatch, seen_for: Duration, now: MonotonicTime) {
        let left = self.options.hold_after.saturating_sub(seen_for);
        if !left.is_zero() {
            evidence::schedule(&mut self.table.lock(), batch, Look::Hold, now.plus(left));
        }
    }

    fn policy(&self, batch: &UnresolvedBatch) -> InconclusivePolicy {
        let policy = catch_panic(|| Ok((self.policy)(&batch.service_id)));
        self.counters.count_panic(policy).unwrap_or_else(|error| {
            let UnresolvedBatch { service_id, batch_id, .. } = batch;
            warn!(
                service:% = service_id, batch_id:% = batch_id, error:% = error;
                "the inconclusive policy failed; the batch is held if its evidence is inconclusive"
            );
            InconclusivePolicy::Hold
        })
    }

    fn log_and_count(&self, batch: &UnresolvedBatch, resolution: &Resolution) {
        let UnresolvedBatch { service_id, batch_id, state, .. } = batch;
        let attempt = batch.attempt_id.attempt;
        match resolution {
            Resolution::Hold(reason) | Resolution::HoldUntilDecision(reason) => {
                self.counters.count(|stats| stats.held += 1);
                // The hold is logged when it is recorded.
                debug!(
                    service:% = service_id, batch_id:% = batch_id, attempt = attempt,
                    reason = reason.as_str(); "batch to be held"
                );
            }
            Resolution::Evidence(
                evidence @ (Evidence::Committed
                | Evidence::Absent
                | Evidence::Lost
                | Evidence::Repeatable),
            ) => {
                self.counters.count(|stats| match evidence {
                    Evidence::Committed => stats.committed += 1,
                    _ => stats.absent += 1,
                });
                // The effect of absence is logged when it is recorded.
                let level = match evidence {
                    Evidence::Committed => Level::Info,
                    _ => Level::Debug,
                };
                log!(
                    level, service:% = service_id, batch_id:% = batch_id, attempt = attempt,
                    state:% = state, evidence:? = evidence; "batch resolved by evidence"
                );
            }
            Resolution::Invalid(_, reason) => {
                self.counters.count(|stats| stats.never_applicable += 1);
                info!(
                    service:% = service_id, batch_id:% = batch_id, attempt = attempt,
                    reason = reason.as_str(); "batch can never be applied"
                );
            }
            Resolution::Evidence(_) | Resolution::EarlierCannotArrive => {}
        }
    }

    /// The time until the next scheduled search.
    pub(crate) fn next_scheduled(&self) -> Option<Duration> {
        let now = self.clock.monotonic();
        let work = self.table.lock();
        let times = [work.due.next(DueKind::Look), earlier::next(&work, now)];
        times.into_iter().flatten().map(|at| at.since(now)).min()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }

    /// Removes the requests that have not started.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        change_all(&mut self.table.lock(), |search| search.is_queued = false);
    }
}

/// Changes the records of all searches.
fn change_all(work: &mut Work, change: impl Fn(&mut Search)) {
    let batches = work.services.values_mut().flat_map(|service| service.batches.values_mut());
    batches.filter_map(|batch| batch.search.as_deref_mut()).for_each(change);
}
