use std::{fmt, sync::Arc, time::Duration};

use alloy_primitives::Address;
use grid_batch_core::{Clock, SystemClock};
use grid_batch_http::{HttpError, HttpOptions};
use grid_batch_support::redact_url;
use thiserror::Error;

use crate::{calls::AccountRules, rules::PoolRules, signer::TransactionSigner, values::GasPrice};

/// Options of an adapter: the chain, the signers, the gas price, and when a withdrawal is final.
#[derive(Debug, Clone)]
pub struct EvmOptions {
    /// The id of the chain. Nothing is sent to a node of another chain.
    pub chain_id: u64,
    /// The signers, one for each gas admin. Withdrawals of other gas admins wait.
    pub signers: Vec<Arc<dyn TransactionSigner>>,
    /// The cap of the gas price: nothing is signed while gas costs this much or more, and no
    /// transaction bids more.
    pub cap: GasPrice,
    /// Caps of single pools, which replace `cap`.
    pub pool_caps: Vec<(Address, GasPrice)>,
    /// The pools of each gas admin. Withdrawals to beneficiaries that a pool must not pay are not signed.
    pub rules: PoolRules,
    /// What the gas admins may send beside withdrawals. Other calls are not signed.
    pub calls: AccountRules,
    /// The highest tip that is offered to block producers on a chain with a base fee. A replacement may have to exceed
    /// it, and it does not limit an oracle's price.
    pub maximum_tip: GasPrice,
    /// A second source of the gas price.
    pub oracle: Option<OracleOptions>,
    /// Whether the oracle is asked first and the node only if the oracle fails. Otherwise it is the other way round.
    pub oracle_first: bool,
    /// How long a parked withdrawal waits before the gates are checked again.
    pub gate_interval: Duration,
    /// How many blocks, including its own, must confirm a transaction before it is final. Nodes are asked for the state
    /// of that many blocks ago; most keep 128.
    pub confirmations: u64,
    /// How long a transaction is pending before it is sent again, with a higher fee if the cap
    /// allows it.
    pub resend_after: Duration,
    /// How many nonces below the next one may be missing at the node. If more are missing, nothing is sent.
    pub longest_gap: u64,
    /// How many up-to-date nodes must report that a pool refuses a withdrawal before it fails.
    pub agreeing_nodes: usize,
    /// A node whose latest block is older than this is not up to date. `None`: blocks may have any age, as on a chain
    /// that adds blocks only for transactions.
    pub head_age_limit: Option<Duration>,
    /// How many transactions of a gas admin may be pending at once, because withdrawals are signed and sent before
    /// their turn. 1: none is sent before its turn.
    pub in_flight: usize,
    /// Limit on the number of status requests in flight.
    pub connections: usize,
    /// Options of the HTTP client for the nodes.
    pub http: HttpOptions,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// Where a gas price can be read. The URL may contain a key, so only its scheme and host are ever shown.
#[derive(Clone, PartialEq, Eq)]
pub struct OracleOptions {
    /// The URL that returns the price as JSON.
    pub url: String,
    /// The JSON pointer to the price in gwei, such as `/result/FastGasPrice`.
    pub pointer: String,
    /// Options of the HTTP client.
    pub http: HttpOptions,
}

/// Why an adapter cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EvmError {
    /// The HTTP client cannot be created.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// No status could ever be requested.
    #[error("connections is 0; it must be at least 1")]
    NoConnections,
    /// Nothing could be sent.
    #[error("in_flight is 0; it must be at least 1")]
    NoneInFlight,
    /// Transactions would be final without a block.
    #[error("confirmations is 0; it must be at least 1")]
    NoConfirmations,
    /// The oracle's pointer is not a JSON pointer.
    #[error("the oracle pointer {pointer:?} is not a JSON pointer; it must begin with \"/\"")]
    Pointer {
        /// The pointer.
        pointer: String,
    },
}

impl EvmOptions {
    /// Options for a chain with this cap of the gas price, without signers.
    pub fn new(chain_id: u64, cap: GasPrice) -> Self {
        Self {
            chain_id,
            signers: Vec::new(),
            cap,
            pool_caps: Vec::new(),
            rules: PoolRules::default(),
            calls: AccountRules::default(),
            maximum_tip: GasPrice::from_wei(50_000_000_000),
            oracle: None,
            oracle_first: false,
            gate_interval: Duration::from_secs(5),
            confirmations: 3,
            resend_after: Duration::from_secs(30),
            longest_gap: 64,
            agreeing_nodes: 1,
            head_age_limit: None,
            in_flight: 16,
            connections: 4,
            http: HttpOptions::default(),
            clock: Arc::new(SystemClock),
        }
    }

    pub(crate) fn check(&self) -> Result<(), EvmError> {
        if self.connections == 0 {
            return Err(EvmError::NoConnections);
        }
        if self.in_flight == 0 {
            return Err(EvmError::NoneInFlight);
        }
        if self.confirmations == 0 {
            return Err(EvmError::NoConfirmations);
        }
        match &self.oracle {
            Some(OracleOptions { pointer, .. }) if !pointer.starts_with('/') => {
                Err(EvmError::Pointer { pointer: pointer.clone() })
            }
            _ => Ok(()),
        }
    }
}

impl OracleOptions {
    /// The oracle at this URL, with the default options of requests.
    pub fn new(url: impl Into<String>, pointer: impl Into<String>) -> Self {
        Self { url: url.into(), pointer: pointer.into(), http: HttpOptions::default() }
    }

    /// The URL without the parts that may be secret: its user, path and query.
    pub(crate) fn redacted_url(&self) -> String {
        if self.url.contains("://") {
            redact_url(&self.url)
        } else {
            "(a URL without a scheme)".to_owned()
        }
    }
}

impl fmt::Debug for OracleOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OracleOptions")
            .field("url", &self.redacted_url())
            .field("pointer", &self.pointer)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> EvmOptions {
        EvmOptions::new(137, "200".parse().unwrap())
    }

    #[test]
    fn default_options_are_valid() {
        assert_eq!(options().check(), Ok(()));
    }

    #[test]
    fn invalid_options_are_refused() {
        let message = |options: EvmOptions| options.check().unwrap_err().to_string();
        let rule = "is 0; it must be at least 1";
        let none = EvmOptions { connections: 0, ..options() };
        assert_eq!(message(none), format!("connections {rule}"));
        let none = EvmOptions { confirmations: 0, ..options() };
        assert_eq!(message(none), format!("confirmations {rule}"));
        let none = EvmOptions { in_flight: 0, ..options() };
        assert_eq!(message(none), format!("in_flight {rule}"));
        let oracle = OracleOptions::new("http://o", "fast");
        let pointer = EvmOptions { oracle: Some(oracle), ..options() };
        assert_eq!(
            message(pointer),
            "the oracle pointer \"fast\" is not a JSON pointer; it must begin with \"/\""
        );
    }

    #[test]
    fn oracle_url_is_shown_without_secrets() {
        let oracle = OracleOptions::new("https://user:word@gas.example/api?key=secret", "/fast");
        let shown = format!("{:?}", EvmOptions { oracle: Some(oracle), ..options() });
        assert!(shown.contains("gas.example"), "{shown}");
        assert!(!shown.contains("word") && !shown.contains("secret"), "{shown}");
        let oracle = OracleOptions::new("user:secret@gas.example", "/fast");
        assert!(!format!("{oracle:?}").contains("secret"), "{oracle:?}");
    }
}
