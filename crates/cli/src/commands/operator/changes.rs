//! Commands that change batches: each batch is reported.

use std::process::ExitCode;

use clap::ArgMatches;
use grid_batch_core::{
    ActionOutcome, BatchState, OperatorAction, OperatorTarget, OperatorVerb, StoredBatch,
};
use serde_json::{Value, json};

use super::{
    Database, Target, find_targets, is_dry_run, operator_action, print_json, print_wrapped,
    short_id, wants_json,
};
use crate::commands::{
    failure::Failure,
    print::{print_stderr, print_stdout},
};

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
    attempt: impl Fn(&Target) -> Option<u32>,
    text: impl Fn(&Changed<'_>) -> String,
) -> Result<ExitCode, Failure> {
    let database = Database::to_write(matches)?;
    let targets = find_targets(&database, matches)?;
    let dry_run = is_dry_run(matches);
    let results = targets.iter().map(|target| {
        let StoredBatch { service_id, batch_id, .. } = &target.batch;
        let (service_id, batch_id) = (service_id.clone(), *batch_id);
        let action = OperatorTarget::Batch { service_id, batch_id, attempt: attempt(target) };
        (target, changed(&database, &operator_action(matches, verb, action)))
    });
    let mut report = Report::new(&database, targets.len(), wants_json(matches));
    report.dry_run = dry_run;
    for (target, result) in results {
        let described = |state| match (text(&Changed { target, state }), dry_run) {
            (text, true) => (state, format!("nothing changed; without --dry-run: {text}")),
            (text, false) => (state, text),
        };
        report.add(target, result.map(described));
    }
    report.end()
}

fn changed(database: &Database, action: &OperatorAction) -> Result<BatchState, Failure> {
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

/// What became of each batch.
struct Report<'a> {
    database: &'a Database,
    /// Whether the command is about several batches.
    several: bool,
    dry_run: bool,
    json: Option<Vec<Value>>,
    changed: usize,
    failed: Vec<Failure>,
}

impl<'a> Report<'a> {
    fn new(database: &'a Database, targets: usize, json: bool) -> Self {
        Self {
            database,
            several: targets > 1,
            dry_run: false,
            json: json.then(Vec::new),
            changed: 0,
            failed: Vec::new(),
        }
    }

    fn add(&mut self, target: &Target, result: Result<(BatchState, String), Failure>) {
        let batch = &target.batch;
        let name = format!("{} {}", batch.service_id, short_id(&batch.batch_id));
        if let Some(results) = &mut self.json {
            let text = match &result {
                Ok((_, text)) => text.clone(),
                Err(failure) => failure.to_string(),
            };
            results.push(json!({
                "service_id": batch.service_id.as_str(),
                "batch_id": batch.batch_id.to_string(),
                "changed": result.is_ok() && !self.dry_run,
                "dry_run": self.dry_run,
                "state": result.as_ref().ok().map(|(state, _)| state.to_string()),
                "text": text,
            }));
        } else if let Ok((_, text)) = &result {
            if self.changed == 0 {
                print_stdout(format_args!("database {}", self.database.name()));
            }
            print_stdout(format_args!("{name}:"));
            print_wrapped("    ", text);
        }
        match result {
            Ok(_) => self.changed += 1,
            Err(failure) if self.several => {
                self.failed.push(Failure::new(format!("{name}: {failure}")));
            }
            Err(failure) => {
                self.failed.push(Failure::new(format!("{failure} ({})", self.database.name())));
            }
        }
    }

    fn end(mut self) -> Result<ExitCode, Failure> {
        let code = if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        if let Some(results) = self.json {
            print_json(&json!({ "database": self.database.name(), "results": results }));
            return Ok(code);
        }
        if !self.several
            && let Some(failure) = self.failed.pop()
        {
            return Err(failure);
        }
        for failure in &self.failed {
            print_stderr(format_args!("grid-batch: {failure}"));
        }
        Ok(code)
    }
}
