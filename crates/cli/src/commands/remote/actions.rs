//! Actions of operators, which a running server carries out.

use std::process::ExitCode;

use clap::ArgMatches;
use grid_batch_client::path_segment;
use grid_batch_core::OperatorVerb;
use serde_json::{Value, json};

use super::{Server, field};
use crate::commands::{
    failure::Failure,
    operator::{BatchName, ChangedBatch, NamedBatches, Report, ServiceSelection},
};

/// Acts on each batch that the arguments name, and reports each.
pub(in crate::commands) fn act_on_each(
    matches: &ArgMatches,
    verb: OperatorVerb,
    named: &NamedBatches,
) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    let service = service_of(named.service.as_ref())?;
    let of_service: Vec<_> = service.map(|service| ("service_id", service)).into_iter().collect();
    let mut report = Report::new(matches, None, named.names.len());
    for name in &named.names {
        let path = format!("/v1/batches/{}/{}", name.prefix, path_of(verb));
        match server.act(matches, &path, &of_service, fields_of(verb, name)) {
            Ok(done) => {
                let (service, batch) = (field(&done, "service_id"), field(&done, "batch_id"));
                report.add(Some(&service), &batch, Ok(changed(&done)));
            }
            Err(failure) => report.add(service, &name.prefix.to_string(), Err(failure)),
        }
    }
    report.end()
}

/// Acts on something else than a batch, such as a service. Returns what was done.
pub(in crate::commands) fn act_on(
    matches: &ArgMatches,
    server: &Server,
    path: &str,
    wait: Option<u64>,
) -> Result<Value, Failure> {
    let wait = wait.map(|seconds| ("wait", seconds.to_string()));
    let parameters = wait.iter().map(|(name, value)| (*name, value.as_str()));
    server.act(matches, path, &Vec::from_iter(parameters), json!({}))
}

/// The path of something with an id, such as `services`, and an action on it.
pub(in crate::commands) fn action_path(kind: &str, id: &str, action: &str) -> String {
    format!("/v1/{kind}/{}/{action}", path_segment(id))
}

fn changed(done: &Value) -> ChangedBatch {
    let changed = &done["changed"];
    let mut text = format!("{} -> {}", field(changed, "from"), field(changed, "to"));
    if done["being_sent"]["count"].as_u64().is_some_and(|count| count > 0) {
        text.push_str("; it is being sent, and this attempt is not stopped");
    }
    ChangedBatch { state: None, text }
}

/// The one service that a server can be asked for; `None` for all.
pub(in crate::commands) fn service_of(
    selection: Option<&ServiceSelection>,
) -> Result<Option<&str>, Failure> {
    match selection {
        None => Ok(None),
        Some(ServiceSelection::One(service)) => Ok(Some(service.as_str())),
        Some(pattern) if *pattern == ServiceSelection::any() => Ok(None),
        Some(pattern) => Err(Failure::usage(format!(
            "a server cannot be asked for the services {pattern}: name one, or * for all; with --database, any pattern \
             can be given"
        ))),
    }
}

/// The last part of the path of an action on a batch.
fn path_of(verb: OperatorVerb) -> String {
    match verb {
        OperatorVerb::EndCommitted | OperatorVerb::EndInvalid => "end".to_owned(),
        verb => verb.as_str().replace('_', "-"),
    }
}

fn fields_of(verb: OperatorVerb, name: &BatchName) -> Value {
    let mut fields = json!({});
    if verb.decides_attempt() {
        fields["attempt"] = name.attempt.into();
    }
    match verb {
        OperatorVerb::EndCommitted => fields["as"] = "committed".into(),
        OperatorVerb::EndInvalid => fields["as"] = "invalid".into(),
        _ => {}
    }
    fields
}
