use axum::http::HeaderMap;

use crate::{http::ApiError, scabbard::ScabbardRequestError};

/// The only version of the protocol of Splinter's REST API.
const VERSION: u32 = 1;

/// Refuses a request for another version of the protocol. Few clients name one.
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(header) = headers.get("splinterprotocolversion") else { return Ok(()) };
    let version: Option<u32> = header.to_str().ok().and_then(|text| text.parse().ok());
    let rule = match version {
        Some(VERSION) => return Ok(()),
        Some(version) if version > VERSION => {
            format!("Client requires a newer protocol than can be provided: {version} > {VERSION}")
        }
        Some(version) => {
            format!("Client requires an older protocol than can be provided: {version} < {VERSION}")
        }
        None => "SplinterProtocolVersion must be a valid positive integer".to_owned(),
    };
    Err(ScabbardRequestError::ProtocolVersion(rule).into())
}
