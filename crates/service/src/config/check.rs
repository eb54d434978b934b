//! Rules about several settings together.

use std::time::Duration;

use grid_batch_core::PeerService;
use grid_batch_settings::{ConfigError, Origin};
use grid_batch_support::redact_password;

use super::{Config, LedgerConfig};

/// Pairs of settings of which the first must be less than the second.
const ASCENDING: [(&str, &str); 5] = [
    ("ledger.connect_timeout", "ledger.request_timeout"),
    ("ledger.request_timeout", "submit.sending_limit"),
    ("submit.sending_limit", "submit.total_limit"),
    ("submit.sending_limit", "poll.accept_absence_after"),
    ("poll.interval", "poll.longest_interval"),
];

/// Pairs of settings of which the first must not be more than the second.
const NOT_DESCENDING: [(&str, &str); 2] = [
    ("ledger.reconnect_first", "ledger.reconnect_longest"),
    ("queue.delay", "queue.longest_delay"),
];

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (shorter, longer) in ASCENDING {
            self.settings.check_shorter(shorter, longer)?;
        }
        for (shorter, longer) in NOT_DESCENDING {
            self.settings.check_not_longer(shorter, longer)?;
        }
        self.check_expiries()?;
        self.check_retention()?;
        self.check_services()?;
        self.check_peers()
    }

    /// With equal expiries, a batch is taken only while enough of the lease is left to send it.
    fn check_expiries(&self) -> Result<(), ConfigError> {
        let (idle, full) = (self.claims.idle_expiry, self.claims.full_expiry);
        let longest = self.longest_submission();
        if full >= idle + longest || (full == idle && full > longest) {
            return Ok(());
        }
        let rule = format!(
            "claims.full_expiry is {full:?}; it must be at least claims.idle_expiry and twice \
             submit.total_limit, together {:?}, or equal to claims.idle_expiry and more than twice \
             submit.total_limit, {longest:?}: a service could be taken over while its batch is being \
             submitted",
            idle + longest,
        );
        let changed = match self.settings.given("claims.full_expiry").origin {
            Origin::Default => "claims.idle_expiry",
            _ => "claims.full_expiry",
        };
        Err(self.settings.conflict(changed, rule))
    }

    /// Ended batches must be kept for longer than this: until then the ledger may still report them.
    pub fn retention_limit(&self) -> Duration {
        self.ledger.late_arrival_limit.max(self.poll.give_up_after)
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
        Err(self.settings.conflict("retention.after", rule))
    }

    fn check_services(&self) -> Result<(), ConfigError> {
        let LedgerConfig { kind: Some(kind), facts: Some(facts), urls, services, .. } =
            &self.ledger
        else {
            return Ok(());
        };
        let (setting, rule) = match (facts.one_node_for_service, urls.len(), services.len()) {
            (false, _, 1..) => (
                "ledger.services",
                format!(
                    "ledger.services is for a ledger whose services are at one node each; ledger.kind is {kind}, so \
                     list its nodes in ledger.urls"
                ),
            ),
            (true, 2.., _) => (
                "ledger.urls",
                format!(
                    "ledger.urls has {} URLs; a {kind} service is at one node, so give at most one URL, for \
                     the services that are not in ledger.services, and list the services of other nodes \
                     there; other nodes of the same circuit have ids of their own and belong in ledger.peers",
                    urls.len()
                ),
            ),
            _ => return Ok(()),
        };
        Err(self.settings.conflict(setting, rule))
    }

    fn check_peers(&self) -> Result<(), ConfigError> {
        let peers = &self.ledger.peers;
        let rule = match self.ledger.facts {
            Some(facts) if !facts.one_node_for_service && !peers.is_empty() => {
                "ledger.peers is for a ledger whose services are at one node each; list all nodes of another \
                 ledger in ledger.urls"
                    .to_owned()
            }
            _ => match peers
                .iter()
                .find(|peer| self.ledger.node_of(&peer.service) == Some(&peer.url))
            {
                Some(PeerService { service, url, .. }) => format!(
                    "ledger.peers names the node of {service} itself, {}; it must be another node \
                     of the circuit",
                    redact_password(url)
                ),
                None => return Ok(()),
            },
        };
        Err(self.settings.conflict("ledger.peers", rule))
    }
}
