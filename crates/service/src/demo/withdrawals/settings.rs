//! A service that looks more often than one beside a genuine chain, whose blocks take their time.

/// Withdrawals wait at this price of gas, and above.
pub(super) const CAP_GWEI: u64 = 200;

/// The settings of the service, by name.
pub(super) const SETTINGS: &[(&str, &str)] = &[
    ("listen", "127.0.0.1:0"),
    ("ledger.kind", "evm"),
    ("ledger.connect_limit", "1s"),
    ("ledger.request_limit", "2s"),
    ("evm.gate_interval", "1s"),
    ("evm.confirmations", "2"),
    ("evm.resend_after", "2s"),
    ("claims.expiry_1", "2s"),
    ("claims.expiry_2", "30s"),
    ("queue.delay", "500ms"),
    ("submit.sending_limit", "5s"),
    ("submit.total_limit", "10s"),
    ("poll.interval", "100ms"),
    ("poll.longest", "1s"),
    ("poll.quiet_after", "1s"),
];
