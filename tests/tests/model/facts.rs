//! Facts of ledgers, as their adapters declare them.

use std::time::Duration;

use grid_batch_core::ledger::LedgerFacts;
use grid_batch_service::LedgerType;
use grid_batch_tests::declared_facts;

use crate::protocol::ACCEPT_ABSENCE_AFTER;

/// Longer than absence is accepted after, where another attempt is harmless.
pub const LATE: Duration = Duration::from_secs(330);

/// A ledger that applies a batch at most once, and never forgets that: Sawtooth. No POST arrives later than absence is
/// accepted.
pub fn applies_once() -> LedgerFacts {
    declared_by("sawtooth", false, ACCEPT_ABSENCE_AFTER)
}

/// The same with POSTs that arrive later.
pub fn lingering() -> LedgerFacts {
    declared_by("sawtooth", false, LATE)
}

/// A ledger that applies every batch that it receives, and forgets all at a restart: Scabbard.
pub fn applies_again() -> LedgerFacts {
    declared_by("scabbard", false, LATE)
}

/// What the adapter of this ledger declares.
fn declared_by(name: &str, keeps_order: bool, late_arrival_limit: Duration) -> LedgerFacts {
    let ledger = LedgerType::known().iter().find(|ledger| ledger.name() == name);
    facts_of(ledger.expect("a known ledger"), keeps_order, late_arrival_limit)
}

pub fn facts_of(
    ledger: &LedgerType,
    keeps_order: bool,
    late_arrival_limit: Duration,
) -> LedgerFacts {
    declared_facts(ledger, keeps_order, late_arrival_limit).expect("the settings are valid")
}
