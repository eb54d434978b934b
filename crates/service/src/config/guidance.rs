//! When to change each setting, and which must be equal on all instances of a database.
//!
//! The help of a setting is one line for `--help`; this is for the file and the reference.

/// What the operator of a setting must know beside its help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guidance {
    /// The setting.
    pub name: &'static str,
    /// Whether all instances of a database must have the same value.
    pub equal: bool,
    /// Why and when to change it.
    pub when: &'static str,
}

impl Guidance {
    /// The guidance for the setting with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        GUIDANCE.iter().find(|guidance| guidance.name == name)
    }

    /// The guidance as sentences.
    pub fn text(&self) -> String {
        let rule = if self.equal { " It must be equal on all instances." } else { "" };
        format!("{}{rule}", self.when)
    }
}

const fn own(name: &'static str, when: &'static str) -> Guidance {
    Guidance { name, equal: false, when }
}

const fn equal(name: &'static str, when: &'static str) -> Guidance {
    Guidance { name, equal: true, when }
}

const SECRET_FILE: &str = "Use it where secrets are mounted as files, and instead of a flag, which every \
                           user of the machine can read in the list of processes. The last source that \
                           gives the setting or its file counts.";

static GUIDANCE: &[Guidance] = &[
    equal(
        "database",
        "Use PostgreSQL for several instances; an SQLite file serves one process. Escape @ / ? # and % in a \
         password, such as %40 for @.",
    ),
    own("database_file", SECRET_FILE),
    own(
        "listen",
        "Change the port if another program has it. Clients of other machines come through a proxy, or use TLS \
         and tokens.",
    ),
    own(
        "log",
        "Use warn to log only what needs attention, and debug for one crate, such as \
         \"info,grid_batch_poller=debug\", to find out why a batch waits.",
    ),
    equal("ledger.kind", "Set it before the first start: a database is bound to one ledger."),
    equal(
        "ledger.name",
        "Set it for scabbard, whose nodes tell nothing that identifies the ledger, and keep it: another name is \
         another ledger.",
    ),
    equal(
        "ledger.urls",
        "List all nodes of a sawtooth or evm ledger, so that the failure of one stops nothing. Give each \
         node its own URL, not that of a load balancer.",
    ),
    own("ledger.urls_file", SECRET_FILE),
    equal("ledger.services", "Use it when services are at different nodes."),
    own("ledger.services_file", SECRET_FILE),
    equal(
        "ledger.peers",
        "List all other nodes of each circuit, or none: the server concludes from the list whether a node \
         coordinates its circuit.",
    ),
    own("ledger.peers_file", SECRET_FILE),
    own("ledger.key_file", "Give the file mode 0600 and the server's user as its owner."),
    own(
        "ledger.connect_timeout",
        "Raise it if nodes are far away. A shorter one notices a node sooner that is down.",
    ),
    own(
        "ledger.request_timeout",
        "Raise it if nodes answer slowly under load. A batch whose request times out is in doubt until \
         evidence is found.",
    ),
    own(
        "ledger.events",
        "Turn it off only if a proxy does not let websockets through: without events a commit is noticed \
         later, and a Scabbard batch that the nodes have forgotten needs a decision.",
    ),
    own(
        "ledger.event_sockets",
        "Raise it to the number of services that have batches at the same time. Each socket is a file \
         descriptor here and a connection of the node.",
    ),
    own(
        "ledger.silence_timeout",
        "Raise it if a proxy delays the pings of event sockets; lower it to notice a dead connection \
         sooner.",
    ),
    own("ledger.reconnect_first", "Raise it if a node that restarts is overloaded by new sockets."),
    own("ledger.reconnect_longest", "Lower it if nodes are often down for a short time."),
    equal(
        "ledger.coordinator_timeout",
        "Set it to the coordinator timeout of the circuits, if they were created with one. A value that is too \
         low may submit a batch again that is still applied.",
    ),
    equal(
        "ledger.known_history",
        "Set it to \"*\" if all clients of the services submit through this server.",
    ),
    equal(
        "ledger.refuse_unknown_history",
        "Set it if clients can say that a batch is new, and no operator looks at held batches.",
    ),
    equal(
        "ledger.late_arrival_limit",
        "Set it above what every proxy between the server and the ledger keeps a request for. A value that \
         is too low may end a batch as invalid that is applied later, or have Scabbard apply it twice.",
    ),
    equal(
        "ledger.strategy",
        "Use serial if clients rely on the order of batches that do not conflict, or if a transaction processor \
         reads or writes something outside of the ledger's state.",
    ),
    equal(
        "ledger.strategies",
        "Use it for services whose batches need another strategy than the rest.",
    ),
    equal(
        "ledger.after_invalid",
        "Use halt if batches build on each other in ways that their transactions do not declare, so that a batch \
         must not be applied when the one before is invalid.",
    ),
    equal(
        "ledger.after_invalid_of",
        "Use it for services in which an invalid batch must stop others, or must not.",
    ),
    equal(
        "ledger.keeps_order",
        "Set it only for a sawtooth network with one publishing node to which all batches are sent. With \
         several, batches that were sent ahead may be applied in another order.",
    ),
    equal(
        "ledger.dependency_limit",
        "Raise it if the transactions that others depend on are sent much later, or directly to the ledger.",
    ),
    equal("evm.chain_id", "Set it to the chain's; 1 is Ethereum's main network."),
    equal(
        "evm.gas_admins",
        "Use one for each group of pools; a withdrawal that waits delays the later ones of its gas admin.",
    ),
    own("evm.keystore_passwords", "Give the files mode 0600 and the server's user as their owner."),
    own(
        "evm.signer_timeout",
        "Raise it if the signer's hardware is slow; withdrawals of its gas admin wait for it.",
    ),
    equal("evm.pools", "Add a pool before the first withdrawal from it is requested."),
    equal(
        "evm.maximum_gas_price",
        "Raise it if withdrawals must not wait when gas is expensive; lower it to wait for cheaper gas.",
    ),
    equal(
        "evm.pool_maximum_gas_price",
        "Use it for pools whose withdrawals are more or less urgent.",
    ),
    equal(
        "evm.maximum_payment",
        "Set it above the largest amount that is expected, so that a client that makes a mistake or is \
         abused can request no more. It applies to new withdrawals and retries.",
    ),
    equal(
        "evm.maximum_payments_per_day",
        "Set it above what is usually paid in a day. An amount counts for 24 hours, and up to ten minutes \
         longer.",
    ),
    equal(
        "evm.beneficiaries",
        "Use it for pools that pay only known accounts. A withdrawal that is scheduled and not signed yet \
         fails if its beneficiary is removed.",
    ),
    equal(
        "evm.beneficiaries_file",
        "Use it for long lists. An empty file is refused, because it would allow all.",
    ),
    own(
        "evm.low_balance",
        "Raise it if many withdrawals are made in the time that you need to send coins to a gas admin.",
    ),
    own(
        "evm.balance_interval",
        "Raise it if the provider of the node limits requests: each reading takes a request for each gas \
         admin and pool, and two for the price.",
    ),
    equal(
        "evm.maximum_tip",
        "Raise it if all transactions of the chain offer more; 50 is far above what is usual on Ethereum's \
         main network, and above the usual 30 of Polygon.",
    ),
    own("evm.oracle_url", "Use it if the nodes report no usable gas price."),
    own("evm.oracle_url_file", SECRET_FILE),
    own("evm.oracle_field", "Change it with the oracle: each has its own response."),
    own("evm.oracle_first", "Turn it on if the oracle is better than the node's estimate."),
    own(
        "evm.gate_interval",
        "Raise it if the provider of the node or of the oracle limits requests.",
    ),
    equal(
        "evm.confirmations",
        "Raise it on chains that reorganize more blocks; a withdrawal is reported as final later.",
    ),
    equal(
        "evm.in_flight",
        "Lower it if a withdrawal that the pool refuses must never cost gas, or if nodes keep few pending \
         transactions of an account (geth keeps 16); raise it if withdrawals wait although blocks have room.",
    ),
    equal("evm.resend_after", "Set it to a few times the chain's interval between blocks."),
    equal(
        "evm.longest_gap",
        "Raise it when a withdrawal is parked because of a longer gap and the chain has really lost these \
         transactions.",
    ),
    equal(
        "evm.agreeing_nodes",
        "Lower it to 1 if refused withdrawals must not wait while a node is down; raise it to the number of \
         nodes if none may fail before all nodes have refused it.",
    ),
    equal(
        "evm.head_age_limit",
        "Set it to about twenty times the interval between blocks, such as 5m, on a chain with regular \
         blocks. Leave it empty on a chain that adds blocks only for transactions.",
    ),
    own(
        "store.connections",
        "Raise it if the log says that no connection was free, and keep the sum over all instances below \
         max_connections of PostgreSQL.",
    ),
    own(
        "store.lock_timeout",
        "Lower it to refuse requests sooner while the database is locked or down; raise it if it is slow.",
    ),
    own(
        "store.start_timeout",
        "Set it, such as to 60s, where the server and the database are started at the same time and a \
         supervisor does not start the server again.",
    ),
    own(
        "claims.name",
        "Set it to a name of the machine, or of the position in a group of machines. Two running instances \
         cannot have one name.",
    ),
    equal(
        "claims.idle_expiry",
        "Set it above short outages of the database or the network. A shorter one takes over sooner from \
         an instance that failed.",
    ),
    equal(
        "claims.full_expiry",
        "Keep it longer than claims.idle_expiry by twice submit.total_limit. For a lease with one expiry, \
         set both to one time, longer than twice submit.total_limit: simpler, but services without a \
         batch under submission are taken over later.",
    ),
    equal("claims.share", "Turn it on to have all instances work; without it the others stand by."),
    equal(
        "intake.body_limit",
        "Raise it if clients have larger batches; each request in progress may need as much memory.",
    ),
    own(
        "queue.round_size",
        "Raise it with many services and a fast database. Batches of a round are in memory at once.",
    ),
    own(
        "queue.poll_interval",
        "Lower it if notifications of other instances get lost, so that their batches wait for the next check.",
    ),
    own(
        "queue.delay",
        "Lower it if the ledger recovers fast; raise it to load a failing ledger less, or if the ledger \
         charges for requests.",
    ),
    own(
        "queue.longest_delay",
        "Lower it to notice sooner that a failing ledger accepts batches again, raise it to load it less.",
    ),
    own(
        "submit.concurrency",
        "Raise it if the ledger can take more requests at the same time; each is a file descriptor.",
    ),
    own(
        "submit.in_flight",
        "Keep it below the number of batches that a node keeps in its queue, which is 300 on an idle sawtooth \
         node. With several instances the sum counts. Lower it if other clients send to the same nodes.",
    ),
    equal(
        "submit.in_flight_per_service",
        "Raise it if blocks have room for more; lower it if fewer batches are to need evidence after a failure.",
    ),
    equal("submit.sending_limit", "Raise it with ledger.request_timeout, which it must exceed."),
    equal(
        "submit.total_limit",
        "Raise it with submit.sending_limit, which it must exceed. claims.full_expiry must exceed \
         claims.idle_expiry by twice this time.",
    ),
    own(
        "submit.drain_limit",
        "Keep it below the time after which a supervisor kills the process, such as TimeoutStopSec of \
         systemd.",
    ),
    own(
        "submit.not_sent_attempts",
        "Raise it to try more of the nodes of a Sawtooth ledger at once when some are down.",
    ),
    own("submit.node_concurrency", "Lower it for nodes that answer slowly under load."),
    equal(
        "submit.refusals_before_hold",
        "Raise it if nodes refuse batches for reasons that end without an operator.",
    ),
    own(
        "submit.retry_after_limit",
        "Raise it only for a ledger whose Retry-After can be trusted for longer.",
    ),
    own(
        "submit.memory_limit",
        "Lower it on a small machine; raise it if large batches wait for each other and the machine has the \
         memory.",
    ),
    own("poll.interval", "Raise it for a ledger that takes seconds or minutes for a batch."),
    own(
        "poll.longest_interval",
        "Lower it to notice sooner that a stuck batch was committed after all.",
    ),
    own("poll.trigger_gap", "Raise it if events of a busy service cause too many requests."),
    own(
        "poll.requests_per_second",
        "Set it to what the nodes can answer besides the batches; divide it by the number of instances.",
    ),
    own("poll.connections", "Raise it if nodes are far away; each is a file descriptor."),
    equal("poll.quiet_after", "Raise it if the ledger usually takes longer for a batch."),
    equal(
        "poll.accept_absence_after",
        "Raise it if requests can be on their way for longer. A value that is too low may submit a batch \
         again that arrives later.",
    ),
    equal(
        "poll.hold_after",
        "Raise it if evidence often takes longer, or if a proxy answers in place of the ledger for longer: \
         fewer batches are then held.",
    ),
    equal("poll.give_up_after", "Raise it if batches may be pending for hours."),
    own("poll.warn_after", "Raise it if the ledger usually takes longer."),
    equal(
        "poll.max_attempts",
        "Raise it if nodes are restarted often and lose what they accepted.",
    ),
    equal(
        "poll.resubmit_inconclusive",
        "List only services whose transactions may be applied twice without harm.",
    ),
    own("log_format", "Use json if a program reads the log."),
    own("log_counts", "Raise it if the log has too many lines; lower it to see progress sooner."),
    own(
        "log_repeats",
        "Raise it to see each batch of a busy server; lower it if the log of an outage has too many lines.",
    ),
    own(
        "intake.connections",
        "Raise it if more clients send requests at once, and raise the limit of file descriptors with it.",
    ),
    own(
        "intake.requests_of_address",
        "Behind a proxy all clients have one address: raise it there to intake.connections, and limit \
         clients at the proxy.",
    ),
    own(
        "http.allowed_hosts",
        "If a proxy passes on the host that its clients use, list that name.",
    ),
    own(
        "http.allowed_origins",
        "If a proxy serves pages that use the server, list their origins, and no others.",
    ),
    equal(
        "http.pass_through",
        "Switch it off if the clients of this server may not read from the ledger.",
    ),
    own(
        "http.tls_certificate",
        "Set it to listen with TLS without a proxy in front. A changed file that cannot be used leaves the \
         certificate as it is, with a warning.",
    ),
    own("http.tls_key", "Only the user of the server should be able to read the file."),
    own("http.socket_mode", "Use 0660 if a proxy of the same group connects to the socket."),
    own(
        "http.trusted_proxies",
        "List the proxies in front, so that limits of addresses count their clients and links have their host. \
         No one else must be able to connect from these addresses.",
    ),
    own(
        "http.forwarded_headers",
        "Choose those that the proxy sets itself: clients can send the others through it.",
    ),
    equal(
        "access.mode",
        "Use tokens wherever other programs or other machines reach the server. Use none in front of scabbard only if \
         everyone who reaches the server may write with its key.",
    ),
    equal(
        "access.keys",
        "List the keys of Splinter's clients. Their tokens never expire: remove a key here to refuse it.",
    ),
    own("access.health", "Use everyone if a monitor on another machine has no token."),
    own("access.allow_anonymous", "Only in a network in which every client is trusted."),
    own("intake.rate_of_client", "Set it where one client must not use up what others need."),
    own(
        "intake.rate_of_service",
        "Set it to the number of batches of a service that the ledger applies in a second.",
    ),
    equal("intake.services", "List the services of the ledger, so that made-up ones are refused."),
    equal("intake.signers", "List the keys that may sign batches."),
    equal(
        "intake.open_batches",
        "Raise it if clients send more batches while the ledger is down than it allows.",
    ),
    equal(
        "intake.open_batches_of_client",
        "Set it where one client must not fill the queues of others.",
    ),
    equal(
        "intake.new_services_per_signer",
        "Raise it if one signer starts with more services at once.",
    ),
    equal("intake.new_services", "Raise it if more services are used for the first time at once."),
    equal("retention.after", "Keep batches for longer than any client repeats a request."),
    own(
        "retention.interval",
        "Lower it if so many batches end that the database grows noticeably in between.",
    ),
    equal(
        "events.enabled",
        "Turn it off if nothing reads the events and the database should write less.",
    ),
    equal(
        "webhooks.allow_private",
        "List the receivers in your own network. A client that creates webhooks can reach all of them.",
    ),
    equal(
        "webhooks.timeout",
        "Another instance goes on with the webhooks of one that is killed after three times as long.",
    ),
    equal(
        "webhooks.attempts",
        "Lower it if the next events matter more than one that a receiver refuses: with 10, they wait for \
         up to about four and a half hours.",
    ),
    own(
        "metrics.services",
        "Raise it to see more services; each is a time series of Prometheus for each instance.",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::SETTINGS;

    #[test]
    fn every_setting_has_guidance_and_nothing_else_has() {
        let settings: BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        let guided: BTreeSet<&str> = GUIDANCE.iter().map(|guidance| guidance.name).collect();
        let missing: Vec<_> = settings.difference(&guided).collect();
        let surplus: Vec<_> = guided.difference(&settings).collect();
        assert!(missing.is_empty(), "add rows to guidance.rs for {missing:?}");
        assert!(surplus.is_empty(), "there are no settings {surplus:?}");
        assert_eq!(guided.len(), GUIDANCE.len());
    }

    #[test]
    fn settings_of_the_protocol_between_instances_are_equal() {
        for name in
            ["claims.idle_expiry", "claims.full_expiry", "submit.total_limit", "ledger.urls"]
        {
            assert!(Guidance::named(name).unwrap().equal, "{name}");
        }
    }
}
