//! `/metrics` of a server that has done some work, and the files in `deploy` that use it.

use std::{collections::BTreeSet, env, fs, path::Path, process::Command};

use grid_batch_test_support::{
    batches::signed_batches,
    http::{request, send},
    wait::wait_for,
};
use serde_json::Value;

use crate::harness::{BatchHarness, BatchServer};

fn metrics(server: &BatchServer) -> String {
    let response = send(server.address, &request("GET", "/metrics", &[], b"")).unwrap();
    assert_eq!(response.status, 200, "{response:?}");
    response.body
}

fn repository_file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

/// The names of metrics in a text.
fn metric_names(text: &str) -> BTreeSet<&str> {
    text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .filter(|word| word.starts_with("grid_batch_") || word.starts_with("process_"))
        .collect()
}

/// The label matchers in a text, such as `part="database"`.
fn matchers(text: &str) -> impl Iterator<Item = &str> {
    let groups = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    groups
        .flat_map(|(group, _)| group.split(','))
        .filter(|it| it.contains("=\"") && !it.contains("!="))
}

/// The headings of a page, as links name them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-"))
        .collect()
}

#[test]
fn dashboard_and_alerts_use_metrics_that_exist() {
    let harness = BatchHarness::scabbard(2);
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 4);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    let all_measured = "grid_batch_stage_duration_seconds_count{stage=\"accepted_to_commit\"} 8\n";
    let text = wait_for("the commits are measured", || {
        Some(metrics(&server)).filter(|text| text.contains(all_measured))
    });
    assert_reference_is_up_to_date(&text);
    for expected in [
        "grid_batch_ended_total{result=\"committed\"} 8\n",
        "grid_batch_stage_duration_seconds_count{stage=\"accepted_to_taken\"} 8\n",
        "grid_batch_stage_duration_seconds_count{stage=\"taken_to_answer\"} 8\n",
        "grid_batch_health_status{part=\"database\",status=\"ok\"} 1\n",
    ] {
        assert!(text.contains(expected), "{expected} in\n{text}");
    }
    assert!(!text.contains(&batches[0].batch_id.to_string()), "a batch is a label");
    let dashboard: Value =
        serde_json::from_str(&repository_file("deploy/grafana/grid-batch.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions: String =
        targets.map(|target| format!("{}\n", target["expr"].as_str().unwrap())).collect();
    let alerts = repository_file("deploy/prometheus/alerts.yml");
    let rules: String = alerts
        .lines()
        .filter_map(|line| Some(format!("{}\n", line.trim().strip_prefix("expr: ")?)))
        // This one is Prometheus's own.
        .filter(|line| !line.starts_with("up{"))
        .collect();
    let existing = metric_names(&text);
    for used in [&expressions, &rules] {
        for name in metric_names(used) {
            assert!(existing.contains(name), "{name} does not exist");
        }
        // Only a server with a chain has the part; the tests of gas admins look for what is used of it.
        let lines = used.lines().filter(|line| !line.contains("part=\"gas\""));
        for matcher in lines.flat_map(matchers) {
            assert!(text.contains(matcher), "nothing has the label {matcher}");
        }
    }
    server.stop();
}

/// Each line of `docs/reference/metrics.md` about a metric: all but its labels.
fn reference_rows(text: &str) -> Vec<String> {
    let helps = text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '));
    let mut rows: Vec<String> = helps
        .map(|(name, help)| {
            let named = format!("# TYPE {name} {}\n", type_of(name));
            assert!(text.contains(&named), "the name {name} does not tell its type");
            format!("- `{name}`: {help}")
        })
        .collect();
    rows.sort();
    rows
}

/// The type that the name of a metric tells.
fn type_of(name: &str) -> &'static str {
    match name {
        name if name.ends_with("_total") => "counter",
        name if name.ends_with("_duration_seconds") => "histogram",
        _ => "gauge",
    }
}

/// Which labels a metric has depends on what has happened, so the page has no list of them.
fn assert_reference_is_up_to_date(text: &str) {
    let expected = format!(
        "# Metrics\n\nWhat `/metrics` has for Prometheus. The samples name their labels; no label is the id of a \
         batch. This page is\ngenerated from a running server: `UPDATE_DOCS=1 cargo test -p grid-batch --test server \
         dashboard_and_alerts`.\n[Alerts](../guides/alerts.md) use them. Counters end with `_total`, histograms with \
         `_duration_seconds`; others are gauges.\n\n\
         {}\n",
        reference_rows(text).join("\n")
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &expected).unwrap();
    }
    let present = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(present, expected, "run this test with UPDATE_DOCS=1 to update {file:?}");
}

#[test]
fn alerts_link_to_what_to_do() {
    let anchors = anchors(&repository_file("docs/guides/alerts.md"));
    let alerts = repository_file("deploy/prometheus/alerts.yml");
    let links: Vec<&str> = alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("runbook_url: docs/guides/alerts.md#"))
        .collect();
    assert_eq!(links.len(), alerts.matches("- alert:").count());
    for link in links {
        assert!(anchors.contains(link), "docs/guides/alerts.md has no section {link}");
    }
}

#[test]
fn every_alert_has_a_test() {
    let alerts = repository_file("deploy/prometheus/alerts.yml");
    let tests = repository_file("deploy/prometheus/alerts_test.yml");
    for alert in alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert}");
    }
}

#[test]
fn alerts_fire_when_they_should() {
    let promtool = env::var("GRID_BATCH_TEST_PROMTOOL").unwrap_or_else(|_| "promtool".to_owned());
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus");
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]] {
        let output = Command::new(&promtool)
            .args(arguments)
            .current_dir(&directory)
            .output()
            .unwrap_or_else(|error| {
                panic!(
                    "cannot run {promtool}: {error}; scripts/test unpacks it, or install Debian's package \
                     prometheus or https://prometheus.io, or set GRID_BATCH_TEST_PROMTOOL"
                )
            });
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
