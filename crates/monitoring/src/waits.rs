use std::sync::Arc;

use grid_batch_api::{LedgerReport, NodeReport};
use grid_batch_core::ledger::{OutageKind, Outcome, RecordedLedger};
use grid_batch_core::queries::WaitReason;
use grid_batch_core::{Clock, MonotonicTime, ServiceId, Timestamp};
use grid_batch_ledger_check::LedgerCheck;
use grid_batch_nodes::{Node, NodePool};
use grid_batch_submitter::DelayedServices;
use grid_batch_support::redact_url;
use grid_batch_work::WorkTable;

/// Returns since when another transaction has kept a row of a service locked, if one does.
pub type LockedSinceFn = dyn Fn(&ServiceId) -> Option<Timestamp> + Send + Sync;

/// Why the batches of services wait, as far as this process knows. It is read from memory.
#[derive(Clone)]
pub struct WaitSources {
    /// The batches under way.
    pub table: WorkTable,
    /// The services whose batches are delayed.
    pub delayed: DelayedServices,
    /// Which nodes do not answer.
    pub check: LedgerCheck,
    /// Returns since when another transaction has kept a row of a service locked.
    pub locked_since: Arc<LockedSinceFn>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// The ledger that the database is bound to, or the one of the settings, and its nodes. It is read from memory.
pub fn ledger_report(check: &LedgerCheck, recorded: Option<RecordedLedger>) -> LedgerReport {
    let now = check.pool().monotonic();
    let is_recorded = recorded.is_some();
    let configured = || check.configured().clone();
    let identity = recorded.map_or_else(configured, |recorded| recorded.identity);
    let nodes = check.pool().nodes().iter();
    LedgerReport {
        kind: identity.kind,
        id: identity.id,
        name: identity.name,
        recorded: is_recorded,
        problem: check.problem(),
        nodes: nodes.map(|node| node_report(check.pool(), node, now)).collect(),
    }
}

fn node_report(pool: &NodePool, node: &Node, now: MonotonicTime) -> NodeReport {
    let outage = pool.outage(node);
    let unanswered = outage.as_ref().filter(|it| it.kind == OutageKind::Unanswered);
    let identity = node.identity();
    NodeReport {
        url: redact_url(node.url()),
        confirmed: identity.is_confirmed(),
        answering: pool.works(node),
        unanswered_seconds: unanswered.map(|outage| outage.lasted.as_secs_f64()),
        problem: match &outage {
            Some(outage) => Some(format!("{}: {}", outage.problem(), outage.reason)),
            None => identity.answer().problem().map(str::to_owned),
        },
        problem_since: outage.as_ref().map(|outage| outage.since.rfc3339_micros()),
        asked_seconds_ago: identity.time_since_asked(now).map(|ago| ago.as_secs_f64()),
        failed_connections: identity.failures(),
    }
}

impl WaitSources {
    /// Why the batches of a service wait. Most reasons are known only for services that this instance owns.
    pub fn of(&self, service_id: &ServiceId) -> Vec<WaitReason> {
        let lock = (self.locked_since)(service_id).map(|since| WaitReason::Lock { since });
        let nodes = self.check.pool().outages_of(service_id.as_str());
        let nodes = nodes.into_iter().map(WaitReason::Node);
        nodes.chain(self.busy(service_id)).chain(lock).chain(self.in_table(service_id)).collect()
    }

    fn busy(&self, service_id: &ServiceId) -> Option<WaitReason> {
        let delayed = self.delayed.of(service_id).filter(|it| it.outcome == Outcome::Busy)?;
        let since = self.clock.now().minus(delayed.waiting_for);
        Some(WaitReason::Busy { since, attempts: delayed.attempts })
    }

    /// The reasons from the table of batches under way: the place that the service needs, and the batches that the
    /// ledger does not report.
    fn in_table(&self, service_id: &ServiceId) -> Vec<WaitReason> {
        let (now, time) = (self.clock.monotonic(), self.clock.now());
        let work = self.table.lock();
        let sending = work.service(service_id.as_str()).map(|service| &service.sending);
        let waiting = sending.filter(|sending| sending.waits.is_some());
        let place = waiting.map(|sending| {
            if sending.node.is_some() { WaitReason::NodePlace } else { WaitReason::InFlightWindow }
        });
        let unconfirmed = work.not_reported(service_id.as_str()).filter_map(|(batch_id, since)| {
            let since = time.minus(now.since(since));
            Some(WaitReason::Unconfirmed { batch_id: batch_id.parse().ok()?, since })
        });
        place.into_iter().chain(unconfirmed).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grid_batch_core::ledger::LedgerIdentity;
    use grid_batch_core::{ItemId, ManualClock};
    use grid_batch_nodes::NodePoolOptions;
    use grid_batch_work::{Delay, UnderWay};

    use super::*;

    const SERVICE: &str = "a::b";
    const NODE: &str = "http://node";

    struct TestSources {
        sources: WaitSources,
        clock: Arc<ManualClock>,
    }

    impl TestSources {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::default());
            let pool = NodePool::with_options(NodePoolOptions {
                urls: vec![NODE.to_owned()],
                clock: Arc::<ManualClock>::clone(&clock),
                ..NodePoolOptions::default()
            });
            let (table, hour) = (WorkTable::default(), Duration::from_hours(1));
            let delayed =
                DelayedServices::new(table.clone(), hour, hour, Arc::<ManualClock>::clone(&clock));
            let sources = WaitSources {
                table,
                delayed,
                check: LedgerCheck::new(LedgerIdentity::new("sawtooth"), pool, hour),
                locked_since: Arc::new(|_| None),
                clock: Arc::<ManualClock>::clone(&clock),
            };
            clock.advance(hour);
            Self { sources, clock }
        }

        fn reasons(&self) -> Vec<WaitReason> {
            self.sources.of(&SERVICE.parse().unwrap())
        }

        /// The attempts of the service have failed for a minute, the last one with this outcome.
        fn delay(&self, outcome: Outcome) {
            let now = self.clock.monotonic();
            let delay = Delay {
                batch_id: "1".to_owned(),
                since: None,
                first_seen: now,
                last_seen: now,
                attempts: 3,
                outcome,
                error: String::new(),
                warned: false,
            };
            self.sources.table.lock().enter(SERVICE).service.sending.delay = Some(Box::new(delay));
            self.clock.advance(Duration::from_mins(1));
        }
    }

    #[test]
    fn unknown_service_has_no_reason() {
        assert_eq!(TestSources::new().reasons(), []);
    }

    #[test]
    fn service_waits_for_a_place_of_the_instance_or_of_its_node() {
        let test = TestSources::new();
        test.sources.table.lock().enter(SERVICE).service.sending.waits = Some(1);
        assert_eq!(test.reasons(), [WaitReason::InFlightWindow]);
        test.sources.table.lock().enter(SERVICE).service.sending.node = Some(0);
        assert_eq!(test.reasons(), [WaitReason::NodePlace]);
        assert_eq!(test.sources.of(&"another".parse().unwrap()), []);
    }

    #[test]
    fn delayed_service_has_a_reason_only_if_the_ledger_is_busy() {
        let test = TestSources::new();
        let since = test.clock.now();
        test.delay(Outcome::Busy);
        assert_eq!(test.reasons(), [WaitReason::Busy { since, attempts: 3 }]);
        test.delay(Outcome::Refused);
        assert_eq!(test.reasons(), []);
    }

    #[test]
    fn batch_that_the_ledger_does_not_report_is_a_reason() {
        let test = TestSources::new();
        let (batch_id, since) = (ItemId::from_bytes([1; 64]), test.clock.now());
        {
            let mut work = test.sources.table.lock();
            let mut entered = work.enter(SERVICE);
            let (_, batch, _) = entered.batch(&batch_id.to_string());
            let not_reported = Some(test.clock.monotonic());
            batch.under_way = Some(UnderWay { not_reported, ..UnderWay::default() });
        }
        test.clock.advance(Duration::from_mins(1));
        assert_eq!(test.reasons(), [WaitReason::Unconfirmed { batch_id, since }]);
    }

    #[test]
    fn node_that_does_not_answer_comes_before_what_it_causes() {
        let test = TestSources::new();
        test.sources.check.pool().failed(NODE, "refused");
        test.delay(Outcome::Busy);
        let reasons = test.reasons();
        let [WaitReason::Node(outage), WaitReason::Busy { .. }] = &reasons[..] else {
            panic!("{reasons:?}")
        };
        assert_eq!((&*outage.node, &*outage.reason), (NODE, "refused"));
    }
}
