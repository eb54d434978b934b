//! Commands of operators that a running server carries out.

use std::fs;

use grid_batch_test_support::{batches::signed_batches, process::ProcessOutput, wait::wait_until};
use serde_json::Value;

use crate::harness::{BatchHarness, BatchServer};

/// A server whose services are paused, with a batch that waits.
struct Paused {
    harness: BatchHarness,
    server: BatchServer,
    batch_id: String,
}

impl Paused {
    fn new() -> Self {
        let harness = BatchHarness::sawtooth();
        let server = harness.serve();
        let pause = ["pause", "--all", "--reason", "maintenance"];
        let paused = run(&harness, &server, &pause);
        assert_eq!(paused.stdout, "all services: running -> paused\n", "{paused:?}");
        let batches = signed_batches(&harness.services, 1);
        server.submit(&batches);
        let batch_id = batches[0].batch_id.to_string();
        Self { harness, server, batch_id }
    }

    fn run(&self, arguments: &[&str]) -> ProcessOutput {
        run(&self.harness, &self.server, arguments)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// The characters of the id that lists print.
    fn short_id(&self) -> &str {
        &self.batch_id[..12]
    }
}

fn run(harness: &BatchHarness, server: &BatchServer, arguments: &[&str]) -> ProcessOutput {
    let url = format!("http://{}", server.address);
    harness.run_command(&[arguments, &["--url", &url]].concat())
}

#[test]
fn batch_is_held_shown_and_released_by_its_first_characters() {
    let paused = Paused::new();
    let id = paused.short_id();
    let dry = paused.run(&["hold", id, "--reason", "look first", "--dry-run"]);
    assert!(dry.stdout.contains("nothing changed") && dry.exit_code == Some(0), "{dry:?}");
    assert_eq!(paused.run(&["held"]).stdout, "nothing is held\n");

    let held = paused.run(&["hold", id, "--reason", "look first"]);
    assert!(held.stdout.contains("new -> new, held"), "{held:?}");
    assert_eq!(paused.run(&["held", "--service", "x*"]).stdout, "nothing that is held matches\n");
    let listed = paused.run(&["held", "--service", "glob*"]);
    assert!(listed.stdout.contains("look first") && listed.stdout.contains(id), "{listed:?}");
    assert_eq!(paused.json(&["held", "--older-than", "1h"])["batches"], Value::Array(Vec::new()));
    let shown = paused.run(&["show", "global", id]);
    for text in [&paused.batch_id[..64], "look first", "hold by local", "possible", "accepted"] {
        assert!(shown.stdout.contains(text), "{text}: {shown:?}");
    }
    assert!(shown.stdout.lines().all(|line| line.chars().count() <= 80), "{shown:?}");

    let released = paused.json(&["release", id, "--reason", "looked at it"]);
    assert_eq!(released["results"][0]["changed"], true, "{released}");
    assert_eq!(released["results"][0]["batch_id"], paused.batch_id, "{released}");
    let log = paused.json(&["actions", "--batch", &paused.batch_id]);
    let verbs: Vec<_> = log["actions"].as_array().unwrap().iter().map(|it| &it["verb"]).collect();
    assert_eq!(verbs, ["release", "hold"]);

    for arguments in [&["pause", "global"][..], &["resume", "global"], &["resume", "--all"]] {
        let done = paused.run(&[arguments, &["--reason", "done"]].concat());
        assert!(done.exit_code == Some(0) && done.stdout.contains(" -> "), "{done:?}");
    }
    wait_until("the batch is committed", || {
        paused.run(&["status", id]).stdout.contains("committed")
    });
}

#[test]
fn batch_is_cancelled_and_decided() {
    let paused = Paused::new();
    let id = paused.short_id();
    let missing = paused.run(&["cancel", id]);
    assert_eq!(missing.exit_code, Some(2), "{missing:?}");
    assert!(missing.stderr.contains("--reason"), "{missing:?}");
    let resubmit = ["resubmit", id, "--reason", "lost"];
    assert_eq!(paused.run(&resubmit).exit_code, Some(2), "the attempt is missing");
    let refused = paused.run(&[&resubmit[..], &["--attempt", "7"]].concat());
    assert!(refused.exit_code == Some(1) && refused.stderr.contains("1070"), "{refused:?}");
    let decided =
        paused.run(&["decide", &format!("{id}@0"), "invalid", "--reason", "not wanted", "--json"]);
    assert!(decided.stdout.contains("invalid"), "{decided:?}");
    let again = paused.run(&["cancel", "global", id, "--reason", "not wanted"]);
    assert!(again.exit_code == Some(1) && again.stderr.contains("1070"), "{again:?}");
    let unknown = paused.run(&["cancel", "00000000", id, "--reason", "not wanted"]);
    assert!(unknown.stderr.contains("1071") && !unknown.stderr.contains("1070"), "{unknown:?}");
    let pattern = paused.run(&["cancel", "g*", id, "--reason", "not wanted"]);
    assert!(pattern.exit_code == Some(1) && pattern.stderr.contains("1070"), "{pattern:?}");
}

#[test]
fn services_and_instances_are_operated() {
    let paused = Paused::new();
    for arguments in [&["retry", "global"][..], &["retry", "--all"]] {
        let retried = paused.run(&[arguments, &["--reason", "now"]].concat());
        assert_eq!(retried.stdout, "nothing is delayed\n", "{retried:?}");
    }
    let claims = paused.server.get("/v1/claims");
    let instance = claims["instances"][0]["instance_id"].as_str().unwrap().to_owned();
    let only = paused.run(&["drain", &instance, "--reason", "new kernel"]);
    assert!(only.exit_code == Some(1) && only.stderr.contains("no other instance"), "{only:?}");
    let released = paused.json(&["release-claim", "global", "--reason", "new owner"]);
    assert_eq!(released["results"][0]["target"], "global", "{released}");
    let unknown = paused.run(&["drain", "nowhere", "--reason", "new kernel"]);
    assert!(unknown.exit_code == Some(1) && unknown.stderr.contains("nowhere"), "{unknown:?}");
}

#[test]
fn profile_names_a_server_and_its_token() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve_with(&[("--access-mode", "tokens")]);
    let created = harness
        .run_command(&["token", "create", "--name", "ci", "--scope", "read", "--reason", "a test"]);
    let folder = harness.path().join("grid-batch");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("ci.token"), &created.stdout).unwrap();
    let profiles =
        format!("[ci]\nurl = \"http://{}\"\ntoken_file = \"ci.token\"\n", server.address);
    fs::write(folder.join("profiles.toml"), profiles).unwrap();
    let run = |arguments: &[&str]| {
        let home = [("XDG_CONFIG_HOME", harness.path().to_str().unwrap())];
        harness.run_command_with(arguments, &home)
    };
    wait_until("the token is known", || run(&["services", "--profile", "ci"]).exit_code == Some(0));
    let held = run(&["held", "--profile", "ci"]);
    assert_eq!(held.stdout, "nothing is held\n", "{held:?}");
    let unknown = run(&["held", "--profile", "other"]);
    assert!(unknown.exit_code == Some(78) && unknown.stderr.contains("[other]"), "{unknown:?}");
}
