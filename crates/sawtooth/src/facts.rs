use std::time::Duration;

use grid_batch_core::ledger::{LedgerFacts, SecondArrival};

/// Many times longer than a node needs for a batch. A batch that can never be applied stays pending and blocks
/// everything after it.
const QUIET_AFTER: Duration = Duration::from_secs(10);

/// What a Sawtooth network does with batches. It keeps the order of arrival only if it has one publishing node.
pub const fn facts(keeps_order: bool, late_arrival_limit: Duration) -> LedgerFacts {
    LedgerFacts {
        second_arrival: SecondArrival::AppliedOnce,
        proves_absence: true,
        late_arrival_limit,
        // This holds for committed batches. Pending and invalid ones are only in memory.
        statuses_survive_restart: true,
        // It does so for ten minutes, even while the batch waits to be executed again.
        reports_earlier_invalid: true,
        keeps_order,
        enforces_declared_access: true,
        one_node_for_service: false,
        batches_expire: false,
        has_events: true,
        compares_states: false,
        tells_identity: true,
        checks_keys: false,
        signs_batches: false,
        quiet_after: Some(QUIET_AFTER),
    }
}
