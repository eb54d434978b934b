use std::{mem::take, sync::Arc, time::Duration};

use grid_batch_core::{
    BatchResult, Clock, Evidence, PollPace, Resolution, ServiceId, Timestamp, UnresolvedBatch,
};
use log::{info, warn};
use tokio::time::Instant;

use crate::{
    MonitorCounters, MonitorOptions, Undecided,
    agenda::Agenda,
    health::Troubles,
    judge::{believable_from, judge, resolution},
    line::{Job, Line},
    panics::catch,
};

/// Says what becomes of a service's batches of which nothing can be proved.
pub(crate) type Policy = Arc<dyn Fn(&ServiceId) -> Undecided + Send + Sync>;

/// The search for evidence: about which batches, when, and what it comes to.
pub(crate) struct Inquest {
    /// Doubts that evidence is to be looked for.
    doubts: Line<UnresolvedBatch>,
    /// Batches of services that may be in doubt, when what was said of them is written.
    suspects: Vec<(String, Vec<String>)>,
    agenda: Agenda,
    proving: Troubles,
    doubting: Troubles,
    policy: Policy,
    options: MonitorOptions,
    clock: Arc<dyn Clock>,
    counters: MonitorCounters,
}

impl Inquest {
    pub(crate) fn new(
        policy: Policy,
        options: MonitorOptions,
        clock: Arc<dyn Clock>,
        counters: MonitorCounters,
    ) -> Self {
        let pause = options.quiet_after / PollPace::PART;
        Self {
            doubts: Line::new(Duration::ZERO),
            suspects: Vec::new(),
            agenda: Agenda::new(pause, options.longest_interval),
            proving: Troubles::with("looking for evidence about the batches"),
            doubting: Troubles::with("reading the doubts about the batches"),
            policy,
            options,
            clock,
            counters,
        }
    }

    /// Takes note of a ledger's answer.
    pub(crate) fn suspect(
        &mut self,
        service_id: &str,
        unknown: &[String],
        said: impl Iterator<Item = String>,
    ) {
        let suspects = self.agenda.suspects(service_id, unknown, said, self.clock.now());
        if !suspects.is_empty() {
            self.suspects.push((service_id.to_owned(), suspects));
        }
    }

    /// Reads how the suspects stand, and lines up those that evidence is to be looked for.
    pub(crate) fn examine(
        &mut self,
        pace: PollPace,
        doubts: impl Fn(&str, &[String]) -> BatchResult<Vec<UnresolvedBatch>>,
    ) {
        let now = self.clock.now();
        self.suspects.append(&mut self.agenda.take_appointed(now));
        for (service_id, batch_ids) in take(&mut self.suspects) {
            match doubts(&service_id, &batch_ids) {
                Ok(doubts) => {
                    self.doubting.is_well(&service_id);
                    doubts.into_iter().for_each(|doubt| self.weigh(doubt, pace, now));
                }
                Err(error) => self.doubting.failed(&service_id, &error),
            }
        }
    }

    fn weigh(&mut self, doubt: UnresolvedBatch, pace: PollPace, now: Timestamp) {
        let Some(from) = judge(&doubt, &self.options) else { return };
        if now < from {
            return self.agenda.put_off(&doubt, from, now);
        }
        let next = pace.next_check(doubt.submitted_at, Some(now));
        self.agenda.put_off(&doubt, next, now);
        if !self.doubts.waiting().any(|other| other.batch_id == doubt.batch_id) {
            self.doubts.push(doubt);
        }
    }

    /// The next doubt that evidence may be looked for now, which it is.
    pub(crate) fn begin(&mut self) -> Option<UnresolvedBatch> {
        self.doubts.begin(Instant::now())
    }

    /// What a doubt comes to, where something was found.
    pub(crate) fn found(
        &mut self,
        doubt: UnresolvedBatch,
        evidence: BatchResult<Evidence>,
    ) -> Option<(UnresolvedBatch, Resolution)> {
        self.doubts.ended(doubt.service());
        match evidence {
            Ok(evidence) => {
                self.proving.is_well(doubt.service());
                let resolution = self.decide(&doubt, evidence);
                Some((doubt, resolution))
            }
            Err(error) => {
                self.counters.count(|stats| stats.evidence_failed += 1);
                self.proving.failed(doubt.service(), &error);
                None
            }
        }
    }

    fn decide(&mut self, doubt: &UnresolvedBatch, evidence: Evidence) -> Resolution {
        let now = self.clock.now();
        let believable = believable_from(doubt, &self.options);
        if evidence == Evidence::Absent && now < believable {
            self.agenda.appoint(doubt, believable);
        }
        let resolution = resolution(doubt, evidence, now, &self.options, self.policy(doubt));
        self.report(doubt, &resolution);
        resolution
    }

    fn policy(&self, doubt: &UnresolvedBatch) -> Undecided {
        let asked = self.counters.survive(catch(|| Ok((self.policy)(&doubt.service_id))));
        asked.unwrap_or_else(|error| {
            let UnresolvedBatch { service_id, batch_id, .. } = doubt;
            warn!(
                service:% = service_id, batch:% = batch_id, error:% = error;
                "nobody says what to do when nothing can be proved; a person must"
            );
            Undecided::Hold
        })
    }

    fn report(&self, doubt: &UnresolvedBatch, resolution: &Resolution) {
        let UnresolvedBatch { service_id, batch_id, state, .. } = doubt;
        let attempt = doubt.attempt_id.attempt;
        match resolution {
            Resolution::Hold(reason) => {
                self.counters.count(|stats| stats.held += 1);
                warn!(
                    service:% = service_id, batch:% = batch_id, attempt = attempt,
                    reason = reason.as_str(); "a batch is held"
                );
            }
            Resolution::Evidence(
                evidence @ (Evidence::Committed | Evidence::Absent | Evidence::Repeatable),
            ) => {
                self.counters.count(|stats| match evidence {
                    Evidence::Committed => stats.committed += 1,
                    _ => stats.absent += 1,
                });
                info!(
                    service:% = service_id, batch:% = batch_id, attempt = attempt,
                    state:% = state, evidence:? = evidence; "a doubt is settled"
                );
            }
            Resolution::Evidence(_) => {}
        }
    }

    /// How long until a batch is to be looked at again, whether it is asked for or not.
    pub(crate) fn next_appointment(&self) -> Option<Duration> {
        self.agenda.next_appointment().map(|at| at.since(self.clock.now()))
    }

    pub(crate) fn under_way(&self) -> usize {
        self.doubts.under_way()
    }

    /// Begins nothing more.
    pub(crate) fn clear(&mut self) {
        self.doubts.clear();
    }
}
