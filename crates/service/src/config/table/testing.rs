//! What only tests set, so that they need not wait for as long as a real ledger takes. A program that uses this crate
//! sets the fields of [`Config`](crate::Config) instead. Empty: it follows from another setting.

use grid_batch_settings::Setting;

use super::HOUR;

pub(super) static SETTINGS: &[Setting] = &[
    time("testing.log_counts", "1m"),
    time("testing.connect_timeout", ""),
    time("testing.silence_timeout", "45s"),
    time("testing.reconnect_first", "250ms"),
    time("testing.reconnect_longest", "30s"),
    time("testing.dependency_limit", "10m"),
    time("testing.lock_timeout", "30s"),
    count("testing.new_services_per_signer", ""),
    count("testing.new_services", ""),
    time("testing.queue_poll_interval", "1s").at_most(HOUR),
    time("testing.first_delay", "250ms"),
    time("testing.longest_delay", "30s").at_most(HOUR),
    count("testing.in_flight_per_service", "").between(1, 1_000),
    count("testing.memory_limit", "67108864"),
    time("testing.sending_limit", ""),
    time("testing.total_limit", ""),
    time("testing.drain_limit", ""),
    time("testing.retry_after_limit", "5m"),
    count("testing.refusals_before_hold", "40").between(1, 1_000_000),
    time("testing.longest_interval", ""),
    time("testing.trigger_gap", "5ms").at_most(HOUR),
    time("testing.quiet_after", ""),
    time("testing.accept_absence_after", ""),
    time("testing.warn_after", ""),
    count("testing.max_attempts", "10").between(1, 1_000_000),
    time("testing.retention_interval", "1h"),
    time("testing.webhooks_timeout", "15s").at_most(HOUR),
];

const fn time(name: &'static str, default: &'static str) -> Setting {
    Setting::text(name, default, "").for_tests()
}

const fn count(name: &'static str, default: &'static str) -> Setting {
    Setting::number(name, default, "").for_tests()
}
