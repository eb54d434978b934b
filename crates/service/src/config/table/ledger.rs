//! The ledger, and how requests to its nodes are made.

use grid_batch_settings::Setting;

use super::HOUR;

/// The setting that names one of these kinds. It lives as long as the program.
pub(super) fn kind<'a>(names: impl Iterator<Item = &'a str>) -> &'static Setting {
    let names: Vec<&str> = names.collect();
    let names = match names.as_slice() {
        [] => "none is compiled in".to_owned(),
        [name] => (*name).to_owned(),
        [names @ .., last] => format!("{} or {last}", names.join(", ")),
    };
    let setting = Setting::text("ledger.kind", "", format!("Kind of ledger: {names}").leak())
        .when("Set it before the first start: a database is bound to one ledger.")
        .equal();
    Box::leak(Box::new(setting))
}

pub(super) static SETTINGS: &[Setting] = &[
    Setting::text(
        "ledger.name",
        "",
        "Name of the ledger; a database keeps that of its first server and refuses servers \
         with another, so that two ledgers are not confused. scabbard requires it",
    )
    .when(
        "Set it for scabbard, whose nodes tell nothing that identifies the ledger, and keep \
         it: another name is another ledger.",
    )
    .equal(),
    Setting::list(
        "ledger.urls",
        "",
        "URLs of the ledger's nodes, each of one node; for scabbard the node of all services \
         that are not in ledger.services",
    )
    .when(
        "List all nodes of a sawtooth or evm ledger, so that the failure of one stops \
         nothing. Give each node its own URL, not that of a load balancer.",
    )
    .equal()
    .with_secrets(),
    Setting::file(
        "ledger.urls_file",
        "File with the URLs of the nodes, one in a line, in place of ledger.urls: for URLs \
         with passwords",
    ),
    Setting::list(
        "ledger.services",
        "",
        "Services on nodes of their own, each as SERVICE=URL (scabbard)",
    )
    .when("Use it when services are at different nodes.")
    .equal()
    .with_secrets(),
    Setting::file(
        "ledger.services_file",
        "File with services on nodes of their own, one in a line, in place of \
         ledger.services: for URLs with passwords (scabbard)",
    ),
    Setting::list(
        "ledger.peers",
        "",
        "Other nodes of a service's circuit, each as SERVICE=ID@URL with the service's id at \
         that node; they are asked about batches but get none. With all of them, the failure \
         of a node rarely needs an operator; list all nodes of a circuit or none (scabbard)",
    )
    .when(
        "List all other nodes of each circuit, or none: the server concludes from the list \
         whether a node coordinates its circuit.",
    )
    .equal()
    .with_secrets(),
    Setting::file(
        "ledger.peers_file",
        "File with other nodes of circuits, one in a line, in place of ledger.peers: for URLs \
         with passwords (scabbard)",
    ),
    Setting::text("ledger.connect_timeout", "5s", "Timeout for connecting to a node")
        .when("Raise it if nodes are far away. A shorter one notices a node sooner that is down.")
        .at_most(HOUR),
    Setting::text(
        "ledger.request_timeout",
        "12s",
        "Timeout for a request to a node, connecting included",
    )
    .when(
        "Raise it if nodes answer slowly under load. A batch whose request times out is in \
         doubt until evidence is found.",
    )
    .at_most(HOUR),
    Setting::switch("ledger.events", "true", "Subscribe to the ledger's events").when(
        "Turn it off only if a proxy does not let websockets through: without events a commit \
         is noticed later, and a Scabbard batch that the nodes have forgotten needs a \
         decision.",
    ),
    Setting::number("ledger.event_sockets", "100", "Maximum number of open event sockets")
        .when(
            "Raise it to the number of services that have batches at the same time. Each socket \
         is a file descriptor here and a connection of the node.",
        )
        .between(1, 100_000),
    Setting::text(
        "ledger.silence_timeout",
        "45s",
        "An event socket that receives nothing for this long is broken and is opened again",
    )
    .when(
        "Raise it if a proxy delays the pings of event sockets; lower it to notice a dead \
         connection sooner.",
    ),
    Setting::text(
        "ledger.reconnect_first",
        "250ms",
        "Pause before a broken event socket is opened again for the first time",
    )
    .when("Raise it if a node that restarts is overloaded by new sockets."),
    Setting::text(
        "ledger.reconnect_longest",
        "30s",
        "Longest pause before a broken event socket is opened again",
    )
    .when("Lower it if nodes are often down for a short time.")
    .at_most(HOUR),
    Setting::text(
        "ledger.late_arrival_limit",
        "330s",
        "How long a request that was not answered may still arrive at the ledger. A Scabbard \
         batch is not sent again before that, nor when it was accepted and nothing explains \
         why it is not applied; a batch that was sent again is not invalid before that",
    )
    .when(
        "Set it above what every proxy between the server and the ledger keeps a request for. \
         A value that is too low may end a batch as invalid that is applied later, or have \
         Scabbard apply it twice.",
    )
    .equal(),
    Setting::text(
        "ledger.strategy",
        "",
        "Strategy of all services that are not in ledger.strategies. serial: one batch of a \
         service at a time. parallel: several, as long as no two conflict by what their \
         transactions declare to read and write. pipeline: several, in order, where the \
         ledger keeps it (ledger.keeps_order). Empty: parallel for sawtooth, serial for other \
         ledgers, which take no other",
    )
    .when(
        "Use serial if clients rely on the order of batches that do not conflict, or if a \
         transaction processor reads or writes something outside of the ledger's state.",
    )
    .equal(),
    Setting::list(
        "ledger.strategies",
        "",
        "Strategies of single services, each as SERVICE=STRATEGY",
    )
    .when("Use it for services whose batches need another strategy than the rest.")
    .equal(),
    Setting::text(
        "ledger.after_invalid",
        "continue",
        "What happens after an invalid batch of a service. continue: the batches behind it \
         are submitted. halt: those that follow it (serial, pipeline), or conflict with it or \
         depend on it (parallel), wait until an operator lets them go on or ends them \
         (sawtooth, scabbard)",
    )
    .when(
        "Use halt if batches build on each other in ways that their transactions do not \
         declare, so that a batch must not be applied when the one before is invalid.",
    )
    .equal(),
    Setting::list(
        "ledger.after_invalid_of",
        "",
        "What happens after an invalid batch, for single services, each as SERVICE=continue \
         or SERVICE=halt",
    )
    .when("Use it for services in which an invalid batch must stop others, or must not.")
    .equal(),
    Setting::text(
        "ledger.dependency_limit",
        "10m",
        "How long a batch waits for a transaction that it depends on and that no batch has, \
         before it is held (sawtooth)",
    )
    .when(
        "Raise it if the transactions that others depend on are sent much later, or directly \
         to the ledger.",
    )
    .equal(),
];
