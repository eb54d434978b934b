use std::{env, net::IpAddr, path::Path, sync::Arc};

use grid_batch_http::HttpOptions;
use grid_batch_nodes::NodePool;
use grid_batch_support::{Authority, UnusableSecret, read_secret};
use log::warn;

use super::error::{EvmSetupError, invalid};
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
        KeySource::Remote { account, url } => Ok(Arc::new(remote(settings, http, account, url)?)),
    }
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

fn remote(
    settings: &EvmSettings,
    http: &HttpOptions,
    account: &str,
    url: &str,
) -> Result<RemoteSigner, EvmSetupError> {
    let account = parse_address(account).map_err(|error| {
        invalid(GasAdminSettings::key.name, format!("the address of a remote signer: {error}"))
    })?;
    if url.starts_with("http://") && !is_local(url) {
        warn!(account:%; "transactions are signed over unencrypted HTTP; use https:// for the signer");
    }
    let request_timeout = settings.testing.signer_timeout.unwrap_or(http.connect_timeout);
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
    use super::*;

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
