use std::fmt;

use grid_batch_http::{HttpClient, HttpError, origin};
use serde_json::Value;
use thiserror::Error;

use crate::{GasPrice, GasPriceError};

/// A service that says in JSON what gas costs, in gwei.
#[derive(Clone)]
pub(crate) struct Oracle {
    http: HttpClient,
    url: String,
    pointer: String,
}

/// Why an oracle gave no price. What it said otherwise stays out: it may repeat a secret of the
/// address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum OracleError {
    #[error("{0}")]
    Http(HttpError),
    #[error("HTTP status {status}")]
    Status { status: u16 },
    #[error("the answer is no JSON")]
    Json,
    #[error("the answer has no number at {pointer:?}")]
    Missing { pointer: String },
    #[error("{0}")]
    Price(GasPriceError),
    #[error("a price of 0 is none")]
    Zero,
}

impl Oracle {
    /// An oracle at an address, whose answer has the price where this JSON pointer says.
    pub(crate) fn new(
        http: HttpClient,
        url: impl Into<String>,
        pointer: impl Into<String>,
    ) -> Self {
        Self { http, url: url.into(), pointer: pointer.into() }
    }

    /// What may be shown of its address, which may hold a key.
    pub(super) fn origin(&self) -> String {
        origin(&self.url)
    }

    /// What gas costs, in wei.
    pub(super) async fn price(&self) -> Result<u128, OracleError> {
        let headers = [("accept", "application/json")];
        let answer = self.http.get(&self.url, &headers).await.map_err(OracleError::Http)?;
        if answer.status != 200 {
            return Err(OracleError::Status { status: answer.status });
        }
        let body = answer.body.map_err(OracleError::Http)?;
        let said: Value = serde_json::from_slice(&body).map_err(|_| OracleError::Json)?;
        self.read(&said)
    }

    fn read(&self, said: &Value) -> Result<u128, OracleError> {
        let missing = || OracleError::Missing { pointer: self.pointer.clone() };
        let gwei = said.pointer(&self.pointer).and_then(number).ok_or_else(missing)?;
        // Oracles calculate, and give digits beyond the wei.
        let price: GasPrice = format!("{gwei:.9}").parse().map_err(OracleError::Price)?;
        match price.wei() {
            0 => Err(OracleError::Zero),
            wei => Ok(wei),
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_f64(),
    }
}

impl fmt::Debug for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oracle")
            .field("origin", &self.origin())
            .field("pointer", &self.pointer)
            .finish_non_exhaustive()
    }
}
