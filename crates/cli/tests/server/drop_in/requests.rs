//! The requests of clients, as the clients send them. `{…}` stands for what they are about.

/// A request of a client.
#[derive(Debug)]
pub struct Recorded {
    pub client: &'static str,
    pub method: &'static str,
    pub path: &'static str,
    pub headers: &'static [&'static str],
    pub body: Body,
    /// How the answer differs on purpose; empty if it does not.
    pub differs: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub enum Body {
    None,
    /// A list with a batch that the ledger commits.
    Committed,
    /// A list with a batch that the ledger refuses.
    Invalid,
    Text(&'static str),
}

const fn get(client: &'static str, path: &'static str) -> Recorded {
    let (method, headers) = ("GET", PYTHON);
    Recorded { client, method, path, headers, body: Body::None, differs: "" }
}

const fn post(
    client: &'static str,
    path: &'static str,
    headers: &'static [&'static str],
    body: Body,
) -> Recorded {
    Recorded { client, method: "POST", path, headers, body, differs: "" }
}

const fn but(differs: &'static str, recorded: Recorded) -> Recorded {
    Recorded { differs, ..recorded }
}

/// What the library of Sawtooth's Python clients adds.
const PYTHON: &[&str] =
    &["user-agent: python-requests/2.18.4", "accept-encoding: gzip, deflate", "accept: */*"];
const OCTETS: &[&str] = &["content-type: application/octet-stream"];
const JSON: &[&str] = &["content-type: application/json"];

const NO_WEBSOCKET: &str = "the path serves websockets alone";
const ANY_CLIENT: &str = "any client";
const CLI: &str = "`sawtooth`";
const INTKEY: &str = "`intkey`";

pub const SAWTOOTH: &[Recorded] = &[
    post(
        "`sawtooth batch submit`, `intkey set`, `sawtooth-sdk`",
        "/batches",
        OCTETS,
        Body::Committed,
    ),
    get(
        "`sawtooth batch submit --wait`, `intkey --wait`",
        "/batch_statuses?id={committed}&wait=10",
    ),
    get("`sawtooth batch status`", "/batch_statuses?id={committed},{unknown}"),
    post("any client: the batch again", "/batches", OCTETS, Body::Committed),
    post("any client: a batch that the ledger refuses", "/batches", OCTETS, Body::Invalid),
    get("`sawtooth batch status --wait`", "/batch_statuses?id={invalid}&wait=10"),
    post(ANY_CLIENT, "/batch_statuses", JSON, Body::Text("[\"{committed}\",\"{unknown}\"]")),
    get("`sawtooth batch list`", "/batches"),
    get("`sawtooth batch list --limit`", "/batches?limit=1"),
    get("`sawtooth batch show`", "/batches/{committed}"),
    get(CLI, "/batches/{unknown}"),
    get("`sawtooth transaction list`", "/transactions"),
    get("`sawtooth transaction show`", "/transactions/{transaction}"),
    get(CLI, "/transactions/{unknown}"),
    get("`sawtooth block list`", "/blocks"),
    get("`sawtooth block show`", "/blocks/{unknown}"),
    get("`sawtooth state list`, `intkey list`", "/state?address=1cf126"),
    get("`sawtooth state show`, `intkey show`", "/state/{address}"),
    get(INTKEY, "/state/{no-address}"),
    get("`sawtooth peer list`", "/peers"),
    get("`sawtooth status show`", "/status"),
    post("any client: an empty body", "/batches", OCTETS, Body::None),
    post("any client: no list of batches", "/batches", OCTETS, Body::Text("garbage!!")),
    post("any client: another type", "/batches", JSON, Body::Text("x")),
    get(ANY_CLIENT, "/batch_statuses"),
    get(ANY_CLIENT, "/batch_statuses?id=zz"),
    post("any client: another type", "/batch_statuses", OCTETS, Body::Text("x")),
    post("any client: no ids", "/batch_statuses", JSON, Body::Text("[]")),
    but(
        "an error of the client, not of the server",
        post("any client: invalid JSON", "/batch_statuses", JSON, Body::Text("{")),
    ),
    but(NO_WEBSOCKET, get("any client: no websocket", "/subscriptions")),
    but("errors are always JSON", get(ANY_CLIENT, "/nowhere")),
];

const SPLINTER: &[&str] = &["authorization: Bearer Cylinder:{token}", "splinterprotocolversion: 1"];
const NEWER: &[&str] = &["authorization: Bearer Cylinder:{token}", "splinterprotocolversion: 2"];

const fn splinter(client: &'static str, path: &'static str) -> Recorded {
    Recorded { headers: SPLINTER, ..get(client, path) }
}

const CRATE: &str = "`scabbard` (crate and command line)";

pub const SCABBARD: &[Recorded] = &[
    post("`ScabbardClient::submit`", "/scabbard/{service}/batches", SPLINTER, Body::Committed),
    splinter("`submit` with a wait", "/scabbard/{service}/batch_statuses?ids={committed}&wait=10"),
    but(
        "without the empty `message`, at which clients of version 0.6 fail",
        splinter(ANY_CLIENT, "/scabbard/{service}/batch_statuses?ids={unknown}"),
    ),
    splinter("`get_state_at_address`", "/scabbard/{service}/state/{address}"),
    splinter("`get_state_at_address`", "/scabbard/{service}/state/{no-address}"),
    splinter("`get_state_with_prefix`", "/scabbard/{service}/state?prefix=1cf126"),
    splinter("`get_current_state_root`", "/scabbard/{service}/state_root"),
    post(
        "any client: no list of batches",
        "/scabbard/{service}/batches",
        SPLINTER,
        Body::Text("garbage!!"),
    ),
    splinter(CRATE, "/scabbard/{service}/batch_statuses"),
    but(
        "the versions of the library are not named",
        post("any client: another protocol", "/scabbard/{service}/batches", NEWER, Body::Committed),
    ),
    splinter(ANY_CLIENT, "/scabbard/test-00000/none/batch_statuses?ids={unknown}"),
    splinter(ANY_CLIENT, "/scabbard/test-00000/none/state_root"),
    splinter(ANY_CLIENT, "/scabbard/{service}/nowhere"),
    post("any client: no token", "/scabbard/{service}/batches", &[], Body::Committed),
    get("any client: no token", "/scabbard/{service}/state_root"),
    get("any client: no token", "/admin/circuits"),
    splinter("`splinter circuit list`", "/admin/circuits"),
    but(NO_WEBSOCKET, splinter("any client: no websocket", "/scabbard/{service}/ws/subscribe")),
    splinter("`splinter permissions`", "/authorization/permissions"),
];
