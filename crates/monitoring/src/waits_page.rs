//! Generates `docs/waits.md`: the texts of `WaitReason`, and where each reason is shown.

use std::{env, fs, path::Path};

use grid_batch_core::queries::WaitReason;

use crate::{
    health::{
        parts::{WaitingServices, services_part},
        services::ServiceState,
    },
    metrics::COUNTED_REASONS,
};

const HEAD: &str = "# Why a batch waits

Every reason for which a batch does not move: the `cause` of `wait` in `/batch_statuses` and `/v1/batches/{id}`, of `also` (of a
batch) and of `waits` (of a service). `since` is when the cause began or, of a batch that waits for its turn or for the ledger,
when it was stored or entered its state. `ends` is in the third column; the fourth has the verbs of `actions`,
each of which has its `command`, while the nodes answer; the last has numbers of the part `services` of `/health`, fields of a
service, and alerts. *Only its owner knows*: other instances say `submission`, or nothing. This page is generated:
`UPDATE_DOCS=1 cargo test -p grid-batch-monitoring page_of_waits`.

| cause | the batch | ends with | verbs | see also |
|---|---|---|---|---|
";

/// Where else a reason is shown: in numbers of the part `services` of `/health`, which are values of the metric
/// `grid_batch_health_number`, in fields of a service, and in alerts.
struct Seen {
    number: Option<&'static str>,
    field: Option<&'static str>,
    alert: Option<&'static str>,
}

fn seen(reason: &WaitReason) -> Seen {
    let (number, field, alert) = match reason {
        WaitReason::Held => (Some("held"), Some("held"), Some("GridBatchBatchesHeld")),
        WaitReason::Halt { .. } => (Some("halted"), Some("halts"), Some("GridBatchServicesHalted")),
        WaitReason::Paused { .. } => {
            (Some("paused"), Some("paused"), Some("GridBatchServicesPaused"))
        }
        WaitReason::Parked => (None, Some("parked"), None),
        WaitReason::Delayed => (Some("failing"), Some("failing"), Some("GridBatchServicesFailing")),
        WaitReason::Status => (Some("stalled"), None, Some("GridBatchServicesStandStill")),
        WaitReason::Evidence => (None, Some("in_doubt"), Some("GridBatchInDoubtTooLong")),
        WaitReason::Lease { .. } => (None, Some("owner"), Some("GridBatchClaimsNotRenewed")),
        WaitReason::Node(_) => (None, None, Some("GridBatchLedgerDegraded")),
        WaitReason::Busy { .. } => (Some("busy"), None, Some("GridBatchLedgerBusy")),
        WaitReason::Lock { .. } => (Some("locked"), None, None),
        WaitReason::Behind
        | WaitReason::Conflict { .. }
        | WaitReason::Dependency { .. }
        | WaitReason::MissingTransaction { .. }
        | WaitReason::Lane
        | WaitReason::InFlightWindow
        | WaitReason::NodePlace
        | WaitReason::Unconfirmed { .. }
        | WaitReason::Submission
        | WaitReason::Submitter
        | WaitReason::LateArrival
        | WaitReason::Deadline(_) => (None, None, None),
    };
    Seen { number, field, alert }
}

fn row(reason: &WaitReason) -> String {
    let about = reason.about();
    let actions: Vec<_> = about.actions.iter().map(|verb| format!("`{verb}`")).collect();
    let Seen { number, field, alert } = seen(reason);
    let number = number.map(|number| format!("number `{number}`"));
    let field = field.map(|field| format!("field `{field}`"));
    let alert = alert.map(|alert| format!("`{alert}`"));
    let seen: Vec<_> = [number, field, alert].into_iter().flatten().collect();
    format!(
        "| `{}` | {} | {} | {} | {} |\n",
        about.name,
        about.meaning,
        about.ends,
        actions.join(", "),
        seen.join(", ")
    )
}

fn repository() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn page_of_waits_is_up_to_date() {
    let file = repository().join("docs/waits.md");
    let rows: String = WaitReason::examples().iter().map(row).collect();
    let expected = format!("{HEAD}{rows}");
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &expected).unwrap();
    }
    let present = fs::read_to_string(&file).unwrap_or_default();
    assert!(present == expected, "run this test with UPDATE_DOCS=1 to update docs/waits.md");
}

#[test]
fn page_of_waits_names_existing_places() {
    let waiting = WaitingServices { stalled: 0, delayed: 0, busy: 0, locked: 0, only_invalid: 0 };
    let part = services_part(&ServiceState::new(), &waiting);
    let alerts = fs::read_to_string(repository().join("deploy/prometheus/alerts.yml")).unwrap();
    let interface = fs::read_to_string(repository().join("docs/openapi.json")).unwrap();
    let interface: serde_json::Value = serde_json::from_str(&interface).unwrap();
    let fields = &interface["components"]["schemas"]["ServiceJson"]["properties"];
    let names: Vec<_> = WaitReason::examples().iter().map(WaitReason::name).collect();
    assert!(COUNTED_REASONS.iter().all(|name| names.contains(name)));
    for reason in WaitReason::examples() {
        let Seen { number, field, alert } = seen(&reason);
        assert!(number.is_none_or(|number| part.numbers.contains_key(number)), "{reason:?}");
        assert!(field.is_none_or(|field| fields[field].is_object()), "{field:?}");
        let is_alert = |alert| alerts.contains(&format!("- alert: {alert}\n"));
        assert!(alert.is_none_or(is_alert), "{alert:?}");
    }
}
