use std::{fmt, time::Duration};

use grid_batch_core::{BatchState, HeaderId, ServiceId};
use grid_batch_ledger_sim::{Audit, Entry, ExecutionResult, audit};
use grid_batch_store::{Store, StoreError};
use serde::Serialize;

use crate::demo::verdicts::verdicts;

/// How a demonstration ended: what was promised to the clients, compared with the ledger's own
/// record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoReport {
    /// Batches that the service took, over all starts.
    pub accepted: usize,
    /// Those of them that the ledger has applied.
    pub committed: usize,
    /// Those that it found invalid.
    pub invalid: usize,
    /// Those that it did nothing about: must be none.
    pub lost: usize,
    /// Those that it applied more than once: must be none.
    pub duplicated: usize,
    /// Those that it applied after a later one of their service: must be none.
    pub out_of_order: usize,
    /// Those of which the service says something else than the ledger: must be none.
    pub misreported: usize,
    /// How often a batch was sent again.
    pub retried: u64,
    /// How often nobody knew whether the ledger had a batch.
    pub in_doubt: u64,
    /// How often a person had to decide.
    pub decided_by_a_person: u64,
    /// How often the ledger was restarted.
    pub ledger_restarts: u64,
    /// How long this start took.
    pub seconds: f64,
    /// Batches that ended in this start, per second.
    pub per_second: f64,
    /// What the faults were made of.
    pub seed: u64,
}

/// What was counted while it ran.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    pub(super) retried: u64,
    pub(super) in_doubt: u64,
    pub(super) decided_by_a_person: u64,
    pub(super) ledger_restarts: u64,
    pub(super) ended: u64,
    pub(super) time: Duration,
}

impl DemoReport {
    /// Whether nothing was lost, duplicated, out of order, or misreported.
    pub fn is_clean(&self) -> bool {
        [self.lost, self.duplicated, self.out_of_order, self.misreported] == [0; 4]
    }

    pub(super) fn of(
        store: &Store,
        record: &[Entry],
        promised: &[(ServiceId, HeaderId)],
        counted: Counted,
        seed: u64,
    ) -> Result<Self, StoreError> {
        let Audit { applied, invalid, lost, duplicated, out_of_order, unpromised, .. } =
            audit(record, promised);
        let seconds = counted.time.as_secs_f64();
        Ok(Self {
            accepted: promised.len(),
            committed: applied,
            invalid: invalid.len(),
            lost: lost.len(),
            duplicated: duplicated.len(),
            out_of_order: out_of_order.len(),
            misreported: misreported(store, record, promised)? + unpromised.len(),
            retried: counted.retried,
            in_doubt: counted.in_doubt,
            decided_by_a_person: counted.decided_by_a_person,
            ledger_restarts: counted.ledger_restarts,
            seconds: (seconds * 1_000.0).round() / 1_000.0,
            per_second: (counted.ended as f64 / seconds.max(0.001)).round(),
            seed,
        })
    }
}

/// How many batches the service says something of that the ledger's record does not.
fn misreported(
    store: &Store,
    record: &[Entry],
    promised: &[(ServiceId, HeaderId)],
) -> Result<usize, StoreError> {
    let verdicts = verdicts(record);
    let mut wrong = 0;
    for (service_id, batch_id) in promised {
        let stored = store.find(batch_id)?;
        let stored = stored.iter().find(|batch| batch.service_id == *service_id);
        let is_right = match stored.map(|batch| batch.progress.state) {
            Some(BatchState::Committed) => {
                verdicts.get(batch_id) == Some(&ExecutionResult::Applied)
            }
            Some(BatchState::Invalid) => verdicts.get(batch_id) == Some(&ExecutionResult::Invalid),
            _ => false,
        };
        wrong += usize::from(!is_right);
    }
    Ok(wrong)
}

impl fmt::Display for DemoReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "The audit: what the clients were promised, beside the ledger's own record")?;
        let rows: [(&str, &dyn fmt::Display); 11] = [
            ("accepted", &self.accepted),
            ("committed", &self.committed),
            ("invalid", &self.invalid),
            ("lost", &self.lost),
            ("duplicated", &self.duplicated),
            ("out of order", &self.out_of_order),
            ("misreported", &self.misreported),
            ("sent again", &self.retried),
            ("in doubt", &self.in_doubt),
            ("decided by a person", &self.decided_by_a_person),
            ("ledger restarts", &self.ledger_restarts),
        ];
        for (name, number) in rows {
            writeln!(f, "{name:>22}  {number}")?;
        }
        writeln!(f, "{:>22}  {:.1} s, {:.0} a second", "time", self.seconds, self.per_second)?;
        let verdict = if self.is_clean() { "clean" } else { "NOT CLEAN" };
        write!(f, "{:>22}  {verdict} (seed {})", "result", self.seed)
    }
}
