use std::{collections::BTreeMap, sync::Arc, time::Duration};

use grid_batch_api::{CommitFailure, CommitProgress, HealthPart, HealthStatus};
use grid_batch_claims::{ClaimHealth, InvalidServices};
use grid_batch_core::evidence::LookupLag;
use grid_batch_core::queries::{DiskSpace, FullQueue, QueueCounts, ServicePause};
use grid_batch_ledger_check::LedgerCheck;
use grid_batch_poller::{EventFollower, LookupProgress, LookupReport, MonitorCounters};
use grid_batch_queuer::{InFlightCounts, Places};
use grid_batch_submitter::DelayedServices;
use grid_batch_support::{JobReport, Jobs};
use grid_batch_withdrawals::GasMonitor;

use super::{
    database::DatabaseHealth, gas::gas_part, services::ServiceState, settings::CompareSettings,
};

/// The sources of the health of each part. Reading them does not block.
pub struct HealthSources {
    /// Whether claims are renewed.
    pub claims: ClaimHealth,
    /// Claims that were not renewed for this long are about to be lost.
    pub renewal_limit: Duration,
    /// Whether nodes have confirmed their ledger, and answer.
    pub ledger: LedgerCheck,
    /// How long new batches have waited for their commit, and whether it fails.
    pub commits: CommitProgress,
    /// How many services are stopped.
    pub poller: MonitorCounters,
    /// The services whose batches are delayed.
    pub delayed: DelayedServices,
    /// The services whose batches all end as invalid.
    pub invalid: InvalidServices,
    /// Compares the settings of this instance with those of the others, in the database.
    pub settings: Arc<CompareSettings>,
    /// Returns how many services have a row that another transaction keeps locked.
    pub locked: Arc<dyn Fn() -> usize + Send + Sync>,
    /// The event streams, if the ledger has them.
    pub events: Option<EventFollower>,
    /// The gas price and the balances, if the ledger has gas.
    pub gas: Option<Arc<dyn GasMonitor>>,
    /// How many batches are under way, if that is limited.
    pub in_flight: Option<Places>,
    /// The background work of this instance.
    pub jobs: Jobs,
    /// The lookups of missing transactions, if the ledger has batches that depend on others.
    pub lookups: Option<LookupProgress>,
}

/// If the ledger answers no lookup of missing transactions for longer than this, the health shows it.
const UNANSWERED: Duration = Duration::from_secs(4);

/// If a missing transaction waits for its lookup for longer than this, the health shows it.
const LATE_LOOKUP: Duration = Duration::from_secs(10);

/// If a run of a job takes longer than this, the health shows it.
const LONG_RUN: Duration = Duration::from_mins(1);

/// If a commit of new batches takes longer than this, the health shows it.
const SLOW_COMMIT: Duration = Duration::from_secs(3);

/// Claims that were renewed within this time show that the database answers.
const RECENT_RENEWAL: Duration = Duration::from_secs(1);

pub(super) fn parts(
    sources: &HealthSources,
    database: &DatabaseHealth,
    services: &ServiceState,
) -> BTreeMap<&'static str, HealthPart> {
    let mut parts = BTreeMap::from([
        ("database", database_part(sources, database)),
        ("claims", claims_part(sources)),
        ("ledger", ledger_part(&sources.ledger)),
        ("intake", intake_part(&sources.commits, database.space(), &services.queues())),
        ("services", services_part(services, &WaitingServices::read(sources))),
        ("events", events_part(sources.events.as_ref())),
        ("jobs", jobs_part(&sources.jobs.reports())),
    ]);
    if let Some(gas) = &sources.gas {
        parts.insert("gas", gas_part(&gas.health()));
    }
    if let Some(lookups) = &sources.lookups {
        parts.insert("dependencies", dependencies_part(lookups.read(), &services.queues()));
    }
    if let Some(in_flight) = &sources.in_flight {
        parts.insert("in_flight", in_flight_part(in_flight.counts()));
    }
    parts
}

/// Whether the database answers, on the connection that only tests this or on another one.
pub(super) fn database_answers(sources: &HealthSources, database: &DatabaseHealth) -> bool {
    database.answers() || sources.claims.since_success() < RECENT_RENEWAL
}

fn database_part(sources: &HealthSources, database: &DatabaseHealth) -> HealthPart {
    if database_answers(sources, database) {
        return space_part(database.space());
    }
    let seconds = database.since_answer().as_secs();
    unhealthy(format!("the database has not answered for {seconds} s; the log has the reason"))
}

/// A database that answers, and its space, if this process can tell.
fn space_part(space: Option<DiskSpace>) -> HealthPart {
    let Some(space) = space else { return HealthPart::default() };
    let part = if space.is_used_up() {
        unhealthy("the file system of the database is full: nothing can be stored")
    } else if space.is_low() {
        degraded(format!("the file system of the database has {space}"))
    } else {
        HealthPart::default()
    };
    with_numbers(part, [("free_mebibytes", space.free_mebibytes())])
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

/// Jobs that have ended, have failed or are stuck. Their errors may name hosts and users, so they are only in the log.
fn jobs_part(reports: &[JobReport]) -> HealthPart {
    let reason = |job: &JobReport| {
        let running = job.runs.and_then(|runs| runs.running_for).filter(|time| *time > LONG_RUN);
        let what = match running {
            _ if job.has_ended => "it has ended; the log has the reason".to_owned(),
            Some(time) => format!("it has run for {} s", time.as_secs()),
            None if job.problem.is_some() => "it fails; the log has the reason".to_owned(),
            None => return None,
        };
        Some(format!("{}: {what}", job.name))
    };
    with_reasons(&reports.iter().filter_map(reason).collect::<Vec<_>>())
}

fn ledger_part(ledger: &LedgerCheck) -> HealthPart {
    /// At most this many nodes are named.
    const NAMED: usize = 5;
    let (pool, others) = (ledger.pool(), ledger.pool().other_ledgers());
    let ((nodes, working), outages) = (pool.counts(), pool.outages());
    let mut reasons = Vec::new();
    if !outages.is_empty() {
        let named: Vec<_> = outages.iter().take(NAMED).map(ToString::to_string).collect();
        let more = match outages.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        reasons.push(format!("{}{more}; the log has the reasons", named.join("; ")));
    }
    let not_used = |other: &String| format!("{other}; the node is not used");
    reasons.extend(others.iter().take(NAMED).map(not_used));
    let part = with_reasons(&reasons);
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    with_numbers(part, [("nodes", number(nodes)), ("answering", number(working))])
}

fn intake_part(
    commits: &CommitProgress,
    space: Option<DiskSpace>,
    queues: &QueueCounts,
) -> HealthPart {
    let numbers = [
        ("open_batches", queues.open),
        ("full_services", queues.full),
        ("failed_commits", commits.failed()),
    ];
    let has_space = space.is_some_and(|space| !space.is_used_up());
    let failure = commits.failure().filter(|failure| !(failure.is_full && has_space));
    if let Some(CommitFailure { lasted, is_full }) = failure {
        let cause =
            if is_full { "the database has no space left" } else { "the log has the reason" };
        let seconds = lasted.as_secs();
        let reason = format!("new batches could not be stored for {seconds} s: {cause}");
        return with_numbers(unhealthy(reason), numbers);
    }
    let mut reasons: Vec<_> = commit_reason(commits.elapsed()).into_iter().collect();
    if let Some(fullest) = &queues.fullest {
        reasons.push(full_queue(fullest, queues.full));
    }
    with_numbers(with_reasons(&reasons), numbers)
}

/// Why a commit that has taken this long needs a look.
fn commit_reason(elapsed: Option<Duration>) -> Option<String> {
    let seconds = elapsed.filter(|elapsed| *elapsed > SLOW_COMMIT)?.as_secs();
    Some(format!(
        "new batches have waited for their commit for {seconds} s; something may lock rows in the database"
    ))
}

/// Describes what fills the queue of a service, and how many other services are full.
fn full_queue(queue: &FullQueue, full: u64) -> String {
    let FullQueue { service_id, open, limit, incomplete, signers, most_of_signer, .. } = queue;
    let mut text = format!(
        "the service {service_id} has {open} open batches and may have {limit}: more are refused, except \
         those that others wait for"
    );
    if *incomplete > 0 {
        text += &format!(
            "; {incomplete} miss a transaction ({signers} signers, up to {most_of_signer} transactions of one)"
        );
    }
    for (number, what) in [(queue.held, "held"), (queue.delayed, "delayed")] {
        if number > 0 {
            text += &format!("; {what}: {number}");
        }
    }
    for (is_so, what) in [
        (queue.paused, "an operator has paused the service"),
        (queue.halted, "an invalid batch stops others"),
    ] {
        if is_so {
            text += &format!("; {what}");
        }
    }
    match full {
        0 | 1 => {}
        2 => text += "; one more service is full",
        _ => text += &format!("; {} more services are full", full - 1),
    }
    text
}

fn dependencies_part(lookups: LookupReport, queues: &QueueCounts) -> HealthPart {
    let mut reasons = Vec::new();
    let unanswered = lookups.unanswered_since.map(|since| since.elapsed());
    if let Some(time) = unanswered.filter(|time| *time > UNANSWERED) {
        reasons.push(format!(
            "the ledger has not answered for {} s whether it has transactions that batches depend on",
            time.as_secs()
        ));
    }
    let LookupLag { waiting, longest } = lookups.lag;
    if longest > LATE_LOOKUP {
        reasons.push(format!(
            "{waiting} transactions that batches depend on were not looked for at the ledger yet, the first \
             for {} s; signers take turns",
            longest.as_secs()
        ));
    }
    let numbers = [("incomplete_batches", queues.incomplete), ("not_looked_up", waiting)];
    with_numbers(with_reasons(&reasons), numbers)
}

pub(super) fn with_reasons(reasons: &[String]) -> HealthPart {
    if reasons.is_empty() { HealthPart::default() } else { degraded(reasons.join("; ")) }
}

fn in_flight_part(counts: InFlightCounts) -> HealthPart {
    let InFlightCounts { under_way, overdue, window, largest } = counts;
    let numbers =
        [("under_way", under_way), ("overdue", overdue), ("window", window), ("largest", largest)];
    let numbers = numbers.map(|(name, count)| (name, u64::try_from(count).unwrap_or(u64::MAX)));
    with_numbers(HealthPart::default(), numbers)
}

/// The services that wait, as far as this process knows.
pub(crate) struct WaitingServices {
    pub(crate) stalled: u64,
    pub(crate) delayed: u64,
    pub(crate) busy: u64,
    pub(crate) locked: u64,
    pub(crate) only_invalid: u64,
}

impl WaitingServices {
    fn read(sources: &HealthSources) -> Self {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let delayed = sources.delayed.read();
        Self {
            stalled: sources.poller.read().stalled_services,
            delayed: number(delayed.long),
            busy: number(delayed.busy),
            locked: number((sources.locked)()),
            only_invalid: sources.invalid.count(),
        }
    }
}

pub(crate) fn services_part(services: &ServiceState, waiting: &WaitingServices) -> HealthPart {
    let WaitingServices { stalled, delayed, busy, locked, only_invalid } = *waiting;
    let counts = services.counts().unwrap_or_default();
    let mut reasons = Vec::new();
    for (number, what) in [
        (counts.held, "held for an operator"),
        (
            counts.restored,
            "at a batch that was open when the database went back to an earlier state, which may have been \
             sent; the log has the reason",
        ),
        (counts.failing, "failing; `grid-batch list --state delayed` shows why"),
        (stalled, "standing still"),
        (delayed, "delayed for long; the log has the reasons"),
        (locked, "locked in the database by another transaction"),
    ] {
        if number > 0 {
            reasons.push(format!("{number} of {} services are {what}", counts.open));
        }
    }
    if counts.all_paused {
        reasons.push("an operator has paused all services".to_owned());
    } else if counts.paused > 0 {
        reasons.push(format!("an operator has paused {} services", counts.paused));
    }
    if only_invalid > 0 {
        reasons.push(format!(
            "the last batches of {only_invalid} services have all ended as invalid; the log names them"
        ));
    }
    if counts.states_differ > 0 {
        let number = counts.states_differ;
        reasons.push(format!("{number} services are paused: {}", ServicePause::DIFFERENT_STATES));
    }
    if counts.halted > 0 {
        let (halted, seconds) = (counts.halted, counts.halted_for.as_secs());
        reasons.push(format!(
            "services in which an invalid batch stops others: {halted}, the first for {seconds} s; \
             `grid-batch halts` lists the batches"
        ));
    }
    let unreadable = services.queues().unreadable;
    if !unreadable.is_empty() {
        reasons.push(format!(
            "services whose names in the database cannot be read, and whose batches wait: {}",
            unreadable.join(", ")
        ));
    }
    if let Some(age) = services.overdue() {
        reasons.push(format!("services were not counted for {} s", age.as_secs()));
    }
    with_numbers(
        with_reasons(&reasons),
        [
            ("open", counts.open),
            ("held", counts.held),
            ("restored", counts.restored),
            ("failing", counts.failing),
            ("stalled", stalled),
            ("delayed", delayed),
            ("busy", busy),
            ("locked", locked),
            ("only_invalid", only_invalid),
            ("halted", counts.halted),
            ("paused", counts.paused),
            ("states_differ", counts.states_differ),
            ("all_paused", u64::from(counts.all_paused)),
        ],
    )
}

fn events_part(events: Option<&EventFollower>) -> HealthPart {
    let repeated = events.map_or(0, EventFollower::repeated_events);
    let mut reasons = Vec::new();
    if repeated > 0 {
        reasons.push(format!(
            "the ledger has reported {repeated} transactions a second time since the server was started: they \
             were applied twice; the log names them"
        ));
    }
    let silent = events.map_or(0, EventFollower::silent_streams);
    if silent > 0 {
        reasons.push(format!("{silent} event streams are silent; batches are polled instead"));
    }
    let part =
        if reasons.is_empty() { HealthPart::default() } else { degraded(reasons.join("; ")) };
    let silent = u64::try_from(silent).unwrap_or(u64::MAX);
    with_numbers(part, [("repeated", repeated), ("silent", silent)])
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
    use grid_batch_support::JobRuns;

    use super::*;

    fn waiting(stalled: u64) -> WaitingServices {
        WaitingServices { stalled, delayed: 0, busy: 0, locked: 0, only_invalid: 0 }
    }

    #[test]
    fn slow_commit_is_shown() {
        let queues = QueueCounts::default();
        assert_eq!(commit_reason(None), None);
        assert_eq!(commit_reason(Some(Duration::from_secs(1))), None);
        assert!(commit_reason(Some(Duration::from_secs(12))).unwrap().contains("12 s"));
        let part = intake_part(&CommitProgress::default(), None, &queues);
        assert_eq!(part.status, HealthStatus::Ok);
    }

    #[test]
    fn little_space_is_shown() {
        let (mebibyte, gibibyte) = (1 << 20, 1 << 30);
        let part = |free, total| space_part(Some(DiskSpace { free, total }));
        assert_eq!(space_part(None), HealthPart::default());
        assert_eq!(part(2 * gibibyte, 100 * gibibyte).status, HealthStatus::Ok);
        assert_eq!(part(20 * mebibyte, 100 * mebibyte).status, HealthStatus::Ok);
        let low = part(9 * mebibyte, 100 * mebibyte);
        assert_eq!((low.status, low.numbers["free_mebibytes"]), (HealthStatus::Degraded, 9));
        assert!(low.reason.unwrap().contains("9 MiB left of 100 MiB"));
        assert_eq!(part(0, gibibyte).status, HealthStatus::Unhealthy);
    }

    #[test]
    fn full_queue_is_shown_with_what_fills_it() {
        let fullest = FullQueue {
            service_id: "global".parse().unwrap(),
            open: 20,
            limit: 20,
            incomplete: 18,
            signers: 2,
            most_of_signer: 15,
            held: 1,
            delayed: 0,
            paused: true,
            halted: false,
        };
        let queues = QueueCounts {
            open: 25,
            incomplete: 18,
            full: 2,
            fullest: Some(fullest),
            ..QueueCounts::default()
        };
        let part = intake_part(&CommitProgress::default(), None, &queues);
        assert_eq!((part.status, part.numbers["open_batches"]), (HealthStatus::Degraded, 25));
        assert_eq!(
            part.reason.unwrap(),
            "the service global has 20 open batches and may have 20: more are refused, except those that \
             others wait for; 18 miss a transaction (2 signers, up to 15 transactions of one); held: 1; an \
             operator has paused the service; one more service is full"
        );
    }

    #[test]
    fn late_lookups_and_missing_answers_are_shown() {
        let queues = QueueCounts { incomplete: 7, ..QueueCounts::default() };
        let report = |seconds, unanswered_since| {
            let lag = LookupLag { waiting: 5, longest: Duration::from_secs(seconds) };
            dependencies_part(LookupReport { lag, unanswered_since }, &queues)
        };
        let part = report(1, Some(std::time::Instant::now()));
        assert_eq!((part.status, part.numbers["incomplete_batches"]), (HealthStatus::Ok, 7));
        let part = report(60, None);
        assert!(part.reason.unwrap().starts_with("5 transactions that batches depend on"));
        let long_ago = std::time::Instant::now().checked_sub(Duration::from_secs(9));
        assert!(report(0, long_ago).reason.unwrap().contains("not answered for 9 s"));
    }

    #[test]
    fn jobs_that_do_not_work_are_named_without_their_errors() {
        let job = |name| JobReport { name, runs: None, problem: None, has_ended: false };
        let problem = Some("no connection to 10.0.0.7".to_owned());
        let running_for = Some(LONG_RUN * 2);
        let reports = [
            job("works"),
            JobReport { problem: problem.clone(), ..job("fails") },
            JobReport { problem, has_ended: true, ..job("ended") },
            JobReport { runs: Some(JobRuns { running_for, ..JobRuns::default() }), ..job("hangs") },
        ];
        let part = jobs_part(&reports);
        assert_eq!(part.status, HealthStatus::Degraded);
        assert_eq!(
            part.reason.unwrap(),
            "fails: it fails; the log has the reason; ended: it has ended; the log has the reason; \
             hangs: it has run for 120 s"
        );
        assert_eq!(jobs_part(&reports[..1]).status, HealthStatus::Ok);
    }

    #[test]
    fn stalled_services_are_shown() {
        let part = services_part(&ServiceState::new(), &waiting(3));
        assert_eq!((part.status, part.numbers["stalled"]), (HealthStatus::Degraded, 3));
        assert_eq!(services_part(&ServiceState::new(), &waiting(0)).status, HealthStatus::Ok);
    }
}
