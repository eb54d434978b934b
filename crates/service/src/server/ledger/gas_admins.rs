//! Who signs for the gas admins of an EVM chain.

use std::{env, net::IpAddr, path::Path, sync::Arc};

use grid_batch_evm::{
    EvmSettings, GasAdminKey, GasAdminKeyError, KeySource, PasswordSource, RemoteSigner,
    TransactionSigner, parse_address,
};
use grid_batch_http::HttpOptions;
use grid_batch_nodes::NodePool;
use grid_batch_support::Authority;
use log::warn;

use super::key_file;
use crate::{Config, StartError};

const KEY_FILE: &str = "key file";
const KEYSTORE: &str = "keystore file";
const PASSWORD_FILE: &str = "password file";

/// The name of a gas admin, and who signs for it.
type NamedSigner<'a> = (&'a str, Arc<dyn TransactionSigner>);

/// The gas admins, and who signs for each.
pub(super) fn gas_admin_signers<'a>(
    config: &Config,
    settings: &'a EvmSettings,
) -> Result<Vec<NamedSigner<'a>>, StartError> {
    let admins = settings.gas_admins.iter();
    admins
        .map(|(name, source)| Ok((name.as_str(), signer(config, settings, name, source)?)))
        .collect()
}

fn signer(
    config: &Config,
    settings: &EvmSettings,
    name: &str,
    source: &KeySource,
) -> Result<Arc<dyn TransactionSigner>, StartError> {
    match source {
        KeySource::File(file) => {
            let key: Result<GasAdminKey, _> = key_file::read(KEY_FILE, file)?.parse();
            Ok(Arc::new(key.map_err(|error| key_file::unusable(KEY_FILE, file, error))?))
        }
        KeySource::Variable(variable) => {
            let what = format!("key in the variable {variable}, of the gas admin {name},");
            let key: Result<GasAdminKey, GasAdminKeyError> =
                read_variable(&what, variable)?.parse();
            Ok(Arc::new(key.map_err(|error| unusable(what, error.to_string()))?))
        }
        KeySource::Keystore(file) => Ok(Arc::new(keystore_key(settings, name, file)?)),
        KeySource::Remote { account, url } => Ok(Arc::new(remote(config, settings, account, url)?)),
    }
}

fn keystore_key(
    settings: &EvmSettings,
    name: &str,
    file: &Path,
) -> Result<GasAdminKey, StartError> {
    let password = settings.keystore_passwords.iter().find(|(of, _)| of == name);
    let password = match password.map(|(_, source)| source) {
        Some(PasswordSource::File(file)) => first_line(key_file::read(PASSWORD_FILE, file)?),
        Some(PasswordSource::Variable(variable)) => {
            let what = format!("password in the variable {variable}, of the gas admin {name},");
            read_variable(&what, variable)?
        }
        None => return Err(unusable(KEYSTORE.to_owned(), "it has no password".to_owned())),
    };
    let json = key_file::read(KEYSTORE, file)?;
    GasAdminKey::from_keystore(&json, &password)
        .map_err(|error| key_file::unusable(KEYSTORE, file, error))
}

/// The password: editors end the last line of a file.
fn first_line(mut text: String) -> String {
    if let Some(end) = text.find(['\r', '\n']) {
        text.truncate(end);
    }
    text
}

fn remote(
    config: &Config,
    settings: &EvmSettings,
    account: &str,
    url: &str,
) -> Result<RemoteSigner, StartError> {
    let account = parse_address(account).map_err(|error| StartError::Setting {
        name: "gas_admins.*.key",
        message: format!("the address of a remote signer: {error}"),
    })?;
    if url.starts_with("http://") && !is_local(url) {
        warn!(account:%; "transactions are signed over unencrypted HTTP; use https:// for the signer");
    }
    let http = &config.ledger.http;
    let request_timeout = settings.signer_timeout.unwrap_or(http.connect_timeout);
    let connect_timeout = http.connect_timeout.min(request_timeout);
    // The signer is no node.
    let nodes = NodePool::default();
    let options = HttpOptions { request_timeout, connect_timeout, nodes, ..http.clone() };
    Ok(RemoteSigner::new(url, account, &options)?)
}

/// The names of the gas admins of an EVM chain and their addresses, whose keys are read for this.
pub fn gas_admin_addresses(config: &Config) -> Result<Vec<(String, String)>, StartError> {
    let settings = config.evm_settings()?;
    let signers = gas_admin_signers(config, &settings)?.into_iter();
    Ok(signers.map(|(name, signer)| (name.to_owned(), signer.address().to_string())).collect())
}

/// Whether the URL is of this machine.
fn is_local(url: &str) -> bool {
    let after_scheme = url.trim_start_matches("http://");
    let Ok(Authority { hosts, .. }) = Authority::parse(after_scheme) else { return false };
    let is_loopback = |host: &str| {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    };
    hosts.into_iter().all(is_loopback)
}

fn read_variable(what: &str, variable: &str) -> Result<String, StartError> {
    env::var(variable).map_err(|error| unusable(what.to_owned(), error.to_string()))
}

fn unusable(location: String, message: String) -> StartError {
    StartError::Key { location, message }
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
