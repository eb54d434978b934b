//! The protocol of Google Cloud KMS: gRPC.

use base64::{Engine, prelude::BASE64_STANDARD};
use prost::Message;

use super::{
    kms_fault::KmsFault,
    kms_server::{KmsApi, Operation},
};

pub(super) const SERVICE: &str = "/google.cloud.kms.v1.KeyManagementService/";
/// The response to each request for a token.
pub(super) const TOKEN: &str =
    r#"{"access_token": "a-token", "token_type": "Bearer", "expires_in": 3600}"#;
pub(super) const AUTHORIZATION: &str = "Bearer a-token";

const INVALID_ARGUMENT: u8 = 3;
const NOT_FOUND: u8 = 5;
const PERMISSION_DENIED: u8 = 7;
const RESOURCE_EXHAUSTED: u8 = 8;
const FAILED_PRECONDITION: u8 = 9;
const UNIMPLEMENTED: u8 = 12;
const INTERNAL: u8 = 13;
const UNAUTHENTICATED: u8 = 16;

/// Both requests: that for the public key has no digest.
#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "3")]
    digest: Option<Digest>,
}

#[derive(Clone, PartialEq, Message)]
struct Digest {
    #[prost(bytes = "vec", tag = "1")]
    sha256: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct PublicKey {
    #[prost(string, tag = "1")]
    pem: String,
}

#[derive(Clone, PartialEq, Message)]
struct SignResponse {
    #[prost(bytes = "vec", tag = "1")]
    signature: Vec<u8>,
}

/// The message of the response, or the number of a status of gRPC.
pub(super) fn respond(
    api: &KmsApi,
    method: &str,
    authorization: &[u8],
    frame: &[u8],
) -> Result<Vec<u8>, u8> {
    if authorization != AUTHORIZATION.as_bytes() {
        return Err(UNAUTHENTICATED);
    }
    // Before the message stand a flag and its length.
    let message = frame.get(5..).ok_or(INVALID_ARGUMENT)?;
    let request = Request::decode(message).map_err(|_| INVALID_ARGUMENT)?;
    if request.name != KmsApi::GCP_KEY {
        return Err(NOT_FOUND);
    }
    let message = match method {
        "GetPublicKey" => {
            let key = api.answer(Operation::PublicKey).map_err(status)?;
            PublicKey { pem: pem(&key) }.encode_to_vec()
        }
        "AsymmetricSign" => {
            let digest = request.digest.and_then(|digest| digest.sha256.try_into().ok());
            let operation = Operation::Sign(digest.ok_or(INVALID_ARGUMENT)?);
            let signature = api.answer(operation).map_err(status)?;
            SignResponse { signature }.encode_to_vec()
        }
        _ => return Err(UNIMPLEMENTED),
    };
    let length = u32::try_from(message.len()).map_err(|_| INTERNAL)?;
    Ok([&[0][..], &length.to_be_bytes(), &message].concat())
}

fn pem(der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let lines: Vec<&str> = [text.get(..64), text.get(64..)].into_iter().flatten().collect();
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
}

fn status(fault: KmsFault) -> u8 {
    match fault {
        KmsFault::Throttled => RESOURCE_EXHAUSTED,
        KmsFault::AccessDenied => PERMISSION_DENIED,
        KmsFault::KeyDisabled => FAILED_PRECONDITION,
        _ => INTERNAL,
    }
}
