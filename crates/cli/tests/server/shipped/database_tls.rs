//! PostgreSQL over TLS: what is accepted, and what is refused at once with the reason.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use grid_batch_test_postgres::{ServerCertificate, TlsPostgres};
use grid_batch_test_support::{
    batches::signed_batches,
    process::{ProcessOutput, run},
};

use super::certificates::{Authority, Issued};
use crate::{GRID_BATCH, harness::BatchHarness};

/// The name in the certificate of the database.
pub const HOST: &str = "db.test";
const USER: &str = "grid-batch";

/// A database that knows the clients of an authority.
pub fn start_database(authority: &Authority, clients: &Authority) -> TlsPostgres {
    let Issued { certificate, key } = authority.issue(HOST);
    let client_authority = clients.certificate();
    TlsPostgres::start(ServerCertificate {
        certificate: &certificate,
        key: &key,
        client_authority: &client_authority,
    })
}

fn verify_full(authority: &Authority) -> String {
    format!("sslmode=verify-full&sslrootcert={}", authority.certificate().display())
}

fn show(shown: &Issued) -> String {
    format!("sslcert={}&sslkey={}", shown.certificate.display(), shown.key.display())
}

fn migrate(url: &str) -> ProcessOutput {
    run(GRID_BATCH.command(["migrate", "--database", url]))
}

#[track_caller]
fn assert_accepted(url: &str) {
    let output = migrate(url);
    assert_eq!(output.exit_code, Some(0), "{url}: {output:?}");
}

/// The exit code is that of a configuration, with which a service manager does not start the server again.
#[track_caller]
fn assert_refused(url: &str, reason: &str) {
    let output = migrate(url);
    let message = output.error_message();
    assert!(message.contains(reason), "{reason:?} is not in: {message}");
    assert_eq!(output.exit_code, Some(78), "{message}");
    assert!(!message.contains(":secret"), "{message}");
}

#[test]
fn certificate_of_the_database_is_verified() {
    let [own, other] = ["database", "other"].map(Authority::new);
    let database = start_database(&own, &other);
    assert_accepted(&database.url(HOST, "sslmode=require"));
    assert_accepted(&database.url(HOST, &verify_full(&own)));
    assert_accepted(&database.url(HOST, "sslmode=require&channel_binding=require"));
    assert_refused(&database.url(HOST, &verify_full(&other)), "certificate verify failed");
    assert_refused(&database.url("other.test", &verify_full(&own)), "does not match host name");
    let missing = "sslmode=verify-full&sslrootcert=/missing.pem";
    assert_refused(&database.url(HOST, missing), "root certificate file \"/missing.pem\"");
    assert_refused(&database.url(HOST, "sslmode=disable"), "no encryption");
}

#[test]
fn client_shows_its_certificate() {
    let [own, clients] = ["database", "clients"].map(Authority::new);
    let database = start_database(&own, &clients);
    database.add_certified_user(USER);
    let url = |shown: &str| database.url_of(USER, HOST, &format!("{}{shown}", verify_full(&own)));
    let shown = clients.issue(USER);
    let certified = url(&format!("&{}", show(&shown)));
    assert_accepted(&certified);
    assert_refused(&url(""), "requires a valid client certificate");
    let of_other_user = format!("&{}", show(&clients.issue("other")));
    assert_refused(&url(&of_other_user), "certificate authentication failed");
    fs::set_permissions(&shown.key, Permissions::from_mode(0o644)).unwrap();
    assert_refused(&certified, "private key file");
}

#[test]
fn server_works_over_tls_and_stops() {
    let [own, clients] = ["database", "clients"].map(Authority::new);
    let database = start_database(&own, &clients);
    database.add_certified_user(USER);
    let shown = show(&clients.issue(USER));
    let url = database.url_of(USER, HOST, &format!("{}&{shown}", verify_full(&own)));
    let harness = BatchHarness::scabbard(1).with_database(&url);
    let servers = [harness.serve(), harness.serve()];
    assert!(database.encrypted_connections() > 1);
    let batches = signed_batches(&harness.services, 20);
    servers[0].submit(&batches);
    let path = format!("/v1/batches/{}?wait=60", batches[19].batch_id);
    assert_eq!(servers[1].get(&path)["state"], "committed");
    for server in servers {
        server.stop();
    }
}
