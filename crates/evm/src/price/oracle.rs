use std::sync::Arc;

use grid_batch_http::{HttpError, HttpRequests};
use serde_json::Value;
use thiserror::Error;

use crate::{
    options::OracleOptions,
    values::{GasPrice, GasPriceError},
};

/// A web service that returns the gas price as JSON, in gwei.
#[derive(Debug, Clone)]
pub(crate) struct Oracle {
    http: Arc<dyn HttpRequests>,
    options: OracleOptions,
}

/// Why an oracle returned no price. The response itself is left out, because it may repeat a secret of the URL.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum OracleError {
    #[error(transparent)]
    Http(HttpError),
    #[error("HTTP status {status}")]
    Status { status: u16 },
    #[error("the response is not JSON")]
    Json,
    #[error("the response has no number at {pointer:?}")]
    Missing { pointer: String },
    #[error(transparent)]
    Price(GasPriceError),
    #[error("the price is 0")]
    Zero,
}

impl Oracle {
    pub(crate) fn new(http: Arc<dyn HttpRequests>, options: OracleOptions) -> Self {
        Self { http, options }
    }

    /// The URL without secrets.
    pub(super) fn redacted_url(&self) -> String {
        self.options.redacted_url()
    }

    /// The gas price, in wei.
    pub(super) async fn price(&self) -> Result<u128, OracleError> {
        let headers = [("accept", "application/json")];
        let response =
            self.http.get(&self.options.url, &headers).await.map_err(OracleError::Http)?;
        if response.status != 200 {
            return Err(OracleError::Status { status: response.status });
        }
        let body = response.body.map_err(OracleError::Http)?;
        let json: Value = serde_json::from_slice(&body).map_err(|_| OracleError::Json)?;
        self.read_price(&json)
    }

    fn read_price(&self, json: &Value) -> Result<u128, OracleError> {
        let pointer = &self.options.pointer;
        let missing = || OracleError::Missing { pointer: pointer.clone() };
        let gwei = json.pointer(pointer).and_then(number).ok_or_else(missing)?;
        // Calculated prices may have more digits than a wei, so they are rounded.
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
