//! The protocol of AWS KMS: JSON in HTTP/1.1.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{
    kms_fault::KmsFault,
    kms_server::{KmsApi, Operation},
};

/// The HTTP status and the body of the response.
pub(super) fn respond(api: &KmsApi, target: &str, is_signed: bool, body: &[u8]) -> (u16, String) {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let result = match operation(target, is_signed, &request) {
        Ok(operation) => api.answer(operation).map_err(error),
        Err(code) => Err((400, code)),
    };
    match result {
        Ok(bytes) => {
            let part = if target.ends_with(".Sign") { "Signature" } else { "PublicKey" };
            let key = &request["KeyId"];
            (200, json!({"KeyId": key, part: BASE64_STANDARD.encode(bytes)}).to_string())
        }
        Err((status, code)) => (status, json!({"__type": code, "message": "a test"}).to_string()),
    }
}

/// What the request asks for, or the code of an error.
fn operation(target: &str, is_signed: bool, request: &Value) -> Result<Operation, &'static str> {
    if !is_signed {
        return Err("MissingAuthenticationTokenException");
    }
    if request["KeyId"] != KmsApi::AWS_KEY {
        return Err("NotFoundException");
    }
    match target {
        "TrentService.GetPublicKey" => Ok(Operation::PublicKey),
        "TrentService.Sign" => digest(request).map(Operation::Sign).ok_or("ValidationException"),
        _ => Err("UnknownOperationException"),
    }
}

fn digest(request: &Value) -> Option<[u8; 32]> {
    let is_digest =
        request["MessageType"] == "DIGEST" && request["SigningAlgorithm"] == "ECDSA_SHA_256";
    let message = BASE64_STANDARD.decode(request["Message"].as_str()?).ok()?;
    message.try_into().ok().filter(|_| is_digest)
}

fn error(fault: KmsFault) -> (u16, &'static str) {
    match fault {
        KmsFault::Throttled => (400, "ThrottlingException"),
        KmsFault::AccessDenied => (400, "AccessDeniedException"),
        KmsFault::KeyDisabled => (400, "DisabledException"),
        _ => (500, "KMSInternalException"),
    }
}
