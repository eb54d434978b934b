//! `top` in a terminal, and once as text.

use std::{fs, time::Duration};

use grid_batch_test_support::{
    batches::{SignedBatch, signed_batch},
    http::{request, send},
    process::run,
    tmux::{BEFORE, Tmux},
};
use serde_json::Value;

use crate::{
    GRID_BATCH,
    harness::{BatchHarness, BatchServer},
};

/// What is only on the screen while the view is there.
const HEADLINE: &str = "grid-batch top";
/// The keys, while nothing else is at the lower edge.
const KEYS: &str = "? help  q quit";

/// A server with open batches, which its ledger does not end: three of the first service, five of the second, and one of
/// the third.
struct Fixture {
    harness: BatchHarness,
    server: BatchServer,
    batches: Vec<SignedBatch>,
}

impl Fixture {
    fn new(flags: &[(&str, &str)]) -> Self {
        let forever = Duration::from_secs(3_600);
        let harness = BatchHarness::scabbard_with(3, |ledger| ledger.pending_for(forever));
        let server = harness.serve_with(flags);
        let batches_of = |service: usize, count: usize| {
            let service = &harness.services[service];
            (0..count).map(|number| signed_batch(service, number)).collect::<Vec<_>>()
        };
        let batches = [batches_of(0, 3), batches_of(1, 5), batches_of(2, 1)];
        batches.iter().for_each(|list| server.submit(list));
        Self { harness, server, batches: batches.concat() }
    }

    /// `top`, once it shows the services.
    fn top(&self, arguments: &[&str]) -> Tmux {
        self.top_with(arguments, &[])
    }

    fn top_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Tmux {
        let url = format!("http://{}", self.server.address);
        let arguments = [&["top", "--interval", "200ms", "--url", &url], arguments].concat();
        let mut command = GRID_BATCH.command(arguments);
        command.envs(variables.iter().copied());
        let tmux = Tmux::start(&command, 80, 24);
        tmux.wait_for_screen("the services and rates", |screen| {
            screen.contains("3 services") && screen.contains("/s   oldest") && screen.contains(KEYS)
        });
        tmux
    }

    fn operator_actions(&self) -> Vec<Value> {
        let get = request("GET", "/v1/operator-actions", &[], &[]);
        let response = send(self.server.address, &get).unwrap();
        let mut log: Value = serde_json::from_str(&response.body).unwrap();
        serde_json::from_value(log["data"].take()).unwrap()
    }
}

/// The ends of the ids of the listed services, in their order.
fn listed(screen: &str) -> Vec<&str> {
    let after_mark = |line: &'_ str| line.get(2..).unwrap_or_default().to_owned();
    let rows = screen.lines().filter(|line| after_mark(line).starts_with("test-00000::"));
    rows.filter_map(|row| row.get(14..19)).collect()
}

#[test]
fn services_are_sorted_filtered_and_explained() {
    let fixture = Fixture::new(&[]);
    let tmux = fixture.top(&[]);
    let screen = tmux.screen();
    assert_eq!(listed(&screen), ["s0000", "s0001", "s0002"], "{screen}");
    assert!(screen.contains("open 9 ") && screen.contains("instances 1   no problem"), "{screen}");
    assert!(screen.contains("nodes 1   no problem"), "{screen}");

    tmux.press(&["s", "s", "s", "s"]);
    let screen = tmux.wait_for_text("sorted by DEPTH");
    assert_eq!(listed(&screen), ["s0001", "s0000", "s0002"], "{screen}");

    tmux.write("/0002");
    let screen = tmux.wait_for_text("1 service with open batches that contain \"0002\"");
    assert_eq!(listed(&screen), ["s0002"], "{screen}");
    tmux.press(&["Escape"]);
    tmux.wait_for_text("3 services");

    tmux.press(&["Down", "Enter"]);
    tmux.wait_for_text("Why service test-00000::s0000 waits");
    tmux.wait_for_screen("the explanation", |screen| screen.contains("3 open batches"));
    tmux.press(&["Escape"]);
    tmux.wait_for_text("3 services");
    tmux.write("?");
    tmux.wait_for_text("pause or resume the selected service");
}

#[test]
fn service_is_paused_and_resumed_with_a_reason() {
    let fixture = Fixture::new(&[]);
    let tmux = fixture.top(&[]);
    tmux.write("p");
    tmux.wait_for_text("Why pause test-00000::s0000?");
    tmux.write("an update of the node");
    tmux.press(&["Enter"]);
    tmux.wait_for_text("paused: an update of the node");
    let last = fixture.operator_actions().remove(0);
    assert_eq!(
        (&last["verb"], &last["service_id"]),
        (&"pause".into(), &"test-00000::s0000".into())
    );
    assert_eq!(last["reason"], "an update of the node");

    tmux.write("p");
    tmux.wait_for_text("Why resume test-00000::s0000?");
    tmux.write("it is over");
    tmux.press(&["Enter"]);
    tmux.wait_for_screen("no pause", |screen| {
        screen.contains("s0000 is resumed") && !screen.contains("paused: an update")
    });
    let last = fixture.operator_actions().remove(0);
    assert_eq!((&last["verb"], &last["reason"]), (&"resume".into(), &"it is over".into()));
}

#[test]
fn held_batches_are_listed_and_explained() {
    let fixture = Fixture::new(&[]);
    let tmux = fixture.top(&[]);
    let SignedBatch { service_id, batch_id, .. } = &fixture.batches[0];
    let (service, id) = (service_id.to_string(), batch_id.to_string());
    let hold = ["hold", &service, &id, "--reason", "by request"];
    assert_eq!(fixture.harness.run_command(&hold).exit_code, Some(0));
    tmux.wait_for_text("held by an operator: by req");
    tmux.write("h");
    tmux.wait_for_screen("the held batch and why", |screen| {
        screen.contains(&id[..12]) && screen.contains("by request")
    });
    tmux.write("e");
    tmux.wait_for_screen("what can be done", |screen| {
        screen.contains(&format!("Why batch {}", &id[..12])) && screen.contains("release")
    });
}

#[test]
fn colours_are_used_without_no_color() {
    let fixture = Fixture::new(&[]);
    let paused = fixture.harness.run_command(&["pause", "--all", "--reason", "an update"]);
    assert_eq!(paused.exit_code, Some(0), "{paused:?}");
    for (variables, has_colours) in [(&[][..], true), (&[("NO_COLOR", "1")], false)] {
        let tmux = fixture.top_with(&[], variables);
        tmux.wait_for_text("paused: an update");
        let screen = tmux.styled_screen();
        assert_eq!(screen.contains("\u{1b}[33m"), has_colours, "{screen:?}");
        assert!(screen.contains("\u{1b}[1m"), "{screen:?}");
    }
}

#[test]
fn view_goes_on_after_a_restart_of_the_server() {
    let mut fixture = Fixture::new(&[]);
    let tmux = fixture.top(&[]);
    let address = fixture.server.address.to_string();
    fixture.server.stop();
    let screen = tmux.wait_for_text("NO ANSWER for");
    assert!(screen.contains("values of ") && listed(&screen).len() == 3, "{screen}");
    tmux.write("s");
    tmux.wait_for_text("sorted by RATE");
    fixture.server = fixture.harness.serve_with(&[("--listen", &address)]);
    tmux.wait_for_screen("no failure", |screen| {
        !screen.contains("NO ANSWER") && listed(screen).len() == 3
    });
}

#[test]
fn keys_work_while_the_server_hangs() {
    let fixture = Fixture::new(&[]);
    let tmux = fixture.top(&[]);
    fixture.server.process.signal("STOP");
    tmux.wait_for_text("NO ANSWER yet; values of ");
    tmux.write("s");
    tmux.wait_for_text("sorted by RATE");
    tmux.press(&["Enter"]);
    tmux.wait_for_text("The server is asked…");
    fixture.server.process.signal("CONT");
    tmux.wait_for_screen("the explanation of a server that answers again", |screen| {
        screen.contains("open batches") && !screen.contains("NO ANSWER")
    });
}

#[test]
fn view_fits_a_window_that_is_resized() {
    let fixture = Fixture::new(&[]);
    let tmux = fixture.top(&[]);
    for (width, height) in [(120, 40), (40, 10), (80, 24)] {
        tmux.resize(width, height);
        tmux.wait_for_screen("the lower edge", |screen| {
            let last = screen.lines().last().unwrap_or_default();
            let is_there = last.starts_with("s sort  / filter") && screen.starts_with(HEADLINE);
            is_there && screen.lines().count() == usize::from(height) && listed(screen).len() == 3
        });
    }
}

#[test]
fn terminal_is_as_before_after_every_end() {
    let fixture = Fixture::new(&[]);
    let ends: [(&str, i32); 4] = [("q", 0), ("C-c", 0), ("TERM", 143), ("HUP", 129)];
    for (end, exit_code) in ends {
        let tmux = fixture.top(&[]);
        match end {
            "TERM" | "HUP" => tmux.signal(end),
            key => tmux.press(&[key]),
        }
        assert_eq!(tmux.wait_for_end(), exit_code, "{end}");
        let screen = tmux.screen();
        assert!(screen.starts_with(BEFORE) && !screen.contains(HEADLINE), "{end}: {screen}");
        // A raw terminal would not show what is typed.
        tmux.write("typed afterwards");
        tmux.press(&["Enter"]);
        tmux.wait_for_screen("the echo and the copy", |screen| {
            screen.lines().filter(|line| *line == "typed afterwards").count() == 2
        });
    }
}

#[test]
fn pause_without_the_right_is_told() {
    let fixture = Fixture::new(&[]);
    let create = ["token", "create", "--name", "viewer", "--scope", "read", "--reason", "a test"];
    let created = fixture.harness.run_command(&create);
    let token = fixture.harness.path().join("token");
    fs::write(&token, &created.stdout).unwrap();
    let Fixture { harness, server, batches } = fixture;
    server.stop();
    let server = harness.serve_with(&[("--access-mode", "tokens")]);
    let fixture = Fixture { harness, server, batches };
    let tmux = fixture.top(&["--token-file", token.to_str().unwrap()]);
    tmux.write("p");
    tmux.wait_for_text("Why pause");
    tmux.write("because");
    tmux.press(&["Enter"]);
    tmux.wait_for_text("is not paused: not allowed: ");
}

#[test]
fn view_is_printed_once_without_a_terminal() {
    let fixture = Fixture::new(&[]);
    let url = format!("http://{}", fixture.server.address);
    let once = ["top", "--once", "--interval", "100ms", "--url", &url];
    let output = run(GRID_BATCH.command(once));
    assert_eq!((output.exit_code, listed(&output.stdout).len()), (Some(0), 3), "{output:?}");
    assert!(output.stdout.contains("/s   committed"), "{output:?}");
    assert!(!output.stdout.contains('\u{1b}'), "{output:?}");
    let without = run(GRID_BATCH.command(["top", "--url", &url]));
    assert!(without.error_message().contains("--once"), "{without:?}");
    let gone = run(GRID_BATCH.command(["top", "--once", "--url", "http://127.0.0.1:1"]));
    assert_eq!(gone.exit_code, Some(4), "{gone:?}");
}
