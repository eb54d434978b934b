use std::time::Duration;

use grid_batch_core::ledger::LedgerFacts;
use grid_batch_service::{ConfigError, LedgerType, Origin, SETTINGS, SettingValues};

/// What the adapter of this ledger declares with these values of the settings that facts depend on.
pub fn declared_facts(
    ledger: &LedgerType,
    keeps_order: bool,
    late_arrival_limit: Duration,
) -> Result<LedgerFacts, ConfigError> {
    let given = [
        ("ledger.keeps_order", keeps_order.to_string()),
        ("ledger.late_arrival_limit", format!("{}ms", late_arrival_limit.as_millis())),
    ];
    let given = given.map(|(name, text)| Some(SETTINGS.named(name)?.given(Origin::Default, text)));
    let settings = SettingValues::defaults(SETTINGS.clone());
    ledger.facts(&settings.override_with(given.into_iter().flatten()))
}
