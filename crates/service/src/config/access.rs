use grid_batch_api::{AccessMode, AccessOptions, HealthAccess, KeyGrant};
use grid_batch_settings::{ConfigError, SettingValues, settings};

use super::{Config, GeneralConfig};

settings! {
    /// Who may use the HTTP interface.
    #[derive(Debug, Clone)]
    pub struct AccessConfig in "access." {
        /// What requests must have. none: nothing; everyone who reaches the server may do everything. ledger_keys:
        /// those that submit batches or read from a Splinter node a Cylinder token of a key that the node accepts, or
        /// of one in access.keys; others nothing. tokens: a token of `token create`, or a Cylinder token of
        /// a key in access.keys. Empty: ledger_keys on scabbard, none on other ledgers.
        ///
        /// Use tokens wherever other programs or other machines reach the server. Use none in front of scabbard only if
        /// everyone who reaches the server may write with its key.
        pub mode: Option<AccessMode> = text("").equal().common() => SettingValues::get_optional,
        /// What clients that send a Cylinder token may do, each as KEY=SCOPES@SERVICES with a public key of 66 hex
        /// digits, scopes (submit, read, operate) separated by +, and a pattern of services.
        ///
        /// List the keys of Splinter's clients. Their tokens never expire: remove a key here to refuse it.
        pub keys: Vec<KeyGrant> = list("").equal() => SettingValues::get_list,
        /// Who may read /health, /health/ready and /metrics without a token: token for no one, local for clients on
        /// this machine that no proxy has passed on, or everyone. /health/live is open to everyone.
        ///
        /// Use everyone if a monitor on another machine has no token.
        pub health: HealthAccess = text("local") => SettingValues::get_parsed,
        /// Listen at addresses that other machines reach although access.mode is none.
        ///
        /// Only in a network in which every client is trusted.
        pub allow_anonymous: bool = switch("false"),
    }
}

impl Config {
    /// What requests must have.
    pub fn access_mode(&self) -> AccessMode {
        let usual = if self.checks_keys() { AccessMode::LedgerKeys } else { AccessMode::Open };
        self.access.mode.unwrap_or(usual)
    }

    pub(crate) fn access_options(&self) -> AccessOptions {
        let AccessConfig { keys, health, .. } = self.access.clone();
        AccessOptions { mode: self.access_mode(), health, keys }
    }

    /// Whether the nodes of the ledger tell what the key of a client may do.
    pub(crate) fn checks_keys(&self) -> bool {
        self.facts().is_some_and(|facts| facts.checks_keys)
    }

    pub(super) fn check_access(&self) -> Result<(), ConfigError> {
        let conflict = |setting, rule| Err(self.settings.conflict(setting, rule));
        let mode = self.access_mode();
        if mode == AccessMode::LedgerKeys && !self.checks_keys() {
            let kind = self.ledger.kind.as_deref().unwrap_or("not set");
            let rule = format!(
                "access.mode is ledger_keys, which needs a ledger whose nodes tell what the key of a client may do; \
                 ledger.kind is {kind}, so set it to \"tokens\""
            );
            return conflict(&AccessConfig::mode, rule);
        }
        if mode == AccessMode::Open && !self.access.keys.is_empty() {
            let rule =
                "access.keys has no effect, because access.mode is none; set it to \"tokens\"";
            return conflict(&AccessConfig::keys, rule.to_owned());
        }
        let exposed = self.general.listen.iter().find(|it| it.is_reached_from_elsewhere());
        match exposed {
            Some(address) if mode != AccessMode::Tokens && !self.access.allow_anonymous => {
                let rule = format!(
                    "{address} is not a loopback address; set access.mode to \"tokens\" and create a token \
                     for each client with `grid-batch token create --name NAME --scope submit,read \
                     --reason TEXT`, or listen on 127.0.0.1 or at a Unix socket behind a proxy that authorizes clients. Only if everyone who reaches the server \
                     may do everything, set access.allow_anonymous to true"
                );
                conflict(&GeneralConfig::listen, rule)
            }
            _ => Ok(()),
        }
    }
}
