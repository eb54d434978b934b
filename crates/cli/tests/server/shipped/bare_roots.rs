//! Within a bare root, the server works with a node, a database and a webhook that have TLS.

use std::{fs, process::Command};

use grid_batch_test_support::{
    batches::signed_batches, process::run, webhook_receiver::WebhookReceiver,
};
use serde_json::json;

use super::{
    bare_root::BareRoot,
    certificates::Authority,
    database_tls::{HOST, start_database},
    tls_front::TlsFront,
    unit::Restrictions,
};
use crate::{
    harness::{BatchHarness, BatchServer},
    packages::root,
};

/// Files of authorities within the root.
const NODE_AUTHORITY: &str = "/etc/ssl/own/node.pem";
const DATABASE_AUTHORITY: &str = "/etc/ssl/own/database.pem";

/// Has a server in the root commit a batch, and tell a webhook. The node has a certificate of an authority that a setting
/// names, the database one of `sslrootcert`, the webhook one that the system trusts.
fn assert_works_over_tls(root: &BareRoot, serve: &[&str], enter: impl Fn(&[&str]) -> Command) {
    let [node, database, receiver] = ["node", "database", "receiver"].map(Authority::new);
    root.copy(&node.certificate(), NODE_AUTHORITY);
    root.copy(&database.certificate(), DATABASE_AUTHORITY);
    root.trust("receiver", &receiver.certificate());

    let harness = BatchHarness::sawtooth();
    let node = TlsFront::start(harness.ledger.address(), &node.issue("localhost"));
    let postgres = start_database(&database, &database);
    let messages = WebhookReceiver::start(&[]);
    let receiver = TlsFront::start(messages.address, &receiver.issue("localhost"));

    let verified = format!("sslmode=verify-full&sslrootcert={DATABASE_AUTHORITY}");
    let options = format!("nodes=authorities:{NODE_AUTHORITY},webhooks=private:127.0.0.1");
    let mut command = enter(serve);
    command
        .env("GRID_BATCH_LISTEN", "127.0.0.1:0")
        .env("GRID_BATCH_DATABASE", postgres.url(HOST, &verified))
        .env("GRID_BATCH_LEDGER_KIND", "sawtooth")
        .env("GRID_BATCH_LEDGER_URLS", format!("https://localhost:{}", node.address.port()))
        .env("GRID_BATCH_REQUESTS_OPTIONS", options);
    let server = BatchServer::start(command);
    assert!(postgres.encrypted_connections() > 0);

    let url = format!("https://localhost:{}/events", receiver.address.port());
    let created = server.post_json("/v1/webhooks", &json!({ "url": url, "reason": "a test" }));
    assert_eq!(created.status, 201, "{created:?}");
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    let path = format!("/v1/batches/{}?wait=60", batches[0].batch_id);
    assert_eq!(server.get(&path)["state"], "committed");
    assert!(messages.next().body.contains(&batches[0].batch_id.to_string()));
    server.stop();

    // libpq finds what the system trusts by the paths of OpenSSL.
    root.trust("database", &database.certificate());
    let url = postgres.url(HOST, "sslrootcert=system");
    let checked = run(enter(&["/usr/bin/grid-batch", "migrate", "--check", "--database", &url]));
    assert_eq!(checked.exit_code, Some(0), "{checked:?}");
}

const SERVE: &[&str] =
    &["/usr/bin/grid-batch", "serve", "--config", "/etc/grid-batch/grid-batch.toml"];

/// It works at all, and as the user of the unit with what can be put in force of the unit's restrictions.
#[test]
fn package_has_what_tls_needs() {
    let root = BareRoot::of_package();
    assert_works_over_tls(&root, SERVE, |command| root.enter("", command));

    let restrictions = Restrictions::of_unit(root.path());
    let restricted = |command: &[&str]| restrictions.enter(&root, command);
    let said = |command: &str| run(restricted(&["sh", "-c", command])).stdout;
    assert_eq!(said("id -un; id -Gn; umask"), "grid-batch\ngrid-batch\n0077\n");
    let status = said("cat /proc/self/status");
    for text in ["NoNewPrivs:\t1", "CapBnd:\t0000000000000000", "CapEff:\t0000000000000000"] {
        assert!(status.contains(text), "{text}: {status}");
    }
    let writable = "for folder in / /etc /usr /home /root /run /var /var/lib /var/lib/grid-batch /tmp /dev; do \
                    touch $folder/file 2>/dev/null && echo $folder; done; ls /home /proc/sys /proc/1 2>/dev/null";
    assert_eq!(said(writable), "/var/lib/grid-batch\n/tmp\n");
    assert_works_over_tls(&root, SERVE, restricted);
}

/// As `compose.yaml` runs it: with a file system that is read-only but for the volume, and without capabilities.
#[test]
fn image_has_what_tls_needs() {
    let root = BareRoot::of_image();
    let image = Image::read();
    let setup = format!(
        "mount --rbind /dev \"$root/dev\"; mount -t proc proc \"$root/proc\"; \
         mount --bind \"$root{0}\" \"$root{0}\"; mount -o remount,bind,ro \"$root\"",
        image.volume
    );
    let wrapper = format!(
        "setpriv --reuid={0} --regid={0} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
         env --chdir={1}",
        image.user, image.folder
    );
    let start: Vec<&str> = image.start.iter().map(String::as_str).collect();
    assert_works_over_tls(&root, &start, |command| root.enter_with(&setup, &wrapper, command));
}

/// How an engine starts the image.
struct Image {
    user: String,
    folder: String,
    volume: String,
    start: Vec<String>,
}

impl Image {
    fn read() -> Self {
        let text = fs::read_to_string(root().join("deploy/docker/Dockerfile")).unwrap();
        let (_, stage) = text.rsplit_once("\nFROM ").unwrap();
        let instruction = |name: &str| {
            let found = stage.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            found.unwrap_or_else(|| panic!("the last stage has no {name}")).to_owned()
        };
        let words = |name| serde_json::from_str::<Vec<String>>(&instruction(name)).unwrap();
        Self {
            user: instruction("USER"),
            folder: instruction("WORKDIR"),
            volume: instruction("VOLUME"),
            start: [words("ENTRYPOINT"), words("CMD")].concat(),
        }
    }
}
