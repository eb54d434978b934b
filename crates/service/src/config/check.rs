//! Rules about several settings together.

use grid_batch_core::PeerService;
use grid_batch_settings::{ConfigError, Origin, Setting};
use grid_batch_support::redact_password;

use super::{ClaimsConfig, Config, LedgerConfig, RetentionConfig, ServicesConfig};

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.check_scheduling()?;
        self.check_listen()?;
        self.check_access()?;
        self.check_expiries()?;
        self.check_retention()?;
        self.check_services()?;
        self.check_peers()
    }

    /// With equal expiries, a batch is taken only while enough of the lease is left to send it.
    fn check_expiries(&self) -> Result<(), ConfigError> {
        let (idle, full) = (self.claims.idle_expiry, self.times().full_expiry);
        let longest = self.longest_submission();
        if full >= idle + longest || (full == idle && full > longest) {
            return Ok(());
        }
        let rule = format!(
            "claims.full_expiry is {full:?}; it must be at least claims.idle_expiry and ten times \
             ledger.request_timeout, together {:?}, or equal to claims.idle_expiry and more than ten times \
             ledger.request_timeout, {longest:?}: a service could be taken over while its batch is being \
             submitted",
            idle + longest,
        );
        let changed = match self.settings.given(&ClaimsConfig::full_expiry).origin {
            Origin::Default => ClaimsConfig::idle_expiry,
            _ => ClaimsConfig::full_expiry,
        };
        Err(self.settings.conflict(&changed, rule))
    }

    fn check_retention(&self) -> Result<(), ConfigError> {
        let limit = self.retention_limit();
        let Some(after) = self.retention.after.filter(|after| *after <= limit) else {
            return Ok(());
        };
        let rule = format!(
            "retention.after is {after:?}; it must be more than ledger.late_arrival_limit and \
             poll.give_up_after, {limit:?}, or what is known about a batch would be removed while the ledger \
             may still report it",
        );
        Err(self.settings.conflict(&RetentionConfig::after, rule))
    }

    fn check_services(&self) -> Result<(), ConfigError> {
        let (Some(kind), Some(facts)) = (&self.ledger.kind, self.facts()) else { return Ok(()) };
        let (urls, nodes) = (self.ledger.urls.len(), self.services.node.len());
        let (setting, rule) = match (facts.one_node_for_service, urls, nodes) {
            (false, _, 1..) => (
                ServicesConfig::node,
                format!(
                    "services.*.node is for a ledger whose services are at one node each; ledger.kind is {kind}, so \
                     list its nodes in ledger.urls"
                ),
            ),
            (true, 2.., _) => (
                LedgerConfig::urls,
                format!(
                    "ledger.urls has {urls} URLs; a {kind} service is at one node, so give at most one URL, for \
                     the services that have no services.*.node, and name the nodes of other services \
                     there; other nodes of the same circuit have ids of their own and belong in \
                     services.*.peers"
                ),
            ),
            _ => return Ok(()),
        };
        Err(self.conflict(&setting, rule))
    }

    /// The error for a setting, whose first entry is named if it has entries.
    fn conflict(&self, setting: &Setting, rule: String) -> ConfigError {
        match self.settings.entries(setting).next() {
            Some(given) => given.conflict(rule),
            None => self.settings.conflict(setting, rule),
        }
    }

    fn check_peers(&self) -> Result<(), ConfigError> {
        let peers = &self.services.peers;
        let rule = match self.facts() {
            Some(facts) if !facts.one_node_for_service && !peers.is_empty() => {
                "services.*.peers is for a ledger whose services are at one node each; list all nodes of another \
                 ledger in ledger.urls"
                    .to_owned()
            }
            _ => match peers
                .iter()
                .find(|peer| self.node_of(&peer.service) == Some(&peer.url))
            {
                Some(PeerService { service, url, .. }) => format!(
                    "services.*.peers names the node of {service} itself, {}; it must be another node \
                     of the circuit",
                    redact_password(url)
                ),
                None => return Ok(()),
            },
        };
        Err(self.conflict(&ServicesConfig::peers, rule))
    }
}
