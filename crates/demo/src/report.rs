use std::{fmt, time::Duration};

use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::StrategyKind;
use grid_batch_core::{BatchResult, ItemId, ServiceId};
use grid_batch_ledger_sim::{Audit, Entry, ExecutionResult, LedgerSim, audit, ledger_results};
use grid_batch_protocol::Batch;
use grid_batch_store::Store;
use serde::Serialize;

/// The result of a demonstration: the batches that the server accepted, compared with the ledger's
/// record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoReport {
    /// Batches that the server accepted, over all runs.
    pub accepted: usize,
    /// Batches that the ledger applied.
    pub committed: usize,
    /// Batches that the ledger found invalid.
    pub invalid: usize,
    /// Batches that are not in the ledger's record: must be 0.
    pub lost: usize,
    /// Batches that the ledger applied more than once: must be 0.
    pub duplicated: usize,
    /// Batches that the ledger applied after a later batch of their service, or, with the strategy parallel, after a
    /// later batch that they conflict with: must be 0.
    pub out_of_order: usize,
    /// Numbers in the ledger's state, and results of batches, that differ from those of applying the batches one by
    /// one: must be 0. `None`: the ledger has no state that is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong_state: Option<usize>,
    /// The maximum number of batches that waited at the ledger at once. `None`: the ledger has no queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_at_ledger: Option<usize>,
    /// Batches whose state in the store contradicts the ledger's record: must be 0.
    pub misreported: usize,
    /// How often a batch was sent again.
    pub retried: u64,
    /// How often a batch was in doubt.
    pub in_doubt: u64,
    /// How many held batches the operator decided about.
    pub decided_by_operator: u64,
    /// How often the ledger was restarted.
    pub ledger_restarts: u64,
    /// The duration of this run.
    pub seconds: f64,
    /// Batches that ended per second in this run.
    pub per_second: f64,
    /// The seed of the faults.
    pub seed: u64,
}

/// The numbers that were counted during the run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DemoCounts {
    pub(crate) retried: u64,
    pub(crate) in_doubt: u64,
    pub(crate) decided_by_operator: u64,
    pub(crate) ledger_restarts: u64,
    pub(crate) ended: u64,
    pub(crate) time: Duration,
}

impl DemoReport {
    /// Whether no batch was lost, duplicated, out of order, or misreported, and the state is right.
    pub fn is_clean(&self) -> bool {
        let Self { lost, duplicated, out_of_order, wrong_state, misreported, .. } = self;
        [lost, duplicated, out_of_order, &wrong_state.unwrap_or_default(), misreported] == [&0; 5]
    }

    pub(crate) fn new(
        store: &Store,
        record: &[Entry],
        promised: &[(ServiceId, ItemId)],
        counts: DemoCounts,
        seed: u64,
    ) -> BatchResult<Self> {
        let Audit { applied, invalid, lost, duplicated, out_of_order, unpromised, .. } =
            audit(record, promised);
        let seconds = counts.time.as_secs_f64();
        Ok(Self {
            accepted: promised.len(),
            committed: applied,
            invalid: invalid.len(),
            lost: lost.len(),
            duplicated: duplicated.len(),
            out_of_order: out_of_order.len(),
            wrong_state: None,
            most_at_ledger: None,
            misreported: misreported(store, record, promised)? + unpromised.len(),
            retried: counts.retried,
            in_doubt: counts.in_doubt,
            decided_by_operator: counts.decided_by_operator,
            ledger_restarts: counts.ledger_restarts,
            seconds: (seconds * 1_000.0).round() / 1_000.0,
            per_second: (counts.ended as f64 / seconds.max(0.001)).round(),
            seed,
        })
    }

    /// Compares the state of a Sawtooth ledger with the result of applying the batches one by one.
    pub(crate) fn add_state(
        &mut self,
        ledger: &LedgerSim,
        batches: &[Batch],
        strategy: StrategyKind,
    ) {
        let audit = ledger.audit_state(batches);
        self.wrong_state = Some(audit.wrong_values.len() + audit.wrong_results.len());
        if strategy != StrategyKind::Serial {
            self.out_of_order = audit.out_of_order.len();
        }
        self.most_at_ledger = Some(ledger.most_waiting());
    }
}

/// How many batches have a state in the store that contradicts the ledger's record.
fn misreported(
    store: &Store,
    record: &[Entry],
    promised: &[(ServiceId, ItemId)],
) -> BatchResult<usize> {
    let results = ledger_results(record);
    let mut wrong = 0;
    for (service_id, batch_id) in promised {
        let stored = store.find(batch_id)?;
        let stored = stored.iter().find(|batch| batch.service_id == *service_id);
        let matches = match stored.map(|batch| batch.progress.state) {
            Some(BatchState::Committed) => results.get(batch_id) == Some(&ExecutionResult::Applied),
            Some(BatchState::Invalid) => results.get(batch_id) == Some(&ExecutionResult::Invalid),
            _ => false,
        };
        wrong += usize::from(!matches);
    }
    Ok(wrong)
}

impl fmt::Display for DemoReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Audit: the batches that the server accepted, compared with the ledger's record"
        )?;
        let count = |number: Option<usize>| number.map(|number| number as u64);
        let happened = |number: u64| (number > 0).then_some(number);
        let rows = [
            ("accepted", count(Some(self.accepted)), "stored by the server"),
            ("committed", count(Some(self.committed)), "applied by the ledger"),
            ("invalid", happened(self.invalid as u64), "found invalid by the ledger"),
            ("lost", count(Some(self.lost)), "accepted, but not in the record: must be 0"),
            ("duplicated", count(Some(self.duplicated)), "applied more than once: must be 0"),
            ("out of order", count(Some(self.out_of_order)), "applied too late: must be 0"),
            ("wrong values", count(self.wrong_state), "not as after applying in order: must be 0"),
            (
                "misreported",
                count(Some(self.misreported)),
                "the server reports another result: must be 0",
            ),
            (
                "longest queue",
                count(self.most_at_ledger),
                "batches that waited at the ledger at once",
            ),
            ("sent again", happened(self.retried), "the ledger was busy or late, or lost them"),
            ("in doubt", happened(self.in_doubt), "sent without an answer from the ledger"),
            (
                "decided by operator",
                happened(self.decided_by_operator),
                "held: nothing could be proved",
            ),
            (
                "ledger restarts",
                happened(self.ledger_restarts),
                "it forgets what it has not committed",
            ),
        ];
        for (name, number, meaning) in rows {
            if let Some(number) = number {
                writeln!(f, "{name:>22}  {number:<8}  {meaning}")?;
            }
        }
        writeln!(f, "{:>22}  {:.1} s, {:.0} a second", "time", self.seconds, self.per_second)?;
        let result = if self.is_clean() { "clean" } else { "NOT CLEAN" };
        write!(f, "{:>22}  {result} (seed {})", "result", self.seed)
    }
}
