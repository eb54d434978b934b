use std::{collections::BTreeMap, sync::Arc, time::Duration};

use grid_batch_api::{CommitProgress, HealthPart, HealthStatus};
use grid_batch_claims::ClaimHealth;
use grid_batch_poller::{EventFollower, MonitorCounters};
use grid_batch_queuer::{InFlightCounts, InFlightWindow};
use grid_batch_submitter::DelayedServices;

use super::{database::DatabaseState, gas::gas_part, services::ServiceState};
use crate::server::{gas::GasMonitor, ledger_check::LedgerCheck};

/// Where the health of the parts is read. None of them blocks.
pub(in crate::server) struct HealthSources {
    pub(in crate::server) claims: ClaimHealth,
    /// Claims that were not renewed for this long are about to be lost.
    pub(in crate::server) renewal_limit: Duration,
    pub(in crate::server) ledger: LedgerCheck,
    pub(in crate::server) commits: CommitProgress,
    pub(in crate::server) poller: MonitorCounters,
    pub(in crate::server) delayed: DelayedServices,
    /// How many services have a row that another transaction keeps locked.
    pub(in crate::server) locked: Arc<dyn Fn() -> usize + Send + Sync>,
    pub(in crate::server) events: Option<EventFollower>,
    /// The gas price and the balances, if the ledger has gas.
    pub(in crate::server) gas: Option<Arc<dyn GasMonitor>>,
    /// How many batches are under way, if that is limited.
    pub(in crate::server) in_flight: Option<InFlightWindow>,
}

/// A commit of new batches that takes longer is shown.
const SLOW_COMMIT: Duration = Duration::from_secs(3);

/// Claims that were renewed within this time show that the database answers.
const RECENT_RENEWAL: Duration = Duration::from_secs(1);

pub(super) fn parts(
    sources: &HealthSources,
    database: &DatabaseState,
    services: &ServiceState,
) -> BTreeMap<&'static str, HealthPart> {
    let mut parts = BTreeMap::from([
        ("database", database_part(sources, database)),
        ("claims", claims_part(sources)),
        ("ledger", ledger_part(&sources.ledger)),
        ("intake", intake_part(sources.commits.elapsed())),
        ("services", services_part(services, &WaitingServices::read(sources))),
        ("events", events_part(sources.events.as_ref())),
    ]);
    if let Some(gas) = &sources.gas {
        parts.insert("gas", gas_part(&gas.health()));
    }
    if let Some(in_flight) = &sources.in_flight {
        parts.insert("in_flight", in_flight_part(in_flight.counts()));
    }
    parts
}

/// Whether the database answers, on the connection that is there for this question or on another one.
pub(super) fn database_answers(sources: &HealthSources, database: &DatabaseState) -> bool {
    database.answers() || sources.claims.since_success() < RECENT_RENEWAL
}

fn database_part(sources: &HealthSources, database: &DatabaseState) -> HealthPart {
    if database_answers(sources, database) {
        return HealthPart::default();
    }
    let seconds = database.since_answer().as_secs();
    unhealthy(format!("the database has not answered for {seconds} s; the log has the reason"))
}

fn claims_part(sources: &HealthSources) -> HealthPart {
    if sources.ledger.mismatch().is_some() {
        return unhealthy(
            "the database belongs to another ledger than the nodes; the server must stop",
        );
    }
    if !sources.ledger.may_claim() {
        return unhealthy(
            "services are not claimed, because no node has confirmed which ledger it belongs to",
        );
    }
    let since = sources.claims.since_success();
    if since > sources.renewal_limit {
        return unhealthy(format!(
            "claims were not renewed in the database for {} s",
            since.as_secs()
        ));
    }
    if sources.claims.error().is_some() {
        return unhealthy("claims cannot be maintained in the database; the log has the reason");
    }
    HealthPart::default()
}

fn ledger_part(ledger: &LedgerCheck) -> HealthPart {
    let nodes = ledger.node_counts();
    let part = match (nodes.answering, nodes.all) {
        (answering, all) if answering == all => HealthPart::default(),
        (0, _) => degraded("no node of the ledger answers; the log has the reasons"),
        (answering, all) => {
            degraded(format!("{} of {all} nodes of the ledger do not answer", all - answering))
        }
    };
    with_numbers(part, [("nodes", nodes.all), ("answering", nodes.answering)])
}

fn intake_part(elapsed: Option<Duration>) -> HealthPart {
    match elapsed.filter(|elapsed| *elapsed > SLOW_COMMIT) {
        None => HealthPart::default(),
        Some(elapsed) => degraded(format!(
            "new batches have waited for their commit for {} s; something may lock rows in the database",
            elapsed.as_secs()
        )),
    }
}

fn in_flight_part(InFlightCounts { under_way, window, largest }: InFlightCounts) -> HealthPart {
    let numbers = [("under_way", under_way), ("window", window), ("largest", largest)];
    let numbers = numbers.map(|(name, count)| (name, u64::try_from(count).unwrap_or(u64::MAX)));
    with_numbers(HealthPart::default(), numbers)
}

/// Services that wait, as this process knows them.
struct WaitingServices {
    stalled: u64,
    delayed: u64,
    locked: u64,
}

impl WaitingServices {
    fn read(sources: &HealthSources) -> Self {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Self {
            stalled: sources.poller.read().stalled_services,
            delayed: number(sources.delayed.read().long),
            locked: number((sources.locked)()),
        }
    }
}

fn services_part(services: &ServiceState, waiting: &WaitingServices) -> HealthPart {
    let WaitingServices { stalled, delayed, locked } = *waiting;
    let counts = services.counts().unwrap_or_default();
    let mut reasons = Vec::new();
    for (number, what) in [
        (counts.held, "held for an operator"),
        (counts.failing, "failing; `grid-batch show` has the last error"),
        (stalled, "standing still"),
        (delayed, "delayed for long; the log has the reasons"),
        (locked, "locked in the database by another transaction"),
    ] {
        if number > 0 {
            reasons.push(format!("{number} of {} services are {what}", counts.open));
        }
    }
    if counts.halted > 0 {
        let (halted, seconds) = (counts.halted, counts.halted_for.as_secs());
        reasons.push(format!(
            "services in which an invalid batch stops others: {halted}, the first for {seconds} s; \
             `grid-batch halts` lists the batches"
        ));
    }
    if let Some(age) = services.overdue() {
        reasons.push(format!("services were not counted for {} s", age.as_secs()));
    }
    let part = match reasons.is_empty() {
        true => HealthPart::default(),
        false => degraded(reasons.join("; ")),
    };
    with_numbers(
        part,
        [
            ("open", counts.open),
            ("held", counts.held),
            ("failing", counts.failing),
            ("stalled", stalled),
            ("delayed", delayed),
            ("locked", locked),
            ("halted", counts.halted),
            ("paused", counts.paused),
            ("all_paused", u64::from(counts.all_paused)),
        ],
    )
}

fn events_part(events: Option<&EventFollower>) -> HealthPart {
    match events.map_or(0, EventFollower::silent_streams) {
        0 => HealthPart::default(),
        silent => {
            degraded(format!("{silent} event streams are silent; batches are polled instead"))
        }
    }
}

pub(super) fn degraded(reason: impl Into<String>) -> HealthPart {
    HealthPart {
        status: HealthStatus::Degraded,
        reason: Some(reason.into()),
        ..HealthPart::default()
    }
}

fn unhealthy(reason: impl Into<String>) -> HealthPart {
    HealthPart { status: HealthStatus::Unhealthy, ..degraded(reason) }
}

pub(super) fn with_numbers<const N: usize>(
    part: HealthPart,
    numbers: [(&'static str, u64); N],
) -> HealthPart {
    HealthPart { numbers: numbers.into(), ..part }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(stalled: u64) -> WaitingServices {
        WaitingServices { stalled, delayed: 0, locked: 0 }
    }

    #[test]
    fn slow_commit_is_shown() {
        assert_eq!(intake_part(None).status, HealthStatus::Ok);
        assert_eq!(intake_part(Some(Duration::from_secs(1))).status, HealthStatus::Ok);
        let part = intake_part(Some(Duration::from_secs(12)));
        assert_eq!(part.status, HealthStatus::Degraded);
        assert!(part.reason.unwrap().contains("12 s"));
    }

    #[test]
    fn stalled_services_are_shown() {
        let part = services_part(&ServiceState::new(), &waiting(3));
        assert_eq!((part.status, part.numbers["stalled"]), (HealthStatus::Degraded, 3));
        assert_eq!(services_part(&ServiceState::new(), &waiting(0)).status, HealthStatus::Ok);
    }
}
