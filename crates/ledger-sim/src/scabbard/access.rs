use std::{
    collections::HashSet,
    sync::{LazyLock, Mutex},
};

use grid_batch_protocol::{CylinderToken, PublicKey};
use grid_batch_support::{BoundedMap, lock};
use hyper::{Method, StatusCode};
use serde_json::json;

use super::responses::{self, UNAUTHORIZED, bad_header};
use crate::{request::SimRequest, response::SimResponse};

const PROTOCOL: u32 = 1;
const LIBRARY: &str = "0.7.1";
const PROTOCOL_HEADER: &str = "splinterprotocolversion";

/// The keys that may use the services.
#[derive(Debug, Clone)]
pub(crate) enum AllowedKeys {
    /// Any key.
    Any,
    /// Only these keys.
    Only {
        /// Keys that may do everything.
        keys: HashSet<PublicKey>,
        /// Keys that may only read.
        readers: HashSet<PublicKey>,
    },
}

impl AllowedKeys {
    /// Checks the Cylinder token of a request. The response is the same for a missing token, an invalid one, and one
    /// with a key that is not allowed.
    pub(super) fn check(&self, request: &SimRequest) -> Result<(), SimResponse> {
        let Some(header) = request.headers.get("authorization") else { return Err(unauthorized()) };
        let header = header.to_str().map_err(|_| bad_header())?;
        let token = header.strip_prefix("Bearer Cylinder:").ok_or_else(unauthorized)?;
        let key = issuer(token.trim())?;
        match self {
            Self::Only { keys, .. } if keys.contains(&key) => Ok(()),
            Self::Only { readers, .. }
                if request.method == Method::GET && readers.contains(&key) =>
            {
                Ok(())
            }
            Self::Only { .. } => Err(unauthorized()),
            Self::Any => Ok(()),
        }
    }
}

/// The issuer of a valid token. Clients send the same token with each request, so it is verified once.
fn issuer(token: &str) -> Result<PublicKey, SimResponse> {
    static ISSUERS: LazyLock<Mutex<BoundedMap<String, PublicKey>>> =
        LazyLock::new(|| Mutex::new(BoundedMap::new(100)));
    let token = token.to_owned();
    if let Some(issuer) = lock(&ISSUERS).get(&token) {
        return Ok(*issuer);
    }
    let issuer = CylinderToken::verify(&token).map_err(|_| unauthorized())?;
    lock(&ISSUERS).set(&token, issuer);
    Ok(issuer)
}

/// The response without a valid token. The node adds no headers to it.
pub(super) fn unauthorized() -> SimResponse {
    UNAUTHORIZED.bare_response()
}

/// Checks the protocol version if the request names one.
pub(super) fn check_version(request: &SimRequest) -> Result<(), SimResponse> {
    let Some(header) = request.headers.get(PROTOCOL_HEADER) else { return Ok(()) };
    let version: Option<u32> = header.to_str().ok().and_then(|version| version.parse().ok());
    let message = match version {
        Some(PROTOCOL) => return Ok(()),
        Some(version) if version > PROTOCOL => {
            format!("Client requires a newer protocol than can be provided: {version} > {PROTOCOL}")
        }
        Some(version) => format!(
            "Client requires an older protocol than can be provided: {version} < {PROTOCOL}"
        ),
        None => "SplinterProtocolVersion must be a valid positive integer".to_owned(),
    };
    let mut body = json!({
        "libsplinter_version": LIBRARY,
        "message": message,
        "splinter_protocol": PROTOCOL,
    });
    if let Some(version) = version {
        body["requested_protocol"] = version.into();
    }
    Err(responses::json(StatusCode::BAD_REQUEST, &body))
}
