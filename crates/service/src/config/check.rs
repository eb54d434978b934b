//! Rules about several settings together.

use std::time::Duration;

use grid_batch_scabbard::PeerService;
use grid_batch_support::redact_password;

use super::{Config, ConfigError, LedgerConfig, Origin};

/// Pairs of settings of which the first must be less than the second.
const ASCENDING: [(&str, &str); 6] = [
    ("ledger.connect_timeout", "ledger.request_timeout"),
    ("ledger.request_timeout", "submit.sending_limit"),
    ("submit.sending_limit", "submit.total_limit"),
    ("submit.sending_limit", "poll.accept_absence_after"),
    ("ledger.coordinator_timeout", "ledger.late_arrival_limit"),
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
            self.check_ascending(shorter, longer, "less than", |short, long| short < long)?;
        }
        for (shorter, longer) in NOT_DESCENDING {
            self.check_ascending(shorter, longer, "at most", |short, long| short <= long)?;
        }
        if self.evm.has_remote_signers() {
            let (shorter, longer) = ("evm.signer_timeout", "submit.sending_limit");
            self.check_ascending(shorter, longer, "less than", |short, long| short < long)?;
        }
        self.check_expiries()?;
        self.check_retention()?;
        self.evm.check(&self.layers)?;
        self.check_services()?;
        self.check_peers()
    }

    fn check_ascending(
        &self,
        shorter: &str,
        longer: &str,
        relation: &str,
        holds: fn(Duration, Duration) -> bool,
    ) -> Result<(), ConfigError> {
        let short: Duration = self.layers.get(shorter)?;
        let long: Duration = self.layers.get(longer)?;
        if holds(short, long) {
            return Ok(());
        }
        let rule = format!("{shorter} is {short:?}; it must be {relation} {longer}, {long:?}");
        let changed = match self.layers.given(shorter).origin {
            Origin::Default => longer,
            _ => shorter,
        };
        Err(self.layers.conflict(changed, rule))
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
        let changed = match self.layers.given("claims.full_expiry").origin {
            Origin::Default => "claims.idle_expiry",
            _ => "claims.full_expiry",
        };
        Err(self.layers.conflict(changed, rule))
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
        Err(self.layers.conflict("retention.after", rule))
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
        Err(self.layers.conflict(setting, rule))
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
        Err(self.layers.conflict("ledger.peers", rule))
    }
}
