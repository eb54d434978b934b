//! Who may do what, over real HTTP.

use std::{net::SocketAddr, ops::Range, sync::Arc, time::Duration};

use grid_batch_api::{
    AccessControl, AccessMode, AccessOptions, AccessToken, ApiBuilder, HealthAccess, RateLimits,
    RunningApi, TrustedProxies,
};
use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::mocks::{MockBatchQueryStore, MockIntakeStore};
use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::queries::{BatchDetails, ServiceOverview, WaitReason};
use grid_batch_core::queue::{Ahead, Scheduling};
use grid_batch_core::tokens::{AccessScope, NewToken, StoredToken, TokenStore};
use grid_batch_core::{ItemId, ServiceId, SystemClock, Timestamp};
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_store::{IntakeLimits, Store, StoreOptions};
use serde_json::{Value, json};

use crate::{
    client::{Client, Response},
    mock_stores::stored_batch,
    test_server::{TestServer, batch, batch_with_addresses, body, id, serve, service, test_hosts},
};

const SERVICE: &str = "a::b";
const OTHER: &str = "c::d";

struct Protected {
    server: TestServer,
    control: AccessControl,
}

impl Protected {
    fn new(options: AccessOptions) -> Self {
        Self::with_limits(options, IntakeLimits::default())
    }

    fn with_limits(options: AccessOptions, intake_limits: IntakeLimits) -> Self {
        let options = AccessOptions { mode: AccessMode::Tokens, ..options };
        let control = AccessControl::new(options, Arc::new(SystemClock));
        let access = control.clone();
        let options = StoreOptions {
            intake_limits,
            lock_timeout: Duration::from_secs(20),
            ..StoreOptions::default()
        };
        let server = TestServer::with_store_options(options, |builder, store| {
            let builder = builder.with_access(access).with_tokens(store.clone());
            builder.with_events(store.clone()).with_metrics(|_| ())
        });
        Self { server, control }
    }

    /// Creates a token and has the interface know it. Returns the header with it.
    fn token(&self, scopes: &[AccessScope], services: &[&str]) -> String {
        self.limited_token(scopes, services, &[])
    }

    fn limited_token(
        &self,
        scopes: &[AccessScope],
        services: &[&str],
        may_send: &[&str],
    ) -> String {
        let token = AccessToken::generate().unwrap();
        let may_send = may_send.iter().map(|rule| (*rule).to_owned()).collect();
        let new = NewToken { may_send, ..new_token(&token, scopes, services) };
        assert!(self.server.store.create_token(&new, &OperatorRequest::program()).unwrap());
        self.control.set_tokens(self.server.store.unrevoked_tokens().unwrap());
        format!("authorization: Bearer {}", token.secret())
    }

    fn submit(&self, service: &str, number: u64, header: &str) -> Response {
        let headers = ["content-type: application/octet-stream", header];
        let path = format!("/batches?service_id={service}");
        self.server.client().request("POST", &path, &headers, &body([batch(number)]))
    }

    fn create_token(&self, scopes: &[&str], dry_run: bool, headers: &[&str]) -> Response {
        let body =
            json!({ "name": "new", "scopes": scopes, "reason": "a test", "dry_run": dry_run });
        self.post("/v1/tokens", &body, headers)
    }

    fn post(&self, path: &str, body: &Value, headers: &[&str]) -> Response {
        let headers = [headers, &["content-type: application/json"]].concat();
        self.server.client().request("POST", path, &headers, body.to_string().as_bytes())
    }

    fn get(&self, path: &str, headers: &[&str]) -> Response {
        self.server.client().request("GET", path, headers, b"")
    }
}

fn new_token(token: &AccessToken, scopes: &[AccessScope], services: &[&str]) -> NewToken {
    NewToken {
        id: token.id(),
        name: token.id().to_string(),
        secret_hash: token.secret_hash(),
        scopes: scopes.iter().copied().collect(),
        services: services.iter().map(|text| (*text).to_owned()).collect(),
        may_send: Vec::new(),
        expires_at: None,
    }
}

fn code(response: &Response) -> (u16, u64) {
    let body: Value = serde_json::from_slice(&response.body).unwrap();
    let code = body["error"]["code"].as_u64().or(body["code"].as_u64());
    (response.status, code.unwrap_or(0))
}

#[test]
fn request_without_a_token_is_refused_in_each_dialect() {
    let protected = Protected::new(AccessOptions::default());
    for path in ["/batch_statuses?id=1", "/v1/gas-admins", "/unknown", "/dashboards"] {
        let response = protected.get(path, &[]);
        assert_eq!(code(&response), (401, 1090), "{path}");
        assert_eq!(response.header("www-authenticate"), Some("Bearer realm=\"grid-batch\""));
    }
    let response = protected.get("/scabbard/a/b/batch_statuses?ids=1", &[]);
    assert_eq!(response.status, 401);
    assert!(String::from_utf8_lossy(&response.body).contains(r#""code":"401""#));
    let response = protected.submit(SERVICE, 1, "x: y");
    assert_eq!(code(&response), (401, 1090));
    assert!(!protected.server.is_stored(&id(&batch(1))));
}

#[test]
fn wrong_tokens_are_refused_without_showing_them() {
    let protected = Protected::new(AccessOptions::default());
    protected.token(&AccessScope::ALL, &["*"]);
    let unknown = AccessToken::generate().unwrap().secret();
    let key = CylinderToken::new(&SigningKey::from_seed(1));
    let huge = "a".repeat(100_000);
    for token in [&unknown, "", "gb_", &huge, &format!("Cylinder:{}", key.as_str()), "Biome:x"] {
        let header = format!("authorization: Bearer {token}");
        let response = protected.get("/batch_statuses?id=1", &[&header]);
        assert_eq!(code(&response), (401, 1091), "{token:.40}");
        assert!(response.header("www-authenticate").unwrap().contains("invalid_token"));
        let text = String::from_utf8_lossy(&response.body);
        assert!(token.len() < 8 || !text.contains(token), "{text}");
    }
    let basic = protected.get("/batch_statuses?id=1", &["authorization: Basic dTpw"]);
    assert_eq!(code(&basic), (401, 1091));
}

#[test]
fn second_authorization_header_is_refused() {
    let protected = Protected::new(AccessOptions::default());
    let header = protected.token(&AccessScope::ALL, &["*"]);
    let path = format!("/batch_statuses?id={}", "0".repeat(128));
    assert_eq!(protected.get(&path, &[&header]).status, 200);
    let response = protected.get(&path, &[&header, "authorization: Bearer gb_0"]);
    assert_eq!(code(&response), (401, 1091));
}

#[test]
fn limited_token_creates_no_token() {
    let protected = Protected::new(AccessOptions::default());
    let limited = protected.limited_token(&AccessScope::ALL, &["*"], &["*", "5ether/day"]);
    let refused = protected.create_token(&["submit"], false, &[&limited]);
    assert_eq!(code(&refused), (403, 1093));
    assert_eq!(protected.server.store.unrevoked_tokens().unwrap().len(), 1);
}

#[test]
fn scope_decides_what_a_token_may_do() {
    let protected = Protected::new(AccessOptions::default());
    let submit = protected.token(&[AccessScope::Submit], &["*"]);
    let read = protected.token(&[AccessScope::Read], &["*"]);
    let operate = protected.token(&[AccessScope::Operate], &["*"]);
    let path = format!("/batch_statuses?id={}", id(&batch(1)));
    assert_eq!(protected.submit(SERVICE, 1, &submit).status, 202);
    assert_eq!(protected.get(&path, &[&read]).status, 200);
    for header in [&read, &operate] {
        let response = protected.submit(SERVICE, 2, header);
        assert_eq!(code(&response), (403, 1093));
        assert!(response.header("www-authenticate").unwrap().contains("scope=\"submit\""));
    }
    assert_eq!(code(&protected.get(&path, &[&submit])), (403, 1093));
    assert_eq!(code(&protected.get("/unknown", &[&read])), (404, 1001));
}

#[test]
fn token_of_a_service_sees_and_changes_no_other() {
    let protected = Protected::new(AccessOptions::default());
    let all = protected.token(&AccessScope::ALL, &["*"]);
    let one = protected.token(&AccessScope::ALL, &["a::*"]);
    assert_eq!(protected.submit(SERVICE, 1, &one).status, 202);
    assert_eq!(code(&protected.submit(OTHER, 2, &one)), (403, 1094));
    assert_eq!(protected.submit(OTHER, 2, &all).status, 202);

    let statuses = |header: &str, query: &str| {
        let ids = [id(&batch(1)), id(&batch(2))].map(|id| id.to_string()).join(",");
        protected.get(&format!("/batch_statuses?id={ids}{query}"), &[header])
    };
    let known = |response: &Response| {
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        let data = body["data"].as_array().unwrap();
        data.iter().map(|item| item["status"] != "UNKNOWN").collect::<Vec<_>>()
    };
    assert_eq!(known(&statuses(&all, "")), [true, true]);
    assert_eq!(known(&statuses(&one, "")), [true, false]);
    assert_eq!(known(&statuses(&one, "&service_id=a::b")), [true, false]);
    assert_eq!(code(&statuses(&one, "&service_id=c::d")), (403, 1094));
    assert_eq!(code(&protected.get("/v1/gas-admins", &[&one])), (403, 1094));
    assert_eq!(code(&protected.get("/v1/gas-admins", &[&all])), (404, 1020));
}

#[test]
fn same_batch_of_another_service_does_not_make_an_id_ambiguous() {
    let protected = Protected::new(AccessOptions::default());
    let all = protected.token(&AccessScope::ALL, &["*"]);
    let one = protected.token(&[AccessScope::Read], &[SERVICE]);
    for service in [SERVICE, OTHER] {
        assert_eq!(protected.submit(service, 1, &all).status, 202);
    }
    let path = format!("/batch_statuses?id={}", id(&batch(1)));
    assert_eq!(code(&protected.get(&path, &[&all])), (400, 1009));
    assert_eq!(protected.get(&path, &[&one]).status, 200);
}

#[test]
fn token_gives_only_scopes_that_its_creator_has() {
    let protected = Protected::new(AccessOptions::default());
    let operator = protected.token(&[AccessScope::Operate, AccessScope::Read], &["*"]);
    let refused = protected.create_token(&["read", "submit"], false, &[&operator]);
    assert_eq!(code(&refused), (403, 1093));
    let reader = protected.token(&[AccessScope::Read], &["*"]);
    assert_eq!(code(&protected.create_token(&["read"], false, &[&reader])), (403, 1093));
    assert_eq!(protected.server.store.unrevoked_tokens().unwrap().len(), 2);

    let would = protected.create_token(&["read"], true, &[&operator]);
    assert_eq!((would.status, would.json().get("token")), (200, None));
    let created = protected.create_token(&["read"], false, &[&operator]);
    assert_eq!(created.status, 201);
    let secret = created.json()["token"].as_str().unwrap().to_owned();
    protected.control.set_tokens(protected.server.store.unrevoked_tokens().unwrap());
    let header = format!("authorization: Bearer {secret}");
    assert_ne!(protected.get("/batch_statuses?id=1", &[&header]).status, 401);
    let again = protected.create_token(&["read"], false, &[&operator]);
    assert_eq!(code(&again), (409, 1087));

    let listed = protected.get("/v1/tokens", &[&operator]);
    assert_eq!(listed.json()["data"].as_array().unwrap().len(), 3);
    assert!(!String::from_utf8_lossy(&listed.body).contains(&secret));
    let reason = json!({ "reason": "a test" });
    assert_eq!(protected.post("/v1/tokens/new/revoke", &reason, &[&operator]).status, 200);
    let gone = protected.post("/v1/tokens/new/revoke", &reason, &[&operator]);
    assert_eq!(code(&gone), (404, 1086));
}

#[test]
fn server_without_authorization_creates_no_tokens() {
    let server = TestServer::with(|builder, store| builder.with_tokens(store.clone()));
    let body = json!({ "name": "new", "scopes": ["read"], "reason": "a test" }).to_string();
    let headers = ["content-type: application/json"];
    let refused = server.client().request("POST", "/v1/tokens", &headers, body.as_bytes());
    assert_eq!(code(&refused), (403, 1093));
    assert_eq!(server.store.unrevoked_tokens().unwrap(), []);
}

#[test]
fn revoked_token_is_refused_when_the_tokens_are_read_again() {
    let protected = Protected::new(AccessOptions::default());
    let header = protected.token(&[AccessScope::Submit], &["*"]);
    assert_eq!(protected.submit(SERVICE, 1, &header).status, 202);
    let token = protected.server.store.unrevoked_tokens().unwrap().remove(0).token;
    protected.server.store.revoke_token(&token.name, &OperatorRequest::program()).unwrap();
    // Another process has revoked it: this one reads the database again.
    let other = Store::open(&protected.server.url(), StoreOptions::default()).unwrap();
    protected.control.set_tokens(other.unrevoked_tokens().unwrap());
    assert_eq!(code(&protected.submit(SERVICE, 2, &header)), (401, 1091));
}

#[test]
fn cylinder_token_of_a_configured_key_is_accepted() {
    let key = SigningKey::from_seed(1);
    let grant = format!("{}=submit@a::*", key.public_key()).parse().unwrap();
    let protected = Protected::new(AccessOptions { keys: vec![grant], ..AccessOptions::default() });
    let header = format!("authorization: Bearer Cylinder:{}", CylinderToken::new(&key).as_str());
    for number in 0..2 {
        assert_eq!(protected.submit(SERVICE, number, &header).status, 202);
    }
    assert_eq!(code(&protected.submit(OTHER, 3, &header)), (403, 1094));
    assert_eq!(code(&protected.get("/batch_statuses?id=1", &[&header])), (403, 1093));
}

#[test]
fn many_wrong_tokens_of_an_address_are_limited() {
    let protected = Protected::new(AccessOptions::default());
    let header = protected.token(&[AccessScope::Submit], &["*"]);
    let wrong = format!("authorization: Bearer {}", AccessToken::generate().unwrap().secret());
    let refused = (0..200)
        .map(|_| protected.get("/batch_statuses?id=1", &[&wrong]))
        .find(|response| response.status != 401)
        .expect("some are refused");
    assert_eq!(code(&refused), (429, 1092));
    assert_eq!(refused.header("retry-after"), Some("1"));
    let cylinder = format!(
        "authorization: Bearer Cylinder:{}",
        CylinderToken::new(&SigningKey::from_seed(1)).as_str()
    );
    assert_eq!(protected.get("/batch_statuses?id=1", &[&cylinder]).status, 429);
    assert_eq!(protected.submit(SERVICE, 1, &header).status, 202);
}

#[test]
fn health_is_open_to_those_whom_the_operator_allows() {
    let forwarded = "x-forwarded-for: 192.0.2.7";
    for (health, plain, through_proxy) in [
        (HealthAccess::Token, 401, 401),
        (HealthAccess::Local, 200, 401),
        (HealthAccess::Everyone, 200, 200),
    ] {
        let protected = Protected::new(AccessOptions { health, ..AccessOptions::default() });
        assert_eq!(protected.get("/health", &[]).status, plain, "{health}");
        assert_eq!(protected.get("/health", &[forwarded]).status, through_proxy, "{health}");
        assert_eq!(protected.get("/health/live", &[forwarded]).status, 200);
        let header = protected.token(&[AccessScope::Read], &[SERVICE]);
        assert_eq!(protected.get("/health", &[&header, forwarded]).status, 200);
    }
}

#[test]
fn without_access_control_tokens_are_not_looked_at() {
    let server = TestServer::new();
    let header = "authorization: Bearer Cylinder:made.up.token";
    let path = format!("/batch_statuses?id={}", "0".repeat(128));
    assert_eq!(server.client().request("GET", &path, &[header], b"").status, 200);
}

#[test]
fn rate_of_a_client_is_limited() {
    let limits = RateLimits { client: "1/3".parse().ok(), ..RateLimits::default() };
    let server = TestServer::with(|builder, _| builder.with_rate_limits(limits));
    assert_eq!(server.post("/batches", &body([batch(1), batch(2)])).status, 202);
    assert_eq!(server.post("/batches", &body([batch(3), batch(4), batch(5)])).status, 202);
    let response = server.post("/batches", &body([batch(6)]));
    assert_eq!(code(&response), (429, 1095));
    let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=3).contains(&wait), "two are missing, and one to go on: {wait}");
    assert_eq!(server.get_status(&id(&batch(1))).status, 200, "reads are not limited");
}

#[test]
fn rate_of_a_service_is_limited() {
    let limits = RateLimits { service: "1/2".parse().ok(), ..RateLimits::default() };
    let server = TestServer::with(|builder, _| builder.with_rate_limits(limits));
    let post = |service: &str, batches: &[u64]| {
        let list = body(batches.iter().map(|number| batch(*number)));
        server.post(&format!("/batches?service_id={service}"), &list)
    };
    assert_eq!(post(SERVICE, &[1, 2, 3, 4, 5]).status, 202);
    let response = post(SERVICE, &[6]);
    assert_eq!(code(&response), (429, 1096));
    let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
    assert!((2..=4).contains(&wait), "three are missing, and one to go on: {wait}");
    assert_eq!(post(OTHER, &[1]).status, 202);
}

#[test]
fn addresses_that_a_signer_declares_are_limited() {
    let limits = RateLimits { declared_addresses: true, ..RateLimits::default() };
    let server = TestServer::with(|builder, _| builder.with_rate_limits(limits));
    let post = |signer: u64, numbers: Range<u64>| {
        let batches = numbers.map(|number| batch_with_addresses(signer, number, 256));
        server.post("/batches", &body(batches))
    };
    assert_eq!(post(1, 0..40).status, 202);
    let refused = post(1, 40..41);
    assert_eq!(code(&refused), (429, 1101));
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=4).contains(&wait), "7,000 at 2,000 a second: {wait}");
    assert_eq!(post(2, 0..1).status, 202, "another signer");
    assert_eq!(server.post("/batches", &body([batch(1)])).status, 202, "a usual batch");
}

#[test]
fn clients_of_a_trusted_proxy_have_rates_of_their_own() {
    let limits = RateLimits { client: "1/1".parse().ok(), ..RateLimits::default() };
    let post = |server: &TestServer, number, address: &str| {
        let header = format!("x-forwarded-for: {address}");
        let headers = ["content-type: application/octet-stream", &header];
        server.client().request("POST", "/batches", &headers, &body([batch(number)])).status
    };
    let untrusted = TestServer::with(|builder, _| builder.with_rate_limits(limits));
    let statuses: Vec<u16> =
        (0..5).map(|number| post(&untrusted, number, &format!("192.0.2.{number}"))).collect();
    assert!(statuses.contains(&429), "the header does not count: {statuses:?}");

    let networks = vec!["127.0.0.1".parse().unwrap()];
    let proxies = TrustedProxies { networks, ..TrustedProxies::default() };
    let trusted = TestServer::with(|builder, _| {
        builder.with_rate_limits(limits).with_trusted_proxies(proxies)
    });
    for number in 0..5 {
        assert_eq!(post(&trusted, number, &format!("192.0.2.{number}")), 202);
    }
}

#[test]
fn links_have_the_host_that_a_trusted_proxy_tells() {
    let networks = vec!["127.0.0.1".parse().unwrap()];
    let proxies = TrustedProxies { networks, ..TrustedProxies::default() };
    let server = TestServer::with(|builder, _| builder.with_trusted_proxies(proxies));
    let headers = [
        "content-type: application/octet-stream",
        "x-forwarded-for: 192.0.2.7",
        "x-forwarded-proto: https",
        "x-forwarded-host: h:8443",
    ];
    let response = server.client().request("POST", "/batches", &headers, &body([batch(1)]));
    assert!(
        String::from_utf8_lossy(&response.body).contains("\"https://h:8443/batch_statuses?id=")
    );
    let host = headers.map(|header| header.replace("h:8443", "evil.example"));
    let host = host.each_ref().map(String::as_str);
    let response = server.client().request("POST", "/batches", &host, &body([batch(1)]));
    assert_eq!(code(&response), (421, 1030));
}

#[test]
fn smuggled_request_is_not_answered() {
    let protected = Protected::new(AccessOptions::default());
    let header = protected.token(&AccessScope::ALL, &["*"]);
    let hidden = "GET /v1/gas-admins HTTP/1.1\r\nhost: h\r\n\r\n";
    for framing in [
        format!("content-length: 5\r\ncontent-length: {}\r\n", hidden.len()),
        format!("transfer-encoding : chunked\r\ncontent-length: {}\r\n", hidden.len()),
        format!("transfer-encoding: xchunked\r\ncontent-length: {}\r\n", hidden.len()),
    ] {
        let mut client = protected.server.client();
        client.send(format!(
            "POST /batches HTTP/1.1\r\nhost: h\r\n{header}\r\n{framing}\r\n{hidden}"
        ));
        let response = client.receive();
        assert_eq!(response.status, 400, "{framing}");
        assert!(client.is_closed(), "what follows is no request: {framing}");
    }
}

#[test]
fn similar_header_does_not_authenticate() {
    let protected = Protected::new(AccessOptions::default());
    let header = protected.token(&AccessScope::ALL, &["*"]);
    let token = header.strip_prefix("authorization: ").unwrap();
    let path = "/batch_statuses?id=1";
    for made_up in [format!("x_authorization: {token}"), format!("proxy-authorization: {token}")] {
        assert_eq!(protected.get(path, &[&made_up]).status, 401, "{made_up:.20}");
    }
    let mut client = protected.server.client();
    client
        .send(format!("GET {path} HTTP/1.1\r\nhost: h\r\nx: y\r\n authorization: {token}\r\n\r\n"));
    let status = client.try_receive().map(|response| response.status);
    assert!(matches!(status, None | Some(400 | 401)), "{status:?}");
}

#[test]
fn full_queue_tells_when_to_try_again() {
    let limits = IntakeLimits { open_batches: 1, ..IntakeLimits::default() };
    let protected = Protected::with_limits(AccessOptions::default(), limits);
    let header = protected.token(&AccessScope::ALL, &["*"]);
    assert_eq!(protected.submit(SERVICE, 1, &header).status, 202);
    for _ in 0..2 {
        expect_full(&protected.submit(SERVICE, 2, &header));
    }
}

#[test]
fn client_has_only_so_many_open_batches() {
    let limits = IntakeLimits { open_batches_of_client: 1, ..IntakeLimits::default() };
    let protected = Protected::with_limits(AccessOptions::default(), limits);
    let [header, other] = [(); 2].map(|()| protected.token(&AccessScope::ALL, &["*"]));
    assert_eq!(protected.submit(SERVICE, 1, &header).status, 202);
    for _ in 0..2 {
        expect_full(&protected.submit(OTHER, 2, &header));
    }
    assert_eq!(protected.submit(OTHER, 3, &other).status, 202);
}

#[track_caller]
fn expect_full(response: &Response) {
    assert_eq!(code(response), (429, 1018));
    let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
}

#[test]
fn metrics_need_a_token_for_all_services() {
    let options = AccessOptions { health: HealthAccess::Token, ..AccessOptions::default() };
    let protected = Protected::new(options);
    let limited = protected.token(&AccessScope::ALL, &[SERVICE]);
    assert_eq!(code(&protected.get("/metrics", &[&limited])), (403, 1094));
    assert_eq!(protected.get("/health", &[&limited]).status, 200);
    let of_all = protected.token(&AccessScope::ALL, &["*"]);
    assert_eq!(protected.get("/metrics", &[&of_all]).status, 200);
}

#[test]
fn stream_ends_when_its_token_is_revoked() {
    let protected = Protected::new(AccessOptions::default());
    let header = protected.token(&AccessScope::ALL, &["*"]);
    let mut client = protected.server.client();
    client.send(format!(
        "GET /v1/events/stream HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{header}\r\n\r\n"
    ));
    assert!(client.next_message().is_some());
    protected.control.set_tokens(Vec::new());
    assert_eq!(client.next_message(), None);
}

/// A batch waits for one of a service that the token is not for.
#[test]
fn batch_of_others_that_is_waited_for_is_not_shown() {
    let control = AccessControl::new(
        AccessOptions { mode: AccessMode::Tokens, ..AccessOptions::default() },
        Arc::new(SystemClock),
    );
    let (_api, address) = serve_waiting_batch(&control);
    let waiting = id(&batch(1));
    for (services, is_shown) in [(["*"], true), ([SERVICE], false)] {
        let token = AccessToken::generate().unwrap();
        control.set_tokens(vec![StoredToken {
            token: new_token(&token, &AccessScope::ALL, &services),
            created_at: Timestamp::from_micros(0),
            last_used_at: None,
            revoked_at: None,
        }]);
        let header = format!("authorization: Bearer {}", token.secret());
        for path in [
            format!("/v1/batches/{waiting}"),
            format!("/v1/batches/{waiting}/explain"),
            format!("/batch_statuses?id={waiting}"),
        ] {
            let response = Client::connect(address).request("GET", &path, &[&header], b"");
            let text = String::from_utf8_lossy(&response.body);
            assert_eq!(response.status, 200, "{text}");
            for part in [&id(&batch(2)).to_string()[..12], OTHER, "refused by its node"] {
                assert_eq!(text.contains(part), is_shown, "{part} in {path}: {text}");
            }
        }
    }
}

/// An interface to a batch of one service that waits for a batch of another one.
fn serve_waiting_batch(control: &AccessControl) -> (RunningApi, SocketAddr) {
    let of = |name: &str, id| StoredBatch {
        service_id: service(name),
        ..stored_batch(id, BatchState::New)
    };
    let error = Some("refused by its node".to_owned());
    let ahead = Ahead {
        reason: WaitReason::Dependency { transaction_id: ItemId::from_bytes([7; 64]) },
        head: Some(StoredBatch { last_error: error, ..of(OTHER, id(&batch(2))) }),
        head_waits: true,
        count: 1,
        more: false,
    };
    let details = BatchDetails {
        batch: of(SERVICE, id(&batch(1))),
        label: None,
        of_withdrawal: false,
        deadline: None,
        ahead: Some(ahead.clone()),
        transaction_ids: Vec::new(),
        failed_attempts: Vec::new(),
        receipts: Vec::new(),
        commit_after_invalid: None,
    };
    let mut store = MockBatchQueryStore::new();
    store.expect_find().returning(move |id| Ok(vec![of(SERVICE, *id)]));
    store.expect_ahead().returning(move |_, _| Ok(vec![Some(ahead.clone())]));
    store.expect_details().returning(move |_, _| Ok(Some(details.clone())));
    store.expect_service().returning(|service_id| Ok(Some(idle_service(service_id.clone()))));
    let builder = ApiBuilder::new(Arc::new(MockIntakeStore::new()), Arc::new(store))
        .with_reads()
        .with_access(control.clone())
        .with_allowed_hosts(test_hosts());
    serve(builder)
}

fn idle_service(service_id: ServiceId) -> ServiceOverview {
    ServiceOverview {
        service_id,
        open: 0,
        under_way: 0,
        in_doubt: 0,
        oldest_at: None,
        held: 0,
        stopped_by_holds: false,
        failing: None,
        parked: None,
        halts: 0,
        halted_since: None,
        scheduling: Scheduling::SERIAL,
        owner: None,
    }
}
