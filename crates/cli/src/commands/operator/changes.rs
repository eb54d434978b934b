//! Commands that change batches in the database: each batch is reported.

use std::process::ExitCode;

use clap::ArgMatches;
use grid_batch_core::{
    ActionOutcome, BatchState, OperatorAction, OperatorStore, OperatorTarget, OperatorVerb,
    StoredBatch,
};

use super::{ChangedBatch, Database, Report, Target, find_targets, operator_action};
use crate::commands::failure::Failure;

/// A batch that was changed, and its state now.
pub(in crate::commands) struct Changed<'a> {
    pub(in crate::commands) target: &'a Target,
    pub(in crate::commands) state: BatchState,
}

/// Acts on each batch that the arguments name. All of them are found before the first is changed.
///
/// `text` says what was done. The exit code is that of a failure if one batch was not changed.
pub(in crate::commands) fn act_on_each(
    matches: &ArgMatches,
    verb: OperatorVerb,
    text: impl Fn(&Changed<'_>) -> String,
) -> Result<ExitCode, Failure> {
    let database = Database::to_write(matches)?;
    let targets = find_targets(&database, matches)?;
    let mut report = Report::new(matches, Some(database.name()), targets.len());
    for target in &targets {
        let StoredBatch { service_id, batch_id, .. } = &target.batch;
        let action = OperatorTarget::Batch {
            service_id: service_id.clone(),
            batch_id: *batch_id,
            attempt: target.attempt.filter(|_| verb.decides_attempt()),
        };
        let result = change(&database, &operator_action(matches, verb, action));
        let described = result.map(|state| ChangedBatch {
            state: Some(state.to_string()),
            text: text(&Changed { target, state }),
        });
        report.add(Some(service_id.as_str()), &batch_id.to_string(), described);
    }
    report.end()
}

fn change(database: &Database, action: &OperatorAction) -> Result<BatchState, Failure> {
    match database.store.act(action)? {
        ActionOutcome::Done(effect) => {
            effect.state.ok_or_else(|| Failure::new("the batch has no state"))
        }
        ActionOutcome::Refused(refusal) => Err(Failure::new(format!("nothing changed: {refusal}"))),
        ActionOutcome::NotFound => {
            Err(Failure::new("nothing changed: the batch is not stored any more"))
        }
    }
}
