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

use super::kms_signer::{AlloySigner, Failure, KmsSigner, root_cause};
use crate::signer::SignerError;

const ENDPOINT: &str = "https://cloudkms.googleapis.com";

const NAME_OF_KEY: &str = "projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/V";

impl KmsSigner {
    /// The signer with this version of a key in Google Cloud KMS, by its resource name. Credentials are found as by
    /// every program that uses Google Cloud: in the file that the environment names, or from the machine's account.
    pub fn gcp(key: &str, account: Address, time_limit: Duration) -> Result<Self, SignerError> {
        Self::gcp_with(key, account, time_limit, ENDPOINT, || TokenSourceType::Default)
    }

    /// The same signer with another endpoint, and with credentials from another source.
    pub fn gcp_with(
        key: &str,
        account: Address,
        time_limit: Duration,
        endpoint: &str,
        credentials: impl Fn() -> TokenSourceType + Send + Sync + 'static,
    ) -> Result<Self, SignerError> {
        let name = format!("key {key} of Google Cloud KMS");
        let (ring, key, version) = parse_name(key).ok_or_else(|| {
            SignerError::Refused(format!("the name of its key is not {NAME_OF_KEY}"))
        })?;
        let endpoint = endpoint.to_owned();
        let connect = move || {
            let key = KeySpecifier::new(ring.clone(), &key, version);
            connect(key, endpoint.clone(), credentials())
        };
        Ok(Self::new(name, account, time_limit, connect, failure))
    }
}

async fn connect(
    key: KeySpecifier,
    endpoint: String,
    credentials: TokenSourceType,
) -> Result<AlloySigner, Failure> {
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

/// The ring, the key and the version in a resource name.
fn parse_name(name: &str) -> Option<(GcpKeyRingRef, String, u64)> {
    const KINDS: [&str; 5] =
        ["projects", "locations", "keyRings", "cryptoKeys", "cryptoKeyVersions"];
    let parts: Vec<&str> = name.split('/').collect();
    let values: Vec<&str> = parts.chunks_exact(2).map(|pair| pair[1]).collect();
    let [project, location, ring, key, version] = values[..] else { return None };
    let is_name = parts.len() == 10
        && parts.iter().step_by(2).eq(&KINDS)
        && values.iter().all(|value| !value.is_empty())
        && name.bytes().all(|byte| byte.is_ascii_graphic());
    let ring = GcpKeyRingRef::new(project, location, ring);
    is_name.then_some((ring, key.to_owned(), version.parse().ok()?))
}

fn failure(error: &(dyn Error + 'static)) -> Failure {
    match error.downcast_ref() {
        Some(GcpSignerError::RequestError(status)) => status_failure(status),
        Some(GcpSignerError::GoogleKmsError(error)) => gcloud_failure(error),
        _ => (SignerError::WrongAnswer, error.to_string()),
    }
}

fn status_failure(status: &Status) -> Failure {
    use Code::{FailedPrecondition, InvalidArgument, NotFound, PermissionDenied, Unauthenticated};
    // With a source, it is an error of this side.
    if let Some(error) = status.source() {
        return match error.downcast_ref::<Box<GcloudError>>() {
            Some(of_credentials) => gcloud_failure(of_credentials),
            None => (SignerError::Unavailable, root_cause(error)),
        };
    }
    let kind = match status.code() {
        PermissionDenied | Unauthenticated | NotFound | InvalidArgument | FailedPrecondition => {
            SignerError::Refused
        }
        _ => SignerError::Unavailable,
    };
    (kind, format!("it answered with {:?}", status.code()))
}

/// An error of the connection or of the credentials, without any part of these.
fn gcloud_failure(error: &GcloudError) -> Failure {
    let reason = match error.kind() {
        ErrorKind::GrpcStatus(error) => root_cause(error),
        ErrorKind::Http(error) => format!("no token for its credentials: {}", root_cause(error)),
        ErrorKind::HttpStatus(status) => format!("no token for its credentials: {status}"),
        ErrorKind::CredentialsFile(_) | ErrorKind::TokenSource => error.to_string(),
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
            let error = KmsSigner::gcp(other, Address::ZERO, limit).unwrap_err().to_string();
            assert!(error.contains("is not projects/P/"), "{other}: {error}");
        }
    }
}
