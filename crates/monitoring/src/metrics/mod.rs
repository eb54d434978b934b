mod history;
mod process;
mod queues;
mod stage_times;

use std::sync::Arc;

use grid_batch_api::{HealthStatus, MetricsText};
use grid_batch_claims::{ChangeCounters, ClaimHealth};
use grid_batch_core::queries::BatchCounts;
use grid_batch_poller::MonitorCounters;
use grid_batch_submitter::SubmitterCounters;
use grid_batch_support::Jobs;
use grid_batch_withdrawals::{GasAdminAmounts, GasMonitor};

pub use history::HistoryRecorder;
#[cfg(test)]
pub(crate) use queues::COUNTED_REASONS;
pub use queues::{QueueMetrics, QueueSources};
pub use stage_times::StageTimes;

use crate::Health;

/// The sources of the metrics: the counters of the parts, and the health. Reading them does not block.
pub struct MetricsSources {
    /// The health.
    pub health: Health,
    /// The age of the lease, and how many services were claimed.
    pub claims: ClaimHealth,
    /// The counters of the submitter.
    pub submitter: SubmitterCounters,
    /// The counters of the poller.
    pub poller: MonitorCounters,
    /// What has happened to batches.
    pub changes: ChangeCounters,
    /// How long the stages of batches take.
    pub stages: StageTimes,
    /// The queues, as counted in the store.
    pub queues: QueueMetrics,
    /// The gas price and the balances, if the ledger has gas.
    pub gas: Option<Arc<dyn GasMonitor>>,
    /// The connections and the events of the store.
    pub store: Arc<dyn BatchCounts>,
    /// The background work of this instance.
    pub jobs: Jobs,
}

impl MetricsSources {
    /// Writes all metrics.
    pub fn write(&self, text: &mut MetricsText) {
        let version = env!("CARGO_PKG_VERSION");
        text.gauges("grid_batch_build_info", "The version of the program; always 1.")
            .sample(&[("version", version)], 1.0);
        self.write_health(text);
        self.queues.write(text);
        self.write_gas(text);
        self.write_submitter(text);
        self.write_poller(text);
        self.write_changes(text);
        let mut stages = text.histograms(
            "grid_batch_stage_duration_seconds",
            "How long batches took from one stage to the next, of those that this instance had from the first.",
        );
        for (stage, values) in self.stages.read() {
            stages.histogram(&[("stage", stage)], &values);
        }
        self.write_claims(text);
        self.write_connections(text);
        self.write_jobs(text);
        let help = "Events of batches that this instance has written, with those of transactions that failed.";
        text.counter("grid_batch_events_written_total", help, count(self.store.events_written()));
        process::write(text);
    }

    fn write_health(&self, text: &mut MetricsText) {
        let report = self.health.report();
        let mut status = text.gauges(
            "grid_batch_health_status",
            "1 for the present status of each part of the health, 0 for the others.",
        );
        for (name, part) in report.parts() {
            for (other, label) in [
                (HealthStatus::Ok, "ok"),
                (HealthStatus::Degraded, "degraded"),
                (HealthStatus::Unhealthy, "unhealthy"),
            ] {
                let is_present = f64::from(u8::from(part.status == other));
                status.sample(&[("part", name), ("status", label)], is_present);
            }
        }
        let help = "1 for each node of the ledger that answers and has confirmed its ledger, 0 for the others.";
        let mut nodes = text.gauges("grid_batch_node_works", help);
        for (node, works) in self.health.nodes() {
            nodes.sample(&[("node", &node)], f64::from(u8::from(works)));
        }
        // Each number of a part is a sample of one metric, so the names of metrics do not depend on what the server
        // does.
        let mut numbers = text.gauges(
            "grid_batch_health_number",
            "The numbers of each part of the health, such as the services that are held.",
        );
        for (part, it) in report.parts() {
            for (name, number) in &it.numbers {
                numbers.sample(&[("part", part), ("number", name)], count(*number));
            }
        }
    }

    fn write_claims(&self, text: &mut MetricsText) {
        let help = "How long ago the lease of the claims was renewed.";
        let age = self.claims.since_success().as_secs_f64();
        text.gauge("grid_batch_lease_age_seconds", help, age);
        let help = "How many times this instance has claimed a service.";
        text.counter("grid_batch_claims_taken_total", help, count(self.claims.taken()));
        let help = "Other instances that stopped without releasing their services, as far as this one noticed.";
        text.counter("grid_batch_instances_lost_total", help, count(self.claims.lost()));
        let help = "Batches that an instance was submitting when this one took its services; they are in doubt.";
        text.counter("grid_batch_orphaned_batches_total", help, count(self.claims.orphaned()));
    }

    fn write_jobs(&self, text: &mut MetricsText) {
        let runs: Vec<_> =
            self.jobs.reports().into_iter().filter_map(|it| Some((it.name, it.runs?))).collect();
        let mut seconds = text.counters(
            "grid_batch_job_seconds_total",
            "How long the runs of each job of the server took together.",
        );
        runs.iter().for_each(|(job, it)| seconds.sample(&[("job", job)], it.time.as_secs_f64()));
        let mut count =
            text.counters("grid_batch_job_runs_total", "The runs of each job of the server.");
        runs.iter().for_each(|(job, it)| count.sample(&[("job", job)], self::count(it.count)));
        let help = "How much later than it was due the last run of each job of the server started.";
        let mut lag = text.gauges("grid_batch_job_lag_seconds", help);
        runs.iter().for_each(|(job, it)| lag.sample(&[("job", job)], it.lag.as_secs_f64()));
    }

    fn write_connections(&self, text: &mut MetricsText) {
        let pools = self.store.connections();
        let help =
            "Connections to the database that are open, by pool and by whether they are in use.";
        let mut connections = text.gauges("grid_batch_database_connections", help);
        for it in &pools {
            let in_use = it.open.saturating_sub(it.idle);
            connections.sample(&[("pool", it.pool), ("state", "in_use")], in_use.into());
            connections.sample(&[("pool", it.pool), ("state", "idle")], it.idle.into());
        }
        let help = "Connections to the database that may be open, by pool.";
        let mut most = text.gauges("grid_batch_database_connections_max", help);
        pools.iter().for_each(|it| most.sample(&[("pool", it.pool)], it.most.into()));
    }

    fn write_gas(&self, text: &mut MetricsText) {
        let gas = self.gas.as_ref().map(|gas| gas.health()).unwrap_or_default();
        let low = u64::try_from(gas.low_balances.len()).unwrap_or(u64::MAX);
        let mut admins = text.gauges(
            "grid_batch_gas_admins",
            "Gas admins in trouble, by problem; 0 if the ledger has no gas.",
        );
        admins.sample(&[("problem", "low_balance")], count(low));
        admins.sample(&[("problem", "without_funds")], count(gas.without_funds));
        let help = "Pools whose cap the gas price is not below; 0 if the ledger has no gas.";
        text.gauge("grid_batch_pools_above_cap", help, count(gas.pools_above_cap));
        let help = "The balance of each gas admin, in wei.";
        let mut balances = text.gauges("grid_batch_gas_admin_balance_wei", help);
        for GasAdminAmounts { name, balance, .. } in &gas.gas_admins {
            balance.iter().for_each(|wei| balances.sample(&[("gas_admin", name)], *wei));
        }
        let help = "The price of gas, in wei.";
        let mut prices = text.gauges("grid_batch_gas_price_wei", help);
        for GasAdminAmounts { name, gas_price, .. } in &gas.gas_admins {
            gas_price.iter().for_each(|wei| prices.sample(&[("gas_admin", name)], *wei));
        }
        let help = "The price of gas from which on each gas admin pays nothing, in wei.";
        let mut caps = text.gauges("grid_batch_gas_price_cap_wei", help);
        for GasAdminAmounts { name, gas_price_cap, .. } in &gas.gas_admins {
            caps.sample(&[("gas_admin", name)], *gas_price_cap);
        }
    }

    fn write_submitter(&self, text: &mut MetricsText) {
        let stats = self.submitter.read();
        let help = "Batches that were taken to be submitted, each attempt by itself.";
        text.counter("grid_batch_submissions_total", help, count(stats.taken));
        let help = "Submissions that have ended, by outcome.";
        let mut outcomes = text.counters("grid_batch_submission_outcomes_total", help);
        for (outcome, number) in [
            ("accepted", stats.accepted),
            ("delayed", stats.delayed),
            ("rejected", stats.rejected),
            ("in_doubt", stats.in_doubt),
        ] {
            outcomes.sample(&[("outcome", outcome)], count(number));
        }
        let help = "Submissions without an outcome yet.";
        text.gauge("grid_batch_submissions_in_progress", help, count(stats.in_flight()));
        let help = "Attempts to send a batch that a node may have received before.";
        text.counter("grid_batch_sent_again_total", help, count(stats.sent_again));
        let help = "Panics that were caught, by part.";
        let mut panics = text.counters("grid_batch_panics_total", help);
        panics.sample(&[("part", "submitter")], count(stats.panics));
        panics.sample(&[("part", "poller")], count(self.poller.read().panics));
    }

    fn write_poller(&self, text: &mut MetricsText) {
        let stats = self.poller.read();
        let help = "Requests for the statuses of batches that have ended, by result.";
        let mut requests = text.counters("grid_batch_poll_requests_total", help);
        requests.sample(&[("result", "answered")], count(stats.answered));
        requests.sample(&[("result", "failed")], count(stats.failed));
        let help = "Requests for statuses that have not ended.";
        text.gauge("grid_batch_poll_requests_in_progress", help, count(stats.in_flight()));
        let help = "Statuses that were written to the store.";
        text.counter("grid_batch_statuses_written_total", help, count(stats.written));
        let help = "Batches for which evidence was requested.";
        text.counter("grid_batch_evidence_requests_total", help, count(stats.evidence_requests));
        let help = "Batches whose request for evidence failed.";
        text.counter("grid_batch_evidence_failures_total", help, count(stats.evidence_failures));
        let help = "Calls of the store by the poller that failed.";
        text.counter("grid_batch_poll_store_failures_total", help, count(stats.store_failures));
    }

    fn write_changes(&self, text: &mut MetricsText) {
        let changes = self.changes.read();
        let help = "Batches that have ended, by result.";
        let mut ended = text.counters("grid_batch_ended_total", help);
        ended.sample(&[("result", "committed")], count(changes.committed));
        ended.sample(&[("result", "invalid")], count(changes.invalid));
        for (name, help, number) in [
            (
                "grid_batch_delayed_total",
                "Attempts after which a batch was delayed: the ledger certainly does not have it.",
                changes.delayed,
            ),
            (
                "grid_batch_in_doubt_total",
                "Attempts after which the ledger may have the batch.",
                changes.in_doubt,
            ),
            (
                "grid_batch_absent_total",
                "Batches that the ledger was proved not to have.",
                changes.absent,
            ),
            (
                "grid_batch_stale_changes_total",
                "Changes that the store refused, because another instance or an operator was first.",
                changes.stale,
            ),
            ("grid_batch_held_total", "Batches that were held for an operator.", changes.held),
            (
                "grid_batch_committed_after_invalid_total",
                "Batches that ended as invalid and were reported as committed later.",
                changes.committed_after_invalid,
            ),
        ] {
            text.counter(name, help, count(number));
        }
    }
}

/// Converts a count to the value of a sample. Counts above 2^53 are rounded.
#[expect(clippy::cast_precision_loss, reason = "samples are floating-point numbers")]
fn count(number: u64) -> f64 {
    number as f64
}
