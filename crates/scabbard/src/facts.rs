use std::time::Duration;

use grid_batch_core::ledger::{LedgerFacts, SecondArrival};

/// What Scabbard services do with batches.
pub const fn facts(late_arrival_limit: Duration) -> LedgerFacts {
    LedgerFacts {
        second_arrival: SecondArrival::AppliedAgain,
        // Absence is proved by the events that were received since before the attempt.
        proves_absence: true,
        late_arrival_limit,
        statuses_survive_restart: false,
        // A batch that arrives again is pending at once.
        reports_earlier_invalid: false,
        // A proposal that times out is dropped, and the next batch is applied.
        keeps_order: false,
        enforces_declared_access: false,
        one_node_for_service: true,
        batches_expire: false,
        has_events: true,
        compares_states: true,
        tells_identity: false,
        checks_keys: true,
        signs_batches: false,
        quiet_after: None,
    }
}
