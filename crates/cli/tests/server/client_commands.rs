//! Commands that need no SDK of a ledger and talk to a running server.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use grid_batch_test_support::{process::ProcessOutput, wait::wait_until};
use serde_json::Value;

use crate::harness::{BatchHarness, BatchServer};

struct Fixture {
    harness: BatchHarness,
    key: PathBuf,
    public_key: String,
}

impl Fixture {
    fn new() -> Self {
        let harness = BatchHarness::sawtooth();
        let key = harness.path().join("batcher.key");
        let made = harness.run_command(&["key", "new", key.to_str().unwrap()]);
        assert_eq!(made.exit_code, Some(0), "{made:?}");
        let public_key = made.stdout.trim().to_owned();
        Self { harness, key, public_key }
    }

    fn key(&self) -> &str {
        self.key.to_str().unwrap()
    }

    /// Makes a list with a batch that sets a number. Returns its file and the id of the batch.
    fn make(&self, name: &str) -> (String, String) {
        let file = self.harness.path().join(name).display().to_string();
        let text = format!("set {name} 5");
        let arguments = ["batch", "make", "--key", self.key(), "--intkey", &text, "-o", &file];
        let made = self.harness.run_command(&arguments);
        assert_eq!(made.exit_code, Some(0), "{made:?}");
        (file, made.stderr.trim().to_owned())
    }

    /// Runs a command with the URL of a server.
    fn run(&self, server: &BatchServer, arguments: &[&str]) -> ProcessOutput {
        let url = format!("http://{}", server.address);
        self.harness.run_command(&[arguments, &["--url", &url]].concat())
    }
}

#[test]
fn key_is_private_and_never_overwritten() {
    let fixture = Fixture::new();
    let mode = fs::metadata(&fixture.key).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode, fixture.public_key.len()), (0o600, 66));
    let secret = fs::read_to_string(&fixture.key).unwrap();
    let again = fixture.harness.run_command(&["key", "new", fixture.key()]);
    assert_eq!(again.exit_code, Some(1));
    assert_eq!(fs::read_to_string(&fixture.key).unwrap(), secret);
    let shown = fixture.harness.run_command(&["key", "show", fixture.key()]);
    assert_eq!(shown.stdout.trim(), fixture.public_key);
}

#[test]
fn batch_is_made_submitted_and_followed_to_its_end() {
    let fixture = Fixture::new();
    let server = fixture.harness.serve();
    let ((first, id), (second, other)) = (fixture.make("a"), fixture.make("b"));
    let submitted = fixture.run(&server, &["submit", &first, &second, "--wait"]);
    assert_eq!(submitted.exit_code, Some(0), "{submitted:?}");
    assert_eq!(submitted.stdout, format!("{id} committed\n{other} committed\n"));
    let again = fixture.run(&server, &["submit", &first, "--json"]);
    assert!(again.stdout.contains(&id) && again.exit_code == Some(0), "{again:?}");
}

#[test]
fn submitted_batch_belongs_to_the_trace_of_the_environment() {
    let fixture = Fixture::new();
    let server = fixture.harness.serve();
    let (file, _) = fixture.make("a");
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let url = format!("http://{}", server.address);
    let submit = ["submit", &file, "--wait", "--url", &url];
    let submitted = fixture.harness.run_command_with(&submit, &[("TRACEPARENT", parent)]);
    assert_eq!(submitted.exit_code, Some(0), "{submitted:?}");
    assert_eq!(server.get("/v1/events")["data"][0]["traceparent"], parent);
}

#[test]
fn batch_of_json_and_of_flags_is_made() {
    let fixture = Fixture::new();
    let server = fixture.harness.serve();
    let json = fixture.harness.path().join("batches.json");
    let transaction =
        r#"{"family": "a", "version": "1", "outputs": ["aa"], "payload": {"text": "x"}}"#;
    fs::write(&json, format!(r#"[{{"transactions": [{transaction}, {transaction}]}}]"#)).unwrap();
    let list = fixture.harness.path().join("list").display().to_string();
    for source in [
        &["--json", json.to_str().unwrap()][..],
        &["--family", "a", "--version", "1", "--output-address", "ab", "--payload", "x"],
        &["--family", "a", "--version", "1", "--cbor", "{\"n\": 1}"],
    ] {
        let make = ["batch", "make", "--key", fixture.key(), "-o", &list];
        let made = fixture.harness.run_command(&[&make, source].concat());
        assert_eq!(made.exit_code, Some(0), "{made:?}");
        let submitted = fixture.run(&server, &["submit", &list, "--wait"]);
        assert_eq!(submitted.exit_code, Some(0), "{submitted:?}");
    }
}

#[test]
fn number_that_was_never_set_cannot_be_decreased() {
    let fixture = Fixture::new();
    let server = fixture.harness.serve();
    let list = fixture.harness.path().join("list").display().to_string();
    for (text, end, exit_code) in [
        ("dec pears 1", "invalid: Verb is \"dec\" but name \"pears\" not in state", 1),
        ("set pears 5", "committed", 0),
        ("dec pears 1", "committed", 0),
        ("dec pears 5", "invalid: Verb is \"dec\", but result would be less than 0", 1),
    ] {
        let make = ["batch", "make", "--key", fixture.key(), "-o", &list, "--intkey", text];
        assert_eq!(fixture.harness.run_command(&make).exit_code, Some(0));
        let submitted = fixture.run(&server, &["submit", &list, "--wait"]);
        assert!(submitted.stdout.contains(end), "{text}: {submitted:?}");
        assert_eq!(submitted.exit_code, Some(exit_code), "{text}: {submitted:?}");
    }
}

#[test]
fn list_that_a_server_refuses_is_not_made() {
    let fixture = Fixture::new();
    let json = fixture.harness.path().join("batches.json");
    let batch = r#"{"transactions": [{"family": "a", "version": "1"}]}"#;
    fs::write(&json, format!("[{}]", vec![batch; 1_001].join(","))).unwrap();
    let list = fixture.harness.path().join("list");
    let make = ["batch", "make", "--key", fixture.key(), "-o", list.to_str().unwrap()];
    let made =
        fixture.harness.run_command(&[&make[..], &["--json", json.to_str().unwrap()]].concat());
    assert!(made.error_message().contains("more than 1000 batches"), "{made:?}");
    assert_eq!((made.exit_code, list.exists()), (Some(1), false));
}

#[test]
fn what_a_server_says_is_told() {
    let fixture = Fixture::new();
    let server = fixture.harness.serve();
    let (file, id) = fixture.make("a");
    let junk = fixture.harness.path().join("junk").display().to_string();
    fs::write(&junk, "junk").unwrap();
    let refused = fixture.run(&server, &["submit", &junk]);
    assert_eq!(refused.exit_code, Some(1), "{refused:?}");
    assert!(refused.error_message().contains(&junk), "{refused:?}");
    let unknown = fixture.run(&server, &["explain", &id]);
    assert!(
        unknown.exit_code == Some(1) && unknown.error_message().contains("1060"),
        "{unknown:?}"
    );

    let paused = fixture.harness.run_command(&["pause", "--all", "--reason", "maintenance"]);
    assert_eq!(paused.exit_code, Some(0), "{paused:?}");
    let waiting = fixture.run(&server, &["submit", &file, "--wait", "--timeout", "1s"]);
    assert_eq!(waiting.exit_code, Some(3), "{waiting:?}");
    let explained = fixture.run(&server, &["explain", &id]);
    assert!(explained.stdout.contains("pause"), "{explained:?}");
    assert!(explained.stdout.lines().all(|line| line.chars().count() <= 80), "{explained:?}");
    let of_service = fixture.run(&server, &["explain", "--service", "global"]);
    assert!(of_service.stdout.contains("pause"), "{of_service:?}");
    server.stop();
    let url = "http://127.0.0.1:1";
    let gone = fixture.harness.run_command(&["submit", &file, "--url", url]);
    assert_eq!(gone.exit_code, Some(4), "{gone:?}");
    assert!(gone.stderr.contains(url), "{gone:?}");
}

#[test]
fn batches_and_services_are_listed() {
    let fixture = Fixture::new();
    let server = fixture.harness.serve();
    let (file, id) = fixture.make("a");
    let submitted = fixture.run(&server, &["submit", &file, "--wait", "--label", "first"]);
    assert_eq!(submitted.exit_code, Some(0), "{submitted:?}");
    let prefix = &id[..12];
    for arguments in [
        &["list"][..],
        &["list", "--state", "committed", "--label", "first", "--limit", "1"],
        &["status", &id],
    ] {
        let listed = fixture.run(&server, arguments);
        let row = listed.stdout.lines().nth(1).unwrap_or_default().to_owned();
        assert!(row.starts_with(prefix) && row.contains("committed"), "{listed:?}");
    }
    let none = fixture.run(&server, &["list", "--state", "open"]);
    assert_eq!(none.stdout, "No batch matches.\n");
    assert_eq!(fixture.run(&server, &["services"]).stdout, "No service has an open batch.\n");
    let services = fixture.run(&server, &["services", "--all", "--json"]);
    let services: Value = serde_json::from_str(&services.stdout).unwrap();
    assert_eq!(services["services"][0]["service_id"], "global");
    let events = fixture.run(&server, &["events", "--service", "global"]);
    let kinds: Vec<_> = events.stdout.lines().filter_map(|line| line.split(' ').nth(3)).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&"accepted"), Some(&"status")), "{events:?}");
}

#[test]
fn token_comes_from_a_file() {
    let fixture = Fixture::new();
    let server = fixture.harness.serve_with(&[("--access-mode", "tokens")]);
    let created = fixture
        .harness
        .run_command(&["token", "create", "--name", "ci", "--scope", "read", "--reason", "a test"]);
    let token = fixture.harness.path().join("token");
    fs::write(&token, &created.stdout).unwrap();
    let refused = fixture.run(&server, &["services"]);
    assert!(refused.stderr.contains("1090") && refused.exit_code == Some(1), "{refused:?}");
    wait_until("the token is known", || {
        let arguments = ["services", "--token-file", token.to_str().unwrap()];
        fixture.run(&server, &arguments).exit_code == Some(0)
    });
}

/// The blocks of commands of a page.
pub(crate) fn blocks(page: &str) -> Vec<&str> {
    let rests = page.split("```sh\n").skip(1);
    rests.filter_map(|rest| rest.split_once("```")).map(|(block, _)| block).collect()
}

/// Runs commands in a folder, with the program on the path, to the first that fails.
pub(crate) fn run_script(script: &str, folder: &Path, variables: &[(&str, &str)]) -> Output {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_grid-batch"));
    let path = env::var_os("PATH").unwrap();
    let folders = [program.parent().unwrap().to_owned()].into_iter().chain(env::split_paths(&path));
    Command::new("bash")
        .args(["-euxc", script])
        .current_dir(folder)
        .env("PATH", env::join_paths(folders).unwrap())
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

/// The commands of the page, in their order, with this server.
#[test]
fn commands_of_the_page_run() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve();
    let blocks = blocks(include_str!("../../../../docs/command-line.md"));
    let script = blocks.concat().replace("127.0.0.1:8080", &server.address.to_string());
    let output = run_script(&script, harness.path(), &[]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && blocks.len() > 4, "{text}");
    assert!(String::from_utf8_lossy(&output.stdout).contains(" committed\n"), "{output:?}");
}
