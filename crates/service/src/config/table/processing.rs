//! How batches are submitted, followed and removed, and how their events are delivered.

use grid_batch_settings::Setting;

use super::HOUR;

pub(super) static SETTINGS: &[Setting] = &[
    Setting::number("submit.concurrency", "100", "Maximum number of batches under submission")
        .when(
            "Raise it if the ledger can take more requests at the same time; each is a file \
         descriptor. At most half are at one node of services.*.node, so that a slow node does \
         not delay the services of others.",
        )
        .between(1, 10_000),
    Setting::number(
        "submit.in_flight",
        "250",
        "Maximum number of batches that are under way: taken from the database and not ended. \
         The server allows fewer after the ledger said that it is busy, and more again while \
         batches are committed. At most two fifths are of one service (sawtooth)",
    )
    .when(
        "Keep it below the number of batches that a node keeps in its queue, which is 300 on an \
         idle sawtooth node. With several instances the sum counts. Lower it if other clients \
         send to the same nodes.",
    )
    .equal()
    .between(1, 10_000),
    Setting::text(
        "poll.interval",
        "1s",
        "Longest time until an accepted batch is polled for the first time, and how often the \
         database is read for batches that another instance or an earlier run has left; raise it \
         to poll a slow ledger less",
    )
    .when("Raise it for a ledger that takes seconds or minutes for a batch.")
    .at_most(HOUR),
    Setting::number(
        "poll.requests_per_second",
        "500",
        "Maximum number of status requests in a second, without those that events trigger and \
         those that find an ended batch; with more services under way, each is polled less \
         often. Raise it if the nodes can answer more, lower it if they are overloaded",
    )
    .when(
        "Set it to what the nodes can answer besides the batches; divide it by the number of \
         instances.",
    )
    .between(1, 1_000_000),
    Setting::text(
        "poll.hold_after",
        "2m",
        "A batch is held for an operator if nothing can be proved about it after this long. \
         Evidence is searched for when an accepted batch has had no final status for half of it, \
         on Sawtooth for 10s at the latest; a warning is logged when nothing of a service has \
         ended for all of it although a batch is under way",
    )
    .when(
        "Raise it if the ledger usually takes longer for a batch, if evidence takes longer, or if a proxy answers in place of the ledger \
         for longer: fewer batches are then held.",
    )
    .equal(),
    Setting::text(
        "poll.give_up_after",
        "1h",
        "A batch that the ledger has but has not applied is held this long after its submission",
    )
    .when("Raise it if batches may be pending for hours.")
    .equal(),
    Setting::text(
        "retention.after",
        "",
        "How long after its end a batch is removed, such as \"30d\"; empty: never. A removed \
         batch that a client sends again is a new one; on Scabbard it ends as committed. Without \
         it the database grows by about 2 kB for each small batch",
    )
    .when("Keep batches for longer than any client repeats a request.")
    .equal(),
    Setting::switch(
        "events.enabled",
        "true",
        "Write an event for each change of a batch, for /v1/events and the history of batches; \
         removed with the batch",
    )
    .when("Turn it off if nothing reads the events and the database should write less.")
    .equal(),
    Setting::list(
        "webhooks.allow_private",
        "",
        "Addresses and networks, such as 10.0.0.0/8, to which events may be sent although they \
         are private",
    )
    .when(
        "List the receivers in your own network. A client that creates webhooks can reach all of \
         them.",
    )
    .equal(),
];
