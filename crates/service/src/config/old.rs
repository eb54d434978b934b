//! The names of settings of the release before, which are accepted in one more release.

use grid_batch_settings::{
    Now::{Nothing, Renamed, Rewritten},
    OldSetting,
};

const OF_REQUEST_TIMEOUT: &str = "it follows from ledger.request_timeout";
const OF_OPEN_BATCHES: &str = "it follows from intake.open_batches";
const OF_HOLD_AFTER: &str = "it follows from poll.hold_after";
const CONSTANT: &str = "the value that was the default is always used";

pub(super) static SETTINGS: &[OldSetting] = &[
    old("log_repeats", Nothing(CONSTANT)),
    old("log_counts", Nothing(CONSTANT)),
    old("ledger.services", Renamed("services.*.node")),
    old("ledger.peers", Renamed("services.*.peers")),
    old("ledger.connect_timeout", Nothing(OF_REQUEST_TIMEOUT)),
    old("ledger.events", Rewritten("ledger.event_sockets", event_sockets)),
    old("ledger.silence_timeout", Nothing(CONSTANT)),
    old("ledger.reconnect_first", Nothing(CONSTANT)),
    old("ledger.reconnect_longest", Nothing(CONSTANT)),
    old("ledger.strategy", Renamed("services.*.strategy")),
    old("ledger.strategies", Renamed("services.*.strategy")),
    old("ledger.after_invalid", Renamed("services.*.after_invalid")),
    old("ledger.after_invalid_of", Renamed("services.*.after_invalid")),
    old("ledger.dependency_limit", Nothing(CONSTANT)),
    old("ledger.known_history", Rewritten("services.*.unknown_history", sent_with_unknown_history)),
    old("ledger.refuse_unknown_history", Rewritten("services.*.unknown_history", refused)),
    old("evm.gas_admins", Renamed("gas_admins.*.key")),
    old("evm.keystore_passwords", Renamed("gas_admins.*.password")),
    old("evm.signer_timeout", Nothing(OF_REQUEST_TIMEOUT)),
    old("evm.pools", Renamed("pools.*.gas_admin")),
    old("evm.pool_maximum_gas_price", Renamed("pools.*.maximum_gas_price")),
    old("evm.maximum_payment", Renamed("pools.*.maximum_payment")),
    old("evm.maximum_payments_per_day", Renamed("pools.*.maximum_payments_per_day")),
    old("evm.beneficiaries", Renamed("pools.*.beneficiaries")),
    old("evm.low_balance", Nothing(CONSTANT)),
    old("evm.balance_interval", Nothing("it follows from evm.gate_interval")),
    old("evm.maximum_tip", Nothing("it follows from evm.maximum_gas_price")),
    old("evm.oracle_field", Renamed("testing.oracle_field")),
    old("evm.oracle_first", Nothing("write first: before the URL in evm.oracle_url")),
    old("evm.agreeing_nodes", Nothing("more than half of ledger.urls have to agree")),
    old("store.lock_timeout", Nothing(CONSTANT)),
    old("intake.connections", Nothing("it follows from the limit of file descriptors")),
    old("intake.requests_of_address", Nothing(CONSTANT)),
    old("intake.new_services_per_signer", Nothing(OF_OPEN_BATCHES)),
    old("intake.new_services", Nothing(OF_OPEN_BATCHES)),
    old("queue.round_size", Nothing(CONSTANT)),
    old("queue.poll_interval", Nothing(CONSTANT)),
    old("queue.delay", Nothing(CONSTANT)),
    old("queue.longest_delay", Nothing(CONSTANT)),
    old("submit.in_flight_per_service", Nothing("it follows from submit.in_flight")),
    old("submit.node_concurrency", Nothing("it follows from submit.concurrency")),
    old("submit.memory_limit", Nothing(CONSTANT)),
    old("submit.sending_limit", Nothing(OF_REQUEST_TIMEOUT)),
    old("submit.total_limit", Nothing(OF_REQUEST_TIMEOUT)),
    old("submit.drain_limit", Nothing(OF_REQUEST_TIMEOUT)),
    old("submit.not_sent_attempts", Nothing(CONSTANT)),
    old("submit.retry_after_limit", Nothing(CONSTANT)),
    old("submit.refusals_before_hold", Nothing(CONSTANT)),
    old("poll.longest_interval", Nothing("it follows from poll.interval")),
    old("poll.trigger_gap", Nothing(CONSTANT)),
    old("poll.connections", Nothing(CONSTANT)),
    old("poll.quiet_after", Nothing(OF_HOLD_AFTER)),
    old("poll.accept_absence_after", Nothing(OF_REQUEST_TIMEOUT)),
    old("poll.warn_after", Nothing(OF_HOLD_AFTER)),
    old("poll.max_attempts", Nothing(CONSTANT)),
    old("poll.resubmit_inconclusive", Rewritten("services.*.resubmit_inconclusive", switched_on)),
    old("retention.interval", Nothing(CONSTANT)),
    old("webhooks.allow_private", Rewritten("requests.*.options", private_networks)),
    old("webhooks.timeout", Nothing(CONSTANT)),
    old("webhooks.attempts", Nothing(CONSTANT)),
    old("metrics.services", Nothing(CONSTANT)),
];

const fn old(name: &'static str, now: grid_batch_settings::Now) -> OldSetting {
    OldSetting { name, now }
}

/// Each item of the list, with this value.
fn each_with(list: &str, value: &str) -> String {
    let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| format!("{item}={value}")).collect::<Vec<_>>().join(",")
}

fn switched_on(services: &str) -> String {
    each_with(services, "true")
}

fn sent_with_unknown_history(services: &str) -> String {
    each_with(services, "send")
}

fn private_networks(networks: &str) -> String {
    let items = networks.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| format!("webhooks=private:{item}")).collect::<Vec<_>>().join(",")
}

fn refused(text: &str) -> String {
    if text == "true" { "refuse".to_owned() } else { String::new() }
}

/// Without events there are no sockets; with them, their number is that of the other setting.
fn event_sockets(text: &str) -> String {
    if text == "false" { "0".to_owned() } else { String::new() }
}
