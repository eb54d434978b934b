use std::time::Duration;

use grid_batch_core::ledger::{LedgerFacts, SecondArrival};

/// What an EVM chain does with signed transactions. The search for evidence also causes a transaction that is not mined
/// after `resend_after` to be sent again.
pub const fn facts(resend_after: Duration) -> LedgerFacts {
    LedgerFacts {
        // The nonce of a transaction can be used only once.
        second_arrival: SecondArrival::AppliedOnce,
        proves_absence: true,
        // The nonce of a transaction that arrives late has been used.
        late_arrival_limit: Duration::ZERO,
        statuses_survive_restart: true,
        reports_earlier_invalid: false,
        // Nonces set the order, whatever the order of arrival.
        keeps_order: false,
        enforces_declared_access: false,
        one_node_for_service: false,
        batches_expire: false,
        has_events: true,
        compares_states: false,
        tells_identity: true,
        checks_keys: false,
        signs_batches: true,
        quiet_after: Some(resend_after),
    }
}
