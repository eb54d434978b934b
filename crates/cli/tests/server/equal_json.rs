//! Each command of operators has the same JSON over HTTP and on the database.

use grid_batch_test_support::batches::signed_batches;
use serde_json::Value;

use crate::harness::BatchHarness;

/// What changes between two reads of the same state: the times of leases, and the address in links.
fn settled(mut document: Value) -> Value {
    match &mut document {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.ends_with("lease_ends_at"));
            fields.values_mut().for_each(|value| *value = settled(value.take()));
        }
        Value::Array(entries) => {
            entries.iter_mut().for_each(|entry| *entry = settled(entry.take()));
        }
        Value::String(text) => {
            if let Some(at) = text.find("/v1/") {
                text.drain(..at);
            }
        }
        _ => {}
    }
    document
}

#[test]
fn commands_have_equal_json_over_http_and_on_the_database() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve();
    let url = format!("http://{}", server.address);
    let reason = ["--reason", "a test"];
    let paused = harness.run_command(&[&["pause", "--all"][..], &reason].concat());
    assert_eq!(paused.exit_code, Some(0), "{paused:?}");
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    let (id, other) = (batches[0].batch_id.to_string(), batches[1].batch_id.to_string());
    let held = harness.run_command(&[&["hold", &id][..], &reason].concat());
    assert_eq!(held.exit_code, Some(0), "{held:?}");
    let created = harness.run_command(&[
        "webhooks",
        "create",
        "https://example.com/",
        "--json",
        "--reason",
        "a test",
    ]);
    let webhook: Value = serde_json::from_str(&created.stdout).unwrap();
    let webhook = webhook["id"].as_str().unwrap().to_owned();
    let token = ["token", "create", "--name", "ci", "--scope", "read"];
    let created = harness.run_command(&[&token[..], &reason].concat());
    assert_eq!(created.exit_code, Some(0), "{created:?}");

    let reads: [&[&str]; 10] = [
        &["held"],
        &["show", &id],
        &["show", "g*", &id, &other],
        &["actions"],
        &["halts"],
        &["webhooks", "list"],
        &["webhooks", "failed", &webhook],
        &["token", "list"],
        &["ledger", "show"],
        &["retention", "--older-than", "1000d", "--dry-run"],
    ];
    let verbs: [&[&str]; 20] = [
        &["hold", &other],
        &["hold", &id, &other],
        &["release", &id],
        &["release", &other],
        &["decide", &id, "committed", "--attempt", "0"],
        &["decide", &id, "invalid", "--attempt", "0"],
        &["decide", &id, "invalid", "--attempt", "7"],
        &["resubmit", &id, "--attempt", "0"],
        &["cancel", &other],
        &["retry", &id],
        &["retry", "global"],
        &["retry", "--all"],
        &["continue", &id],
        &["end-following", &id],
        &["pause", "global"],
        &["resume", "--all"],
        &["release-claim", "global"],
        &["token", "revoke", "ci"],
        &["restored", "--even-if-running"],
        &["ledger", "adopt"],
    ];
    let dry_run = [&reason[..], &["--dry-run"]].concat();
    let reads = reads.iter().map(|arguments| arguments.to_vec());
    let verbs = verbs.iter().map(|arguments| [*arguments, &dry_run].concat());
    for arguments in reads.chain(verbs) {
        let run = |flags: &[&str]| {
            let output = harness.run_command(&[&arguments[..], &["--json"], flags].concat());
            let document: Result<Value, _> = serde_json::from_str(&output.stdout);
            let document = document.unwrap_or_else(|error| panic!("{error}: {output:?}"));
            (output.exit_code, settled(document))
        };
        assert_eq!(run(&["--url", &url]), run(&[]), "{arguments:?}");
    }
    server.stop();
}
