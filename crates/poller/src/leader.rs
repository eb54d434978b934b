use std::collections::HashSet;

use grid_batch_core::evidence::{Evidence, Resolution, UnresolvedBatch};
use grid_batch_core::polling::{BatchId, BatchStatus};
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_nodes::{RequestEnd, RequestLimits};
use grid_batch_support::{Delays, GroupPause, Shutdown, rng};
use grid_batch_work::{PollCause, WorkTable};
use log::{debug, warn};
use tokio::{
    runtime::Handle,
    sync::{
        mpsc::{UnboundedReceiver, unbounded_channel},
        watch,
    },
    time::{Instant, sleep_until},
};

use crate::{
    evidence_search::{EvidenceSearch, is_outage},
    failure_log::FailureLog,
    instant::after,
    ledger_requests::{LedgerReply, LedgerRequests, StatusRequest, group_by_service},
    parts::PollerParts,
    pending_writes::PendingWrites,
    per_service_queue::PerServiceQueue,
    polls::Polls,
    service_search::ServiceSearch,
    stalled::StalledServices,
    stats::to_u64,
    status_answer::StatusAnswer,
    store_health::StoreHealth,
};

/// Makes all decisions of a polling monitor and all calls to the store.
pub(crate) struct Leader<I, T> {
    parts: PollerParts<I, T>,
    runtime: Handle,
    shutdown: Shutdown,
    ledger: LedgerRequests<I, T>,
    replies: UnboundedReceiver<LedgerReply<I, T>>,
    table: WorkTable,
    schedule: Polls,
    service_search: ServiceSearch,
    requests: PerServiceQueue<StatusRequest<I>>,
    /// Shared by status and evidence requests.
    limits: RequestLimits,
    /// Changes when a node is back.
    node_returns: watch::Receiver<u64>,
    evidence: EvidenceSearch,
    /// Status and evidence requests take turns when both wait for a connection.
    evidence_is_next: bool,
    writes: PendingWrites<I, T>,
    write_pause: GroupPause,
    store_health: StoreHealth,
    request_failures: FailureLog,
    stalled: StalledServices,
}

impl<I, T> Leader<I, T>
where
    I: BatchId + 'static,
    T: BatchStatus + PartialEq + Send + 'static,
{
    pub(crate) fn new(parts: PollerParts<I, T>, runtime: Handle, shutdown: Shutdown) -> Self {
        let options = &parts.options;
        let limits = parts.limits();
        let table = parts.trigger.table().clone();
        let (to_leader, replies) = unbounded_channel();
        let ledger = LedgerRequests {
            runtime: runtime.clone(),
            replies: to_leader,
            counters: parts.counters().clone(),
            answer_limit: options.answer_limit,
            nodes: parts.nodes.clone(),
        };
        Self {
            schedule: Polls::new(options, table.clone()),
            service_search: ServiceSearch::new(options.poll_interval),
            requests: PerServiceQueue::new(options.trigger_gap, limits.clone()),
            evidence: parts.evidence_search(limits.clone()),
            limits,
            node_returns: parts.nodes.returns(),
            evidence_is_next: false,
            writes: PendingWrites::new(),
            write_pause: GroupPause::BRIEF,
            store_health: StoreHealth::new(Delays::new(options.store_backoff, rng(options.seed))),
            request_failures: FailureLog::of("status requests"),
            stalled: StalledServices::new(options.warn_after, table.clone()),
            table,
            parts,
            runtime,
            shutdown,
            ledger,
            replies,
        }
    }

    /// Polls until a shutdown is requested, and returns the parts of the monitor.
    pub(crate) fn run(mut self) -> PollerParts<I, T> {
        while !self.shutdown.is_requested() {
            self.write();
            self.read();
            self.start_requests();
            self.check_stalled_services();
            self.prune();
            self.wait();
        }
        self.drain();
        self.parts
    }

    fn write(&mut self) {
        if self.writes.is_empty() || self.store_backs_off() {
            return;
        }
        if !self.shutdown.is_requested() && self.write_pause.resume_at().is_some() {
            return;
        }
        let (started, count) = (Instant::now(), self.writes.len());
        let written = self.writes.write(&mut self.parts.store);
        self.write_pause.ended(started.into_std(), count, self.table.ledger_time());
        self.check_store(written);
    }

    /// Reads from the store what to request next.
    ///
    /// Reads only triggered services until all results are written, and not those with results. Otherwise the store would
    /// return batches that were just polled, and the writes would pile up.
    fn read(&mut self) {
        self.schedule.schedule_accepted(self.parts.clock.monotonic());
        self.end_waits_for_earlier_attempts();
        for read in [Self::read_candidates, Self::search_services] {
            if self.writes.is_empty() && !self.store_backs_off() {
                read(self);
            }
        }
        let writes_soon = self.writes.is_empty() || self.write_pause.resume_at().is_some();
        if writes_soon && !self.store_backs_off() {
            self.read_services();
        }
    }

    /// Forgets what no view needs any more.
    fn prune(&self) {
        let (now, keep) = (self.parts.clock.monotonic(), self.parts.options.keep());
        self.table.lock().prune(now, keep, |service| self.requests.is_busy(service));
    }

    /// Ends the waits that are over, and polls their services once this is written.
    fn end_waits_for_earlier_attempts(&mut self) {
        if !self.writes.is_empty() || self.store_backs_off() {
            return;
        }
        for batch in self.evidence.take_over(|service| self.requests.is_busy(service)) {
            let UnresolvedBatch { service_id, batch_id, attempt_id, .. } = &batch;
            debug!(
                service:% = service_id, batch_id:% = batch_id, attempt = attempt_id.attempt;
                "no earlier attempt can arrive any more"
            );
            self.parts.trigger.trigger(service_id.as_str());
            self.writes.add_resolution(batch, Resolution::EarlierCannotArrive);
        }
    }

    fn read_candidates(&mut self) {
        let store = &self.parts.store;
        let pace = self.parts.options.pace();
        self.evidence.read_candidates(pace, |service, ids| store.unresolved_batches(service, ids));
    }

    /// Adds services to the schedule whose stored batches were not reported to the monitor, because they come from an
    /// earlier run or from another instance.
    fn search_services(&mut self) {
        if !self.service_search.is_due(Instant::now()) {
            return;
        }
        let started = Instant::now();
        let Self { parts: PollerParts { store, clock, options, .. }, schedule, .. } = self;
        let monotonic = clock.monotonic();
        let found = |service: &str| schedule.found(service, monotonic);
        let searched = store.search(clock.now(), schedule.store_pace(), options.batch_limit, found);
        if self.check_store(searched).is_some() {
            let now = Instant::now();
            self.service_search.ended(now, now - started);
        }
    }

    /// Reads the batches of the services that were triggered or are due, and queues requests for them.
    fn read_services(&mut self) {
        let now = Instant::now();
        let written = self.writes.services();
        let is_ready = |service: &str| self.requests.is_ready(service, now);
        let triggered =
            self.parts.trigger.take(|service| is_ready(service) && !written.contains(service));
        triggered.iter().for_each(|service| self.limits.end_pause(service));
        let due = self.take_due(&triggered);
        if triggered.is_empty() && due.is_empty() {
            return;
        }
        let services: Vec<String> = triggered.iter().chain(&due).cloned().collect();
        let found = self.parts.pending_batches_of(&services);
        let Some(batches) = self.check_store(found) else {
            return self.put_back(&triggered, &due);
        };
        self.queue_requests(batches, &triggered);
        for service in &triggered {
            self.parts.trigger.was_read(service, self.requests.is_busy(service));
        }
        for service in services.iter().filter(|service| !self.requests.is_busy(service)) {
            self.schedule.remove(service);
        }
    }

    /// Takes other services that are due, at most as many as there are connections.
    fn take_due(&mut self, triggered: &[String]) -> Vec<String> {
        if !self.writes.is_empty() {
            return Vec::new();
        }
        let free = self.parts.connections().saturating_sub(self.in_flight());
        let now = self.parts.clock.monotonic();
        let Self { schedule, requests, parts, .. } = self;
        let count = free.min(parts.options.batch_limit);
        let triggered: HashSet<&str> = triggered.iter().map(String::as_str).collect();
        let is_busy = |service: &str| requests.is_busy(service) || triggered.contains(service);
        schedule.take_due(now, count, is_busy)
    }

    fn put_back(&self, triggered: &[String], due: &[String]) {
        let now = self.parts.clock.monotonic();
        triggered.iter().for_each(|service| self.parts.trigger.put_back(service));
        due.iter().for_each(|service| self.schedule.put_back(service, now));
    }

    fn queue_requests(&mut self, batches: Vec<I>, triggered: &[String]) {
        let now = self.parts.clock.monotonic();
        let triggered: HashSet<&str> = triggered.iter().map(String::as_str).collect();
        for request in group_by_service(batches) {
            let batches = request.batches.iter().map(|batch| (batch.get_id(), batch.is_held()));
            let cause = if triggered.contains(request.service_id.as_str()) {
                PollCause::Trigger
            } else {
                PollCause::Schedule
            };
            self.schedule.asked_about(&request.service_id, batches, cause, now);
            let requests = request.split(self.parts.options.batch_limit);
            requests.into_iter().for_each(|request| self.requests.push(request));
        }
    }

    fn check_stalled_services(&mut self) {
        let now = self.parts.clock.monotonic();
        let Some(services) = self.stalled.take_suspected(now) else { return };
        // Another instance may have taken over a service, or ended its batch. If the store does not answer, nothing is
        // forgotten.
        if !services.is_empty()
            && !self.store_backs_off()
            && let found = self.parts.pending_batches_of(&services)
            && let Some(under_way) = self.check_store(found)
        {
            self.stalled.keep_only(&services, &under_way);
        }
        let count = self.stalled.report(now);
        self.parts.counters().count(|stats| stats.stalled_services = to_u64(count));
    }

    /// Starts requests while there are connections.
    fn start_requests(&mut self) {
        let connections = self.parts.connections();
        self.limits.set_connections(connections);
        while self.in_flight() < connections {
            let started = (self.evidence_is_next && self.start_evidence_request())
                || self.start_status_request()
                || self.start_evidence_request();
            if !started {
                break;
            }
        }
    }

    fn start_status_request(&mut self) -> bool {
        let Some(request) = self.requests.start_next(Instant::now()) else { return false };
        self.ledger.request_statuses(self.parts.status_reader.clone(), request);
        self.evidence_is_next = true;
        true
    }

    fn start_evidence_request(&mut self) -> bool {
        let Some(reader) = self.parts.evidence_reader.clone() else { return false };
        if self.evidence.in_flight() >= most_evidence_requests(self.parts.connections()) {
            return false;
        }
        let Some(unresolved) = self.evidence.start_next() else { return false };
        self.ledger.request_evidence(reader, unresolved);
        self.evidence_is_next = false;
        true
    }

    /// Waits until there is something to do, and handles the replies that have arrived.
    fn wait(&mut self) {
        let wake_up = self.next_wake_up();
        let reply = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.shutdown.requested() => None,
                reply = self.replies.recv() => reply,
                () = self.parts.trigger.woken() => None,
                Ok(()) = self.node_returns.changed() => {
                    self.limits.end_pauses();
                    self.schedule.retry_failed(|_| true, self.parts.clock.monotonic());
                    None
                }
                () = sleep_until(wake_up) => None,
            }
        });
        self.handle_replies(reply);
    }

    fn next_wake_up(&mut self) -> Instant {
        let now = Instant::now();
        let search = self.service_search.next(now);
        if let Some(retry_at) = self.store_health.backs_off_until(now) {
            return retry_at;
        }
        if !self.writes.is_empty() {
            // Only triggered services are read before the pending writes are made.
            return after(now, self.write_pause.wait());
        }
        let is_free = self.in_flight() < self.parts.connections();
        let poll = self.schedule.wait(self.parts.clock.monotonic()).filter(|_| is_free);
        let retry = self.limits.next_pause_end().filter(|_| is_free);
        let waits = [poll, retry, self.evidence.next_scheduled()];
        let is_waiting = !self.requests.is_empty() || self.parts.trigger.has_requests();
        let gap_end = self.requests.next_gap_end(now).filter(|_| is_waiting);
        let times = waits.into_iter().flatten().map(|wait| after(now, wait)).chain(gap_end);
        times.fold(search, Instant::min)
    }

    fn handle_replies(&mut self, first: Option<LedgerReply<I, T>>) {
        let mut next = first;
        while let Some(reply) = next {
            match reply {
                LedgerReply::Statuses(request, answer) => self.handle_statuses(request, answer),
                LedgerReply::Evidence(unresolved, reports) => {
                    for (batch, resolution) in self.evidence.ended(unresolved, reports) {
                        self.handle_resolution(batch, resolution);
                    }
                }
            }
            next = self.replies.try_recv().ok();
        }
        self.retry_services_of_returned_nodes();
    }

    /// Polls the services of a node that answers again, without waiting for the end of their pauses.
    fn retry_services_of_returned_nodes(&mut self) {
        let nodes = self.limits.take_returned();
        if nodes.is_empty() {
            return;
        }
        let Self { schedule, limits, parts, .. } = self;
        let is_back = |service: &str| limits.is_at(service, &nodes);
        schedule.retry_failed(is_back, parts.clock.monotonic());
    }

    fn handle_statuses(&mut self, request: StatusRequest<I>, answer: BatchResult<StatusAnswer<T>>) {
        let StatusRequest { service_id, batches } = request;
        self.requests.ended(&service_id, RequestEnd::of(&answer));
        match answer {
            Ok(answer) => self.handle_answer(service_id, batches, answer),
            Err(error) => {
                let now = self.parts.clock.monotonic();
                self.schedule.failed(&service_id, is_outage(&error), now);
                self.parts.counters().count(|stats| stats.failed += 1);
                self.request_failures.failed(&service_id, &error);
                self.search_after_unusable_answer(&service_id, &batches, &error);
                self.writes.add_checked(batches);
            }
        }
    }

    /// Searches for evidence after an unusable answer, because a server that does not behave like a ledger may never do
    /// so. If a node does not answer, the monitor waits for it instead.
    fn search_after_unusable_answer(&mut self, service: &str, batches: &[I], error: &BatchError) {
        if self.parts.evidence_reader.is_some() && !is_outage(error) {
            let ids: Vec<String> = batches.iter().map(|batch| batch.get_id().to_owned()).collect();
            self.evidence.add_candidates(service, &ids, std::iter::empty());
        }
    }

    fn handle_answer(&mut self, service_id: String, batches: Vec<I>, answer: StatusAnswer<T>) {
        let StatusAnswer { reported, not_reported } = answer;
        self.parts.counters().count(|stats| {
            stats.answered += 1;
            stats.not_reported += to_u64(not_reported.len());
        });
        debug!(
            service = service_id.as_str(), reported = reported.len(),
            not_reported = not_reported.len(); "statuses received"
        );
        self.request_failures.succeeded(&service_id);
        self.schedule_next(&service_id, &reported, &not_reported);
        if let Some(reader) = &self.parts.evidence_reader {
            let (needed, others): (Vec<&T>, Vec<&T>) = reported
                .iter()
                .partition(|status| reader.needs_evidence(&service_id, status.get_id()));
            let id = |status: &T| status.get_id().to_owned();
            let due: Vec<String> =
                needed.into_iter().map(id).chain(not_reported.iter().cloned()).collect();
            let is_open = |status: &&T| !(status.is_final() && status.is_committed());
            self.evidence.add_candidates(
                &service_id,
                &due,
                others.into_iter().filter(is_open).map(id),
            );
        }
        let not_reported: HashSet<String> = not_reported.into_iter().collect();
        let (without_status, with_status): (Vec<I>, Vec<I>) =
            batches.into_iter().partition(|batch| not_reported.contains(batch.get_id()));
        self.writes.add_checked(without_status);
        self.writes.add_statuses(service_id, with_status, reported);
    }

    /// Removes the service from the schedule if all its batches under way have ended.
    fn schedule_next(&mut self, service_id: &str, reported: &[T], not_reported: &[String]) {
        let now = self.parts.clock.monotonic();
        self.schedule.succeeded(service_id);
        let reported_ids = reported.iter().map(|status| (status.get_id(), true));
        let others = not_reported.iter().map(|id| (id.as_str(), false));
        self.schedule.answered(service_id, reported_ids.chain(others), now);
        for status in reported {
            let id = status.get_id();
            if status.is_final() && status.is_committed() {
                self.schedule.committed(service_id, id, now);
            } else if status.is_final() {
                self.schedule.invalid(service_id, id, now);
            } else if status.is_valid() {
                self.schedule.valid(service_id, id);
            } else {
                self.schedule.undecided(service_id, now);
            }
        }
        if !self.requests.is_busy(service_id) {
            self.schedule.remove_if_idle(service_id);
        }
    }

    fn handle_resolution(&mut self, batch: UnresolvedBatch, resolution: Resolution) {
        let (service, id) = (batch.service_id.as_str(), batch.batch_id.to_string());
        let now = self.parts.clock.monotonic();
        match resolution {
            Resolution::Evidence(Evidence::Committed) | Resolution::Invalid(..) => {
                self.schedule.ended(service, &id, now);
                self.schedule.remove_if_idle(service);
            }
            // A batch that is submitted again is polled at the pace of a new one.
            Resolution::Evidence(Evidence::Absent | Evidence::Lost | Evidence::Repeatable) => {
                self.schedule.left(service, &id, now);
                self.schedule.remove_if_idle(service);
            }
            // A held batch is not a reason to report its service as standing still.
            Resolution::Hold(_) | Resolution::HoldUntilDecision(_) => {
                self.stalled.held(service, &id);
            }
            Resolution::Evidence(_) | Resolution::EarlierCannotArrive => {}
        }
        self.writes.add_resolution(batch, resolution);
    }

    /// Waits for the requests in flight, up to the drain limit, and writes their replies.
    fn drain(&mut self) {
        let deadline = after(Instant::now(), self.parts.options.drain_limit);
        self.requests.clear();
        self.evidence.clear();
        loop {
            self.write();
            let now = Instant::now();
            let is_done = self.in_flight() == 0 && self.writes.is_empty();
            if is_done || now >= deadline {
                break;
            }
            let wake_up =
                self.store_health.backs_off_until(now).map_or(deadline, |end| end.min(deadline));
            let reply = self.runtime.block_on(async {
                tokio::select! {
                    reply = self.replies.recv() => reply,
                    () = sleep_until(wake_up) => None,
                }
            });
            self.handle_replies(reply);
        }
        self.discard_rest();
    }

    fn discard_rest(&mut self) {
        let unanswered = self.in_flight();
        let unwritten = self.writes.discard();
        if unanswered + unwritten > 0 {
            warn!(
                unanswered = unanswered, unwritten = unwritten;
                "the polling monitor reached its drain limit; \
                 unanswered requests and unwritten results are requested again by the next run"
            );
        }
    }

    /// Records whether a call of the store succeeded.
    fn check_store<R>(&mut self, result: BatchResult<R>) -> Option<R> {
        match result {
            Ok(value) => {
                self.store_health.succeeded();
                Some(value)
            }
            Err(error) => {
                self.store_health.failed(&error);
                None
            }
        }
    }

    fn store_backs_off(&self) -> bool {
        self.store_health.backs_off_until(Instant::now()).is_some()
    }

    fn in_flight(&self) -> usize {
        self.requests.in_flight() + self.evidence.in_flight()
    }
}

/// The maximum number of connections for evidence requests. A search may wait for several nodes, so some connections
/// are left for status requests.
fn most_evidence_requests(connections: usize) -> usize {
    connections - connections / 4
}
