use std::{fmt, sync::Arc, time::Duration};

use alloy_primitives::Address;
use grid_batch_core::{Clock, SystemClock};
use grid_batch_http::{HttpError, HttpOptions, origin};
use thiserror::Error;

use crate::{GasAdminKey, GasPrice};

/// How a chain is spoken to, what may be paid for gas, and when a withdrawal is believed.
#[derive(Debug, Clone)]
pub struct EvmOptions {
    /// The chain. A node of another one is sent nothing.
    pub chain_id: u64,
    /// The keys of the accounts that pay the gas. What is scheduled for others waits.
    pub keys: Vec<GasAdminKey>,
    /// Nothing is signed while gas costs as much as this, and nothing ever bids more.
    pub cap: GasPrice,
    /// Pools that have a cap of their own instead.
    pub pool_caps: Vec<(Address, GasPrice)>,
    /// Another source of the price beside the node.
    pub oracle: Option<OracleOptions>,
    /// The oracle is asked first, and the node where it fails; else the other way round.
    pub oracle_first: bool,
    /// How long a withdrawal that waits at a gate waits until it looks again.
    pub gate_interval: Duration,
    /// So many blocks are to hold a withdrawal, its own included, until it is believed. A node is
    /// asked for the state so many blocks ago, which most keep for 128.
    pub confirmations: u64,
    /// What was sent so long ago, and waits, is sent again, and pays more where the cap lets it.
    pub resend_after: Duration,
    /// How many questions for statuses may be under way at once.
    pub connections: usize,
    /// How requests are made.
    pub http: HttpOptions,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// Where a gas price can be read. Its address may hold a key: only its beginning is ever shown.
#[derive(Clone, PartialEq, Eq)]
pub struct OracleOptions {
    /// What is to be read.
    pub url: String,
    /// Where in the answer the price stands, in gwei: a JSON pointer such as `/result/FastGasPrice`.
    pub pointer: String,
}

/// Why an adapter cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EvmError {
    /// There is no way to make requests.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// No question could ever be asked.
    #[error("connections is 0; it is to be at least 1")]
    NoConnections,
    /// What is not in a block would be believed.
    #[error("confirmations is 0; it is to be at least 1")]
    NoConfirmations,
    /// The oracle's pointer is none.
    #[error("the oracle's pointer is {pointer:?}; it is to begin with \"/\"")]
    Pointer {
        /// The pointer.
        pointer: String,
    },
}

impl EvmOptions {
    /// Options for a chain, where gas may cost less than `cap`; there are no keys yet.
    pub fn new(chain_id: u64, cap: GasPrice) -> Self {
        Self {
            chain_id,
            keys: Vec::new(),
            cap,
            pool_caps: Vec::new(),
            oracle: None,
            oracle_first: false,
            gate_interval: Duration::from_secs(5),
            confirmations: 3,
            resend_after: Duration::from_secs(30),
            connections: 4,
            http: HttpOptions::default(),
            clock: Arc::new(SystemClock),
        }
    }

    pub(crate) fn check(&self) -> Result<(), EvmError> {
        if self.connections == 0 {
            return Err(EvmError::NoConnections);
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

impl fmt::Debug for OracleOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OracleOptions")
            .field("url", &origin(&self.url))
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
    fn the_first_options_can_be_used() {
        assert_eq!(options().check(), Ok(()));
    }

    #[test]
    fn options_that_would_stop_or_believe_everything_are_refused() {
        let message = |options: EvmOptions| options.check().unwrap_err().to_string();
        let rule = "is 0; it is to be at least 1";
        let none = EvmOptions { connections: 0, ..options() };
        assert_eq!(message(none), format!("connections {rule}"));
        let none = EvmOptions { confirmations: 0, ..options() };
        assert_eq!(message(none), format!("confirmations {rule}"));
        let oracle = OracleOptions { url: "http://o".to_owned(), pointer: "fast".to_owned() };
        let pointer = EvmOptions { oracle: Some(oracle), ..options() };
        assert_eq!(message(pointer), "the oracle's pointer is \"fast\"; it is to begin with \"/\"");
    }

    #[test]
    fn an_oracles_secret_is_not_shown() {
        let url = "https://user:word@gas.example/api?key=secret".to_owned();
        let oracle = OracleOptions { url, pointer: "/fast".to_owned() };
        let shown = format!("{:?}", EvmOptions { oracle: Some(oracle), ..options() });
        assert!(shown.contains("gas.example"), "{shown}");
        assert!(!shown.contains("word") && !shown.contains("secret"), "{shown}");
    }
}
