//! How batches are submitted, followed and removed, and how their events are delivered.

use std::time::Duration;

use grid_batch_settings::Setting;

use super::HOUR;

pub(super) static SETTINGS: &[Setting] = &[
    Setting::number(
        "queue.round_size",
        "100",
        "Maximum number of batches that are taken in one round",
    )
    .when(
        "Raise it with many services and a fast database. Batches of a round are in memory at \
         once.",
    )
    .between(1, 10_000),
    Setting::text(
        "queue.poll_interval",
        "1s",
        "How often all claimed services are checked for batches to submit; wake-ups are usually \
         faster",
    )
    .when(
        "Lower it if notifications of other instances get lost, so that their batches wait for \
         the next check.",
    )
    .at_most(HOUR),
    Setting::text(
        "queue.delay",
        "250ms",
        "How long a batch is delayed after an attempt that the ledger certainly did not accept; \
         each further one in a row doubles the delay, up to queue.longest_delay",
    )
    .when(
        "Lower it if the ledger recovers fast; raise it to load a failing ledger less, or if the \
         ledger charges for requests.",
    ),
    Setting::text(
        "queue.longest_delay",
        "30s",
        "Longest delay of a batch that the ledger does not accept, except one that the ledger \
         asks for; also about how long services take to continue after an outage",
    )
    .when(
        "Lower it to notice sooner that a failing ledger accepts batches again, raise it to load \
         it less.",
    )
    .at_most(HOUR),
    Setting::number("submit.concurrency", "100", "Maximum number of batches under submission")
        .when(
            "Raise it if the ledger can take more requests at the same time; each is a file \
         descriptor.",
        )
        .between(1, 10_000),
    Setting::number(
        "submit.in_flight",
        "250",
        "Maximum number of batches that are under way: taken from the database and not ended. \
         The server allows fewer after the ledger said that it is busy, and more again while \
         batches are committed (sawtooth)",
    )
    .when(
        "Keep it below the number of batches that a node keeps in its queue, which is 300 on an \
         idle sawtooth node. With several instances the sum counts. Lower it if other clients \
         send to the same nodes.",
    )
    .between(1, 10_000),
    Setting::number(
        "submit.in_flight_per_service",
        "100",
        "Maximum number of batches of one service that are under way, with the strategies \
         parallel and pipeline",
    )
    .when(
        "Raise it if blocks have room for more; lower it if fewer batches are to need evidence \
         after a failure.",
    )
    .equal()
    .between(1, 1_000),
    Setting::number(
        "submit.node_concurrency",
        "50",
        "Maximum number of batches under submission at one node of ledger.services, and never \
         more than are left for other nodes, so that a slow node does not delay the services of \
         others",
    )
    .when("Lower it for nodes that answer slowly under load.")
    .between(1, 10_000),
    Setting::number(
        "submit.memory_limit",
        "67108864",
        "Maximum size, in bytes, of the batches that were taken from the database and whose \
         submissions have not ended; a larger batch is submitted when no other large one is. Up \
         to four times as much memory is needed for a moment",
    )
    .when(
        "Lower it on a small machine; raise it if large batches wait for each other and the \
         machine has the memory.",
    ),
    Setting::text("submit.sending_limit", "15s", "Timeout for sending a batch once")
        .when("Raise it with ledger.request_timeout, which it must exceed.")
        .equal()
        .at_most(HOUR),
    Setting::text(
        "submit.total_limit",
        "60s",
        "Timeout for a submission, from taking a batch from the database to the answer of the \
         last node that is tried; a batch that cannot be sent within it goes back to the queue",
    )
    .when(
        "Raise it with submit.sending_limit, which it must exceed. claims.full_expiry must \
         exceed claims.idle_expiry by twice this time.",
    )
    .equal(),
    Setting::text(
        "submit.drain_limit",
        "20s",
        "How long a shutdown waits for submissions under way",
    )
    .when(
        "Keep it below the time after which a supervisor kills the process, such as \
         TimeoutStopSec of systemd.",
    )
    .at_most(HOUR),
    Setting::number(
        "submit.not_sent_attempts",
        "3",
        "How many nodes are tried, one after the other, with a batch that does not reach them, \
         before it is delayed",
    )
    .when("Raise it to try more of the nodes of a Sawtooth ledger at once when some are down.")
    .between(1, 10_000),
    Setting::text(
        "submit.retry_after_limit",
        "5m",
        "Longest delay that a ledger can ask for with Retry-After; a longer one is cut to this, \
         and `grid-batch retry` ends it",
    )
    .when("Raise it only for a ledger whose Retry-After can be trusted for longer.")
    .at_most(Duration::from_secs(24 * 60 * 60)),
    Setting::number(
        "submit.refusals_before_hold",
        "40",
        "A batch that the ledger refuses this often, without another answer in between, is held \
         for an operator: a wrong key or service stays wrong. With the default delays that is \
         after about a quarter of an hour",
    )
    .when("Raise it if nodes refuse batches for reasons that end without an operator.")
    .equal()
    .between(1, 1_000_000),
    Setting::text(
        "poll.interval",
        "1s",
        "Longest time until an accepted batch is polled for the first time, and how often the \
         database is read for batches that another instance or an earlier run has left; raise it \
         to poll a slow ledger less",
    )
    .when("Raise it for a ledger that takes seconds or minutes for a batch.")
    .at_most(HOUR),
    Setting::text(
        "poll.longest_interval",
        "60s",
        "How often a batch is polled whose status has not changed for a long time",
    )
    .when("Lower it to notice sooner that a stuck batch was committed after all."),
    Setting::text(
        "poll.trigger_gap",
        "5ms",
        "Shortest time between two polls of a service that events trigger",
    )
    .when("Raise it if events of a busy service cause too many requests.")
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
    Setting::number("poll.connections", "16", "Maximum number of status requests in flight")
        .when("Raise it if nodes are far away; each is a file descriptor.")
        .between(1, 10_000),
    Setting::text(
        "poll.quiet_after",
        "60s",
        "Evidence is searched for if an accepted batch has no final status after this long; on \
         Sawtooth after 10s at the latest",
    )
    .when("Raise it if the ledger usually takes longer for a batch.")
    .equal(),
    Setting::text(
        "poll.accept_absence_after",
        "30s",
        "Evidence of absence is accepted after a batch has been in its state for this long",
    )
    .when(
        "Raise it if requests can be on their way for longer. A value that is too low may submit \
         a batch again that arrives later.",
    )
    .equal(),
    Setting::text(
        "poll.hold_after",
        "2m",
        "A batch is held for an operator if nothing can be proved about it after this long",
    )
    .when(
        "Raise it if evidence often takes longer, or if a proxy answers in place of the ledger \
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
        "poll.warn_after",
        "2m",
        "A warning is logged if nothing of a service has ended for this long although a batch is \
         under way; sooner, down to a quarter of it, if the ledger is usually fast; and if the \
         ledger has not accepted the batch of a service for this long",
    )
    .when("Raise it if the ledger usually takes longer."),
    Setting::number(
        "poll.max_attempts",
        "10",
        "Maximum number of attempts for a batch that the ledger loses, before it is held",
    )
    .when("Raise it if nodes are restarted often and lose what they accepted.")
    .equal()
    .between(1, 1_000_000),
    Setting::list(
        "poll.resubmit_inconclusive",
        "",
        "Services whose batches are submitted again instead of held; they may be applied twice",
    )
    .when("List only services whose transactions may be applied twice without harm.")
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
    Setting::text(
        "retention.interval",
        "1h",
        "How often ended batches are looked for, by one of the instances",
    )
    .when("Lower it if so many batches end that the database grows noticeably in between."),
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
    Setting::text(
        "webhooks.timeout",
        "15s",
        "Timeout for a request to a receiver of events, connecting included",
    )
    .when(
        "Another instance goes on with the webhooks of one that is killed after three times as \
         long.",
    )
    .equal()
    .at_most(HOUR),
    Setting::number(
        "webhooks.attempts",
        "10",
        "Number of failed attempts after which an event is put in the list of failed messages \
         and the next one follows",
    )
    .when(
        "Lower it if the next events matter more than one that a receiver refuses: with 10, they \
         wait for up to about four and a half hours.",
    )
    .equal()
    .between(1, 1_000),
    Setting::number(
        "metrics.services",
        "100",
        "How many services, those with most open batches, have a label of their own in /metrics; \
         the others are summed as \"other\"",
    )
    .when("Raise it to see more services; each is a time series of Prometheus for each instance."),
];
