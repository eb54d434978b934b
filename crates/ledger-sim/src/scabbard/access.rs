use std::collections::HashSet;

use grid_batch_protocol::{CylinderToken, PublicKey};
use hyper::StatusCode;
use serde_json::json;

use super::answers::{self, UNAUTHORIZED, bad_header};
use crate::{answer::Answer, ask::Ask};

const PROTOCOL: u32 = 1;
const LIBRARY: &str = "0.7.1";
const PROTOCOL_HEADER: &str = "splinterprotocolversion";

/// Who may submit and ask.
#[derive(Debug, Clone)]
pub(crate) enum Keys {
    /// Whoever has a key.
    Any,
    /// The holders of these keys.
    Allowed(HashSet<PublicKey>),
}

impl Keys {
    /// Checks the request's Cylinder token. A missing one, a wrong one and one of a key that may
    /// not are answered alike.
    pub(super) fn check(&self, ask: &Ask) -> Result<(), Answer> {
        let Some(header) = ask.headers.get("authorization") else { return Err(unauthorized()) };
        let header = header.to_str().map_err(|_| bad_header())?;
        let token = header.strip_prefix("Bearer Cylinder:").ok_or_else(unauthorized)?;
        let key = CylinderToken::verify(token.trim()).map_err(|_| unauthorized())?;
        match self {
            Self::Allowed(keys) if !keys.contains(&key) => Err(unauthorized()),
            _ => Ok(()),
        }
    }
}

/// The answer to whoever may not. It comes from before the part that adds headers.
pub(super) fn unauthorized() -> Answer {
    UNAUTHORIZED.bare_answer()
}

/// Checks the protocol version, where the client names one.
pub(super) fn check_version(ask: &Ask) -> Result<(), Answer> {
    let Some(header) = ask.headers.get(PROTOCOL_HEADER) else { return Ok(()) };
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
    Err(answers::json(StatusCode::BAD_REQUEST, &body))
}
