//! The server's settings for a chain with a block each second.

/// Withdrawals are parked at this gas price and above.
pub(super) const MAXIMUM_GAS_PRICE_GWEI: u64 = 200;

/// The server's settings.
pub(super) const SETTINGS: &[(&str, &str)] = &[
    ("listen", "127.0.0.1:0"),
    ("ledger.kind", "evm"),
    ("ledger.name", "demo"),
    ("testing.connect_timeout", "1s"),
    ("ledger.request_timeout", "2s"),
    ("evm.gate_interval", "1s"),
    ("evm.confirmations", "2"),
    // A low value, so that some of the few withdrawals are not signed yet when the gas price rises.
    ("evm.in_flight", "1"),
    ("evm.resend_after", "2s"),
    ("claims.idle_expiry", "2s"),
    ("claims.full_expiry", "30s"),
    ("testing.longest_delay", "500ms"),
    ("testing.sending_limit", "5s"),
    ("testing.total_limit", "10s"),
    ("poll.interval", "100ms"),
    ("testing.longest_interval", "1s"),
    ("testing.quiet_after", "1s"),
];
