//! The HTTP interface: who may use it, and what is accepted.

use grid_batch_settings::Setting;

pub(super) static SETTINGS: &[Setting] = &[
    Setting::list(
        "http.allowed_hosts",
        "",
        "Host names in the URLs of clients, without a port, besides localhost, loopback \
         addresses and the address of listen; requests to other hosts are refused, because a web \
         page could have made its own name lead here",
    )
    .when("If a proxy passes on the host that its clients use, list that name."),
    Setting::list(
        "http.allowed_origins",
        "",
        "Origins of web pages that may use the server, each as https://HOST or \
         https://HOST:PORT; requests of pages of other sites are refused",
    )
    .when("If a proxy serves pages that use the server, list their origins, and no others."),
    Setting::switch(
        "http.pass_through",
        "true",
        "Have a node answer the requests of the ledger's own clients that do not concern batches \
         stored here, such as those for its state, so that clients need one URL",
    )
    .when("Switch it off if the clients of this server may not read from the ledger.")
    .equal(),
    Setting::text(
        "http.tls_certificate",
        "",
        "File with the certificate of the addresses with TLS, and those of the authorities \
         between it and the root, in PEM format. It is read again when it changes",
    )
    .when(
        "Set it to listen with TLS without a proxy in front. A changed file that cannot be used \
         leaves the certificate as it is, with a warning.",
    ),
    Setting::text("http.tls_key", "", "File with the key of http.tls_certificate, in PEM format")
        .when("Only the user of the server should be able to read the file."),
    Setting::text("http.socket_mode", "0600", "Permissions of Unix sockets, in octal digits")
        .when("Use 0660 if a proxy of the same group connects to the socket."),
    Setting::list(
        "http.trusted_proxies",
        "",
        "Proxies whose headers about their clients count, as IP addresses, networks such as \
         10.0.0.0/8, or unix for everyone who reaches a Unix socket. The headers of others are \
         ignored",
    )
    .when(
        "List the proxies in front, so that limits of addresses count their clients and links \
         have their host. No one else must be able to connect from these addresses.",
    ),
    Setting::text(
        "http.forwarded_headers",
        "x-forwarded",
        "The headers that trusted proxies set: x-forwarded for X-Forwarded-For, \
         X-Forwarded-Proto and X-Forwarded-Host, or forwarded for Forwarded. The others are \
         ignored",
    )
    .when("Choose those that the proxy sets itself: clients can send the others through it."),
    Setting::text(
        "access.mode",
        "",
        "What requests must have. none: nothing; everyone who reaches the server may do \
         everything. ledger_keys: those that submit batches or read from a Splinter node a \
         Cylinder token of a key that the node accepts, or of one in access.keys; others \
         nothing. tokens: a token of `grid-batch token create`, or a Cylinder token of a key in \
         access.keys. Empty: ledger_keys on scabbard, none on other ledgers",
    )
    .when(
        "Use tokens wherever other programs or other machines reach the server. Use none in \
         front of scabbard only if everyone who reaches the server may write with its key.",
    )
    .equal(),
    Setting::list(
        "access.keys",
        "",
        "What clients that send a Cylinder token may do, each as KEY=SCOPES@SERVICES with a \
         public key of 66 hex digits, scopes (submit, read, operate) separated by +, and a \
         pattern of services",
    )
    .when(
        "List the keys of Splinter's clients. Their tokens never expire: remove a key here to \
         refuse it.",
    )
    .equal(),
    Setting::text(
        "access.health",
        "local",
        "Who may read /health, /health/ready and /metrics without a token: token for no one, \
         local for clients on this machine that no proxy has passed on, or everyone. \
         /health/live is open to everyone",
    )
    .when("Use everyone if a monitor on another machine has no token."),
    Setting::switch(
        "access.allow_anonymous",
        "false",
        "Listen at addresses that other machines reach although access.mode is none",
    )
    .when("Only in a network in which every client is trusted."),
    Setting::text(
        "intake.rate_of_client",
        "",
        "Batches that a token, or an address without one, may submit in a second, and how many \
         at once, such as 100/500; more are refused with 429. Each instance counts for itself. \
         Empty: no limit",
    )
    .when("Set it where one client must not use up what others need."),
    Setting::text(
        "intake.rate_of_service",
        "",
        "The same for each service, from all clients together",
    )
    .when("Set it to the number of batches of a service that the ledger applies in a second."),
    Setting::number("intake.body_limit", "10485760", "Maximum size of a request body in bytes")
        .when(
            "Raise it if clients have larger batches; each request in progress may need as much \
         memory.",
        )
        .equal()
        .between(1_024, 1 << 30),
    Setting::list(
        "intake.services",
        "",
        "Services whose batches are accepted, as patterns in which * stands for any characters, \
         such as abcde-01234::gs*; empty for all. Batches that are stored already are submitted \
         all the same (sawtooth, scabbard)",
    )
    .when("List the services of the ledger, so that made-up ones are refused.")
    .equal(),
    Setting::list(
        "intake.signers",
        "",
        "Public keys of the signers whose batches are accepted, as 66 hex digits or as patterns \
         in which * stands for any digits; empty for all. The signer of the batch counts, not \
         those of its transactions (sawtooth, scabbard)",
    )
    .when("List the keys that may sign batches.")
    .equal(),
    Setting::number(
        "intake.open_batches",
        "100000",
        "Maximum number of open batches of a service, or of open withdrawals of a gas admin; \
         more are refused with 429 until some have ended. A hundredth is the number of services \
         that one signer, and a tenth that all signers, may have opened and in which no batch has \
         ended yet",
    )
    .when(
        "Raise it if clients send more batches while the ledger is down than it allows, or use \
         more services for the first time at once.",
    )
    .equal(),
    Setting::text(
        "intake.open_batches_of_client",
        "",
        "Maximum number of open batches that a token, or a key of access.keys, has submitted \
         while this was set; more are refused with 429 until some have ended. Empty: no limit",
    )
    .when("Set it where one client must not fill the queues of others.")
    .equal(),
];
