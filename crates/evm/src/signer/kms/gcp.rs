use std::{error::Error, time::Duration};

use alloy_primitives::Address;
use alloy_signer_gcp::{
    GcpKeyRingRef, GcpSigner, GcpSignerError, KeySpecifier,
    gcloud_sdk::{
        GCP_DEFAULT_SCOPES, GoogleApi, TokenSourceType,
        error::{Error as GcloudError, ErrorKind},
        google::cloud::kms::v1::key_management_service_client::KeyManagementServiceClient,
        tonic::{Code, Status},
    },
};
use futures_core::future::BoxFuture;
use thiserror::Error;

use super::kms_signer::{AlloySigner, Failure, KmsSigner, root_cause};
use crate::signer::SignerError;

const ENDPOINT: &str = "https://cloudkms.googleapis.com";

/// The text is not the resource name of a version of a key in Google Cloud KMS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the name of a key must be \
     projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/V"
)]
pub struct GcpKeyNameError;

impl KmsSigner {
    /// The signer with this version of a key in Google Cloud KMS, by its resource name. Credentials are found as by
    /// every program that uses Google Cloud: in the file that the environment names, or from the machine's account.
    pub fn gcp(key: &str, account: Address, time_limit: Duration) -> Result<Self, GcpKeyNameError> {
        Self::gcp_with(key, account, time_limit, ENDPOINT, || TokenSourceType::Default)
    }

    /// The same signer with another endpoint, and with credentials from another source.
    pub fn gcp_with(
        key: &str,
        account: Address,
        time_limit: Duration,
        endpoint: &str,
        credentials: impl Fn() -> TokenSourceType + Send + Sync + 'static,
    ) -> Result<Self, GcpKeyNameError> {
        key_specifier(key).ok_or(GcpKeyNameError)?;
        let name = format!("key {key} of Google Cloud KMS");
        let (key, endpoint) = (key.to_owned(), endpoint.to_owned());
        let connect = move || -> BoxFuture<'static, Result<AlloySigner, Failure>> {
            Box::pin(connect(key.clone(), endpoint.clone(), credentials()))
        };
        Ok(Self::new(name, account, time_limit, Box::new(connect), failure))
    }
}

async fn connect(
    key: String,
    endpoint: String,
    credentials: TokenSourceType,
) -> Result<AlloySigner, Failure> {
    let key = key_specifier(&key)
        .ok_or_else(|| (SignerError::Refused as _, GcpKeyNameError.to_string()))?;
    let client = GoogleApi::from_function_with_token_source(
        KeyManagementServiceClient::new,
        endpoint,
        None,
        GCP_DEFAULT_SCOPES.clone(),
        credentials,
    );
    let client = client.await.map_err(|error| gcloud_failure(&error))?;
    let signer = GcpSigner::new(client, key, None).await.map_err(|error| failure(&error))?;
    Ok(Box::new(signer))
}

fn key_specifier(name: &str) -> Option<KeySpecifier> {
    let parts: Vec<&str> = name.split('/').collect();
    let [
        "projects",
        project,
        "locations",
        location,
        "keyRings",
        ring,
        "cryptoKeys",
        key,
        "cryptoKeyVersions",
        version,
    ] = parts[..]
    else {
        return None;
    };
    let is_name =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
    let version = version.parse().ok()?;
    let ring_of = GcpKeyRingRef::new(project, location, ring);
    [project, location, ring, key]
        .iter()
        .all(is_name)
        .then(|| KeySpecifier::new(ring_of, key, version))
}

fn failure(error: &(dyn Error + 'static)) -> Failure {
    match error.downcast_ref() {
        Some(GcpSignerError::RequestError(status)) => status_failure(status),
        Some(GcpSignerError::GoogleKmsError(error)) => gcloud_failure(error),
        _ => (SignerError::WrongAnswer, error.to_string()),
    }
}

fn status_failure(status: &Status) -> Failure {
    // An error of the credentials is the source of a status of the client.
    if let Some(error) = status.source().and_then(<dyn Error>::downcast_ref::<Box<GcloudError>>) {
        return gcloud_failure(error);
    }
    let reason = format!("it answered with {:?}", status.code());
    match status.code() {
        Code::PermissionDenied
        | Code::Unauthenticated
        | Code::NotFound
        | Code::InvalidArgument
        | Code::FailedPrecondition => (SignerError::Refused, reason),
        Code::Unavailable if status.source().is_some() => {
            (SignerError::Unavailable, root_cause(status))
        }
        _ => (SignerError::Unavailable, reason),
    }
}

/// An error of the connection or of the credentials, without any part of these.
fn gcloud_failure(error: &GcloudError) -> Failure {
    let reason = match error.kind() {
        ErrorKind::GrpcStatus(error) => root_cause(error),
        ErrorKind::Http(error) => format!("no token for its credentials: {}", root_cause(error)),
        ErrorKind::HttpStatus(status) => format!("no token for its credentials: {status}"),
        ErrorKind::CredentialsFile(error) => format!("the file of its credentials: {error}"),
        ErrorKind::TokenSource => "there are no credentials for it".to_owned(),
        _ => "its credentials cannot be used".to_owned(),
    };
    (SignerError::Unavailable, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_of_keys_are_names() {
        let version = "projects/p/locations/global/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1";
        let limit = Duration::from_secs(1);
        assert!(KmsSigner::gcp(version, Address::ZERO, limit).is_ok());
        for other in [
            "",
            "k",
            version.strip_suffix("/cryptoKeyVersions/1").unwrap(),
            version.strip_suffix('1').unwrap(),
            &version.replace("/p/", "//"),
            &version.replace("/p/", "/p\n/"),
            &format!("{version}/x"),
        ] {
            assert_eq!(KmsSigner::gcp(other, Address::ZERO, limit).err(), Some(GcpKeyNameError));
        }
    }
}
