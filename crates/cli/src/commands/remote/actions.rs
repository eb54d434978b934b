//! Actions of operators.

use std::process::ExitCode;

use grid_batch_client::{ClientError, given, path_segment};
use grid_batch_core::operators::OperatorVerb;
use serde_json::{Value, json};

use super::{Server, change};
use crate::commands::{
    arguments::{ActionArgs, Asked, DryRun},
    failure::Failure,
    operator::{BatchName, NamedBatches, Report},
};

/// Acts on each batch that the arguments name, and reports each. If several are named, all are found before the first
/// is changed.
pub(in crate::commands) fn act_on_each(
    args: &ActionArgs,
    verb: OperatorVerb,
    named: &NamedBatches,
) -> Result<ExitCode, Failure> {
    let server = Server::to_act(&args.source)?;
    let act = |name: &BatchName, asked: &Asked| {
        let service = named.service.as_ref().map(ToString::to_string);
        let service = given([("service_id", service.as_deref())]);
        let path = format!("/v1/batches/{}/{}", name.prefix, path_of(verb));
        server.act(asked, &path, &service, fields_of(verb, name))
    };
    if named.names.len() > 1 {
        let dry_run = Asked { run: DryRun { dry_run: true }, ..args.asked.clone() };
        for name in &named.names {
            match act(name, &dry_run) {
                Err(error) if !is_of_state(&error) => {
                    let failure = Server::failed(error).at(&server.place());
                    return Err(failure.about(&format!("{:.32}", name.prefix)));
                }
                _ => {}
            }
        }
    }
    let mut report = Report::new(args, server.database.as_deref(), named.names.len());
    for name in &named.names {
        match act(name, &args.asked) {
            Ok(done) => report.add_done(&done),
            Err(error) => report.add_failed(&name.prefix.to_string(), Server::failed(error)),
        }
    }
    report.end()
}

/// Whether the batch was found, and its state forbids the action.
fn is_of_state(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { status: 409, .. })
}

/// The path of something with an id, such as `services`, and an action on it.
pub(in crate::commands) fn action_path(kind: &str, id: &str, action: &str) -> String {
    format!("/v1/{kind}/{}/{action}", path_segment(id))
}

/// What was changed, in words.
pub(in crate::commands) fn changed(done: &Value) -> String {
    let mut text = match (done["attempt"].as_u64(), done["state"].as_str()) {
        (Some(attempt), Some(state)) => {
            format!("after attempt {attempt}, the batch is {}", state.replace('_', " "))
        }
        _ => change(done),
    };
    if let Some(note) = done["note"].as_str() {
        text.push_str(&format!(": {note}"));
    }
    if done["being_sent"]["count"].as_u64().is_some_and(|count| count > 0) {
        text.push_str("; it is being sent, and this attempt is not stopped");
    }
    text
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
