//! Commands that change batches: each batch is reported.

use std::process::ExitCode;

use clap::ArgMatches;
use grid_batch_core::{BatchState, ChangeOutcome};
use grid_batch_store::{Store, StoreError};
use serde_json::{Value, json};

use super::{Database, Target, find_targets, print_json, print_wrapped, short_id, wants_json};
use crate::commands::{
    failure::Failure,
    print::{print_stderr, print_stdout},
};

/// A batch that was changed, and its state now.
pub(in crate::commands) struct Changed<'a> {
    pub(in crate::commands) target: &'a Target,
    pub(in crate::commands) state: BatchState,
}

/// Changes each batch that the arguments name. All of them are found before the first is changed.
///
/// `text` says what was done. The exit code is that of a failure if one batch was not changed.
pub(in crate::commands) fn change_each(
    matches: &ArgMatches,
    change: impl Fn(&Store, &Target) -> Result<ChangeOutcome, StoreError>,
    text: impl Fn(&Changed<'_>) -> String,
) -> Result<ExitCode, Failure> {
    let database = Database::to_write(matches)?;
    let targets = find_targets(&database, matches)?;
    let results = targets.iter().map(|target| (target, changed(&database, target, &change)));
    let mut report = Report::new(&database, targets.len(), wants_json(matches));
    for (target, result) in results {
        report.add(target, result.map(|state| (state, text(&Changed { target, state }))));
    }
    report.end()
}

fn changed(
    database: &Database,
    target: &Target,
    change: &impl Fn(&Store, &Target) -> Result<ChangeOutcome, StoreError>,
) -> Result<BatchState, Failure> {
    match change(&database.store, target)? {
        ChangeOutcome::Applied { state, .. } => Ok(state),
        ChangeOutcome::Stale(stale) => Err(Failure::new(format!("nothing changed: {stale}"))),
        ChangeOutcome::NotFound => {
            Err(Failure::new("nothing changed: the batch is not stored any more"))
        }
    }
}

/// What became of each batch.
struct Report<'a> {
    database: &'a Database,
    /// Whether the command is about several batches.
    several: bool,
    json: Option<Vec<Value>>,
    changed: usize,
    failed: Vec<Failure>,
}

impl<'a> Report<'a> {
    fn new(database: &'a Database, targets: usize, json: bool) -> Self {
        Self {
            database,
            several: targets > 1,
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
                "changed": result.is_ok(),
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
