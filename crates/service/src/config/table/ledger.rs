//! The ledger, and how requests to its nodes are made.

use std::time::Duration;

use grid_batch_settings::Setting;

/// Five times as long is the longest time that a submission may take.
const LONGEST_REQUEST: Duration = Duration::from_secs(45 * 60);

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
         that have no services.*.node",
    )
    .when(
        "List all nodes of a sawtooth or evm ledger, so that the failure of one stops \
         nothing. Give each node its own URL, not that of a load balancer.",
    )
    .equal()
    .with_secrets(),
    Setting::text(
        "ledger.request_timeout",
        "12s",
        "Timeout for a request to a node, connecting included",
    )
    .when(
        "Raise it if nodes answer slowly under load, or are far away. A batch whose request times \
         out is in doubt until evidence is found. Other times follow from it: a connection may \
         take 5/12 of it, sending a batch once 5/4, a shutdown 5/3, until evidence of absence is \
         accepted 5/2, and a submission with all its attempts 5 times as long.",
    )
    .equal()
    .at_most(LONGEST_REQUEST),
    Setting::number(
        "ledger.event_sockets",
        "100",
        "Maximum number of open sockets for the ledger's events; 0: the ledger is only polled",
    )
    .when(
        "Raise it to the number of services that have batches at the same time. Each socket is a \
         file descriptor here and a connection of the node. Set it to 0 only if a proxy does not \
         let websockets through: without events a commit is noticed later, and a Scabbard batch \
         that the nodes have forgotten needs a decision.",
    )
    .between(0, 100_000),
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
];

/// The settings of services, by their ids.
pub(super) static OF_SERVICES: &[Setting] = &[
    Setting::secret(
        "services.*.node",
        "",
        "URL of the node of the service, if it is not that of ledger.urls (scabbard)",
    )
    .when("Use it when services are at different nodes.")
    .equal(),
    Setting::list(
        "services.*.peers",
        "",
        "Other nodes of the service's circuit, each as ID@URL with the service's id at that node; \
         they are asked about batches but get none. With all of them, the failure of a node \
         rarely needs an operator; list all nodes of a circuit or none (scabbard)",
    )
    .when(
        "List all other nodes of each circuit, or none: the server concludes from the list \
         whether a node coordinates its circuit.",
    )
    .equal()
    .with_secrets(),
    Setting::text(
        "services.*.strategy",
        "",
        "serial: one batch of the service at a time. parallel: several, as long as no two \
         conflict by what their transactions declare to read and write. pipeline: several, in \
         order, where the ledger keeps it (ledger.keeps_order). None: parallel for sawtooth, \
         serial for other ledgers, which take no other",
    )
    .when(
        "Use serial if clients rely on the order of batches that do not conflict, or if a \
         transaction processor reads or writes something outside of the ledger's state.",
    )
    .equal(),
    Setting::text(
        "services.*.after_invalid",
        "",
        "What happens after an invalid batch. continue, as without it: the batches behind it are \
         submitted. halt: those that follow it (serial, pipeline), or conflict with it or depend \
         on it (parallel), wait until an operator lets them go on or ends them (sawtooth, \
         scabbard)",
    )
    .when(
        "Use halt if batches build on each other in ways that their transactions do not declare, \
         so that a batch must not be applied when the one before is invalid.",
    )
    .equal(),
    Setting::switch(
        "services.*.resubmit_inconclusive",
        "false",
        "Batches are submitted again instead of held; they may be applied twice",
    )
    .when("Set it only for services whose transactions may be applied twice without harm.")
    .equal(),
];
