use std::{env, net::IpAddr, path::Path, sync::Arc, time::Duration};

use alloy_primitives::Address;
use grid_batch_http::HttpOptions;
use grid_batch_nodes::NodePool;
use grid_batch_support::{Authority, UnusableSecret, read_secret};
use log::warn;

use super::error::{EvmSetupError, invalid};
#[cfg(any(feature = "aws-kms", feature = "gcp-kms"))]
use crate::signer::KmsSigner;
use crate::{
    settings::{EvmSettings, GasAdminSettings, KeySource, PasswordSource},
    signer::{GasAdminKey, GasAdminKeyError, RemoteSigner, TransactionSigner},
    values::parse_address,
};

const KEY_FILE: &str = "key file";
const KEYSTORE: &str = "keystore file";
const PASSWORD_FILE: &str = "password file";

/// The name of a gas admin and its signer.
type NamedSigner<'a> = (&'a str, Arc<dyn TransactionSigner>);

/// The gas admins, each with its signer.
pub(super) fn signers<'a>(
    settings: &'a EvmSettings,
    http: &HttpOptions,
) -> Result<Vec<NamedSigner<'a>>, EvmSetupError> {
    let admins = settings.gas_admins.key.iter();
    admins
        .map(|(name, source)| Ok((name.as_str(), signer(settings, http, name, source)?)))
        .collect()
}

fn signer(
    settings: &EvmSettings,
    http: &HttpOptions,
    name: &str,
    source: &KeySource,
) -> Result<Arc<dyn TransactionSigner>, EvmSetupError> {
    match source {
        KeySource::File(file) => {
            let key: Result<GasAdminKey, _> = read_secret(KEY_FILE, file)?.parse();
            Ok(Arc::new(key.map_err(|error| UnusableSecret::in_file(KEY_FILE, file, error))?))
        }
        KeySource::Variable(variable) => {
            let what = format!("key in the variable {variable}, of the gas admin {name},");
            let key: Result<GasAdminKey, GasAdminKeyError> =
                read_variable(&what, variable)?.parse();
            Ok(Arc::new(key.map_err(|error| UnusableSecret::at(what, error))?))
        }
        KeySource::Keystore(file) => Ok(Arc::new(keystore_key(settings, name, file)?)),
        KeySource::Remote { account, url } => {
            Ok(Arc::new(remote(settings, http, address(account)?, url)?))
        }
        #[cfg(feature = "aws-kms")]
        KeySource::AwsKms { account, key } => {
            Ok(Arc::new(KmsSigner::aws(key, address(account)?, time_limit(settings, http))))
        }
        #[cfg(feature = "gcp-kms")]
        KeySource::GcpKms { account, key } => {
            let signer = KmsSigner::gcp(key, address(account)?, time_limit(settings, http));
            Ok(Arc::new(signer.map_err(|error| invalid(GasAdminSettings::key.name, error))?))
        }
        #[cfg(not(feature = "aws-kms"))]
        KeySource::AwsKms { .. } => Err(not_in_this_build("AWS", "evm-aws-kms")),
        #[cfg(not(feature = "gcp-kms"))]
        KeySource::GcpKms { .. } => Err(not_in_this_build("Google Cloud", "evm-gcp-kms")),
    }
}

#[cfg(not(all(feature = "aws-kms", feature = "gcp-kms")))]
fn not_in_this_build(cloud: &str, feature: &str) -> EvmSetupError {
    let message = format!("keys in the KMS of {cloud} need a build with the feature {feature}");
    invalid(GasAdminSettings::key.name, message)
}

fn keystore_key(
    settings: &EvmSettings,
    name: &str,
    file: &Path,
) -> Result<GasAdminKey, EvmSetupError> {
    let password = settings.gas_admins.password.iter().find(|(of, _)| of == name);
    let password = match password.map(|(_, source)| source) {
        Some(PasswordSource::File(file)) => first_line(read_secret(PASSWORD_FILE, file)?),
        Some(PasswordSource::Variable(variable)) => {
            let what = format!("password in the variable {variable}, of the gas admin {name},");
            read_variable(&what, variable)?
        }
        None => return Err(UnusableSecret::at(KEYSTORE.to_owned(), "it has no password").into()),
    };
    let json = read_secret(KEYSTORE, file)?;
    GasAdminKey::from_keystore(&json, &password)
        .map_err(|error| UnusableSecret::in_file(KEYSTORE, file, error).into())
}

/// The first line of a password file, because editors add a line end.
fn first_line(mut text: String) -> String {
    if let Some(end) = text.find(['\r', '\n']) {
        text.truncate(end);
    }
    text
}

/// The address of an account whose key is elsewhere.
fn address(account: &str) -> Result<Address, EvmSetupError> {
    parse_address(account).map_err(|error| {
        let message = format!("the address of an account whose key is elsewhere: {error}");
        invalid(GasAdminSettings::key.name, message)
    })
}

/// The time limit of a signer on another machine.
fn time_limit(settings: &EvmSettings, http: &HttpOptions) -> Duration {
    settings.testing.signer_timeout.unwrap_or(http.connect_timeout)
}

fn remote(
    settings: &EvmSettings,
    http: &HttpOptions,
    account: Address,
    url: &str,
) -> Result<RemoteSigner, EvmSetupError> {
    if url.starts_with("http://") && !is_local(url) {
        warn!(account:%; "transactions are signed over unencrypted HTTP; use https:// for the signer");
    }
    let request_timeout = time_limit(settings, http);
    let connect_timeout = http.connect_timeout.min(request_timeout);
    // The signer is not a node, so the pool is empty.
    let nodes = NodePool::default();
    let options = HttpOptions { request_timeout, connect_timeout, nodes, ..http.clone() };
    Ok(RemoteSigner::new(url, account, &options)?)
}

impl EvmSettings {
    /// The names and addresses of the gas admins. It reads their keys. Remote signers get requests with these options.
    pub fn gas_admin_addresses(
        &self,
        http: &HttpOptions,
    ) -> Result<Vec<(String, String)>, EvmSetupError> {
        let signers = signers(self, http)?.into_iter();
        Ok(signers.map(|(name, signer)| (name.to_owned(), signer.address().to_string())).collect())
    }
}

/// Whether the URL refers to this machine.
fn is_local(url: &str) -> bool {
    let after_scheme = url.trim_start_matches("http://");
    let Ok(Authority { hosts, .. }) = Authority::parse(after_scheme) else { return false };
    let is_loopback = |host: &str| {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    };
    hosts.into_iter().all(is_loopback)
}

fn read_variable(what: &str, variable: &str) -> Result<String, UnusableSecret> {
    env::var(variable).map_err(|error| UnusableSecret::at(what.to_owned(), error))
}

#[cfg(test)]
mod tests {
    use grid_batch_settings::{SettingTable, SettingValue, SettingValues};

    use super::*;

    #[test]
    fn key_in_a_kms_needs_a_build_with_it() {
        let table = SettingTable::new(crate::SETTINGS.iter().copied().flatten());
        let settings = EvmSettings::new(&SettingValues::defaults(table)).unwrap();
        let account = Address::repeat_byte(1);
        let version = "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1";
        for (source, has_kms, feature) in [
            (format!("aws-kms:{account}@alias/a"), cfg!(feature = "aws-kms"), "evm-aws-kms"),
            (format!("gcp-kms:{account}@{version}"), cfg!(feature = "gcp-kms"), "evm-gcp-kms"),
        ] {
            let source = KeySource::parse(&source).unwrap();
            match signer(&settings, &HttpOptions::default(), "a", &source) {
                Ok(signer) => assert!(has_kms && signer.address() == account, "{signer:?}"),
                Err(error) => {
                    assert!(!has_kms && error.to_string().ends_with(feature), "{error}");
                }
            }
        }
    }

    #[test]
    fn only_hosts_of_this_machine_are_local() {
        for url in ["http://localhost:9000", "http://u:p@127.0.0.2", "http://[::1]:9000/path"] {
            assert!(is_local(url), "{url}");
        }
        for url in ["http://127.example.com", "http://localhost.example.com", "http://signer:9000"]
        {
            assert!(!is_local(url), "{url}");
        }
    }
}
