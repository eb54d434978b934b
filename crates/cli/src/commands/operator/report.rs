use std::process::ExitCode;

use clap::ArgMatches;
use serde_json::{Value, json};

use super::{is_dry_run, print_json, print_wrapped, wants_json};
use crate::commands::{
    failure::Failure,
    print::{print_stderr, print_stdout},
};

/// The characters of an id that are printed.
const SHORT_ID: usize = 32;

/// What became of each batch that a command is about.
pub(in crate::commands) struct Report {
    /// `None`: a running server was asked.
    database: Option<String>,
    /// Whether the command is about several batches.
    several: bool,
    dry_run: bool,
    json: Option<Vec<Value>>,
    changed: usize,
    failed: Vec<Failure>,
}

/// A batch that is changed, or would be.
pub(in crate::commands) struct ChangedBatch {
    /// `None`: a server tells it in the text.
    pub(in crate::commands) state: Option<String>,
    pub(in crate::commands) text: String,
}

impl Report {
    pub(in crate::commands) fn new(
        matches: &ArgMatches,
        database: Option<String>,
        batches: usize,
    ) -> Self {
        Self {
            database,
            several: batches > 1,
            dry_run: is_dry_run(matches),
            json: wants_json(matches).then(Vec::new),
            changed: 0,
            failed: Vec::new(),
        }
    }

    /// Adds a batch. The service of one that was not found may not be known.
    pub(in crate::commands) fn add(
        &mut self,
        service_id: Option<&str>,
        batch_id: &str,
        result: Result<ChangedBatch, Failure>,
    ) {
        let name = format!("{} {batch_id:.SHORT_ID$}", service_id.unwrap_or_default());
        let name = name.trim_start();
        let result = result.map(|changed| self.described(changed));
        if let Some(results) = &mut self.json {
            let (state, text) = match &result {
                Ok(changed) => (changed.state.clone(), changed.text.clone()),
                Err(failure) => (None, failure.to_string()),
            };
            results.push(json!({
                "service_id": service_id,
                "batch_id": batch_id,
                "changed": result.is_ok() && !self.dry_run,
                "dry_run": self.dry_run,
                "state": state,
                "text": text,
            }));
        } else if let Ok(changed) = &result {
            self.print(name, &changed.text);
        }
        match result {
            Ok(_) => self.changed += 1,
            Err(failure) if self.several => self.failed.push(failure.about(name)),
            Err(failure) => self.failed.push(match &self.database {
                Some(database) => Failure::new(format!("{failure} ({database})")),
                None => failure,
            }),
        }
    }

    fn described(&self, changed: ChangedBatch) -> ChangedBatch {
        if !self.dry_run {
            return changed;
        }
        let text = format!("nothing changed; without --dry-run: {}", changed.text);
        ChangedBatch { text, ..changed }
    }

    fn print(&self, name: &str, text: &str) {
        if let (0, Some(database)) = (self.changed, &self.database) {
            print_stdout(format_args!("database {database}"));
        }
        print_stdout(format_args!("{name}:"));
        print_wrapped("    ", text);
    }

    /// The exit code is that of a failure if one batch was not changed.
    pub(in crate::commands) fn end(mut self) -> Result<ExitCode, Failure> {
        let code = self.failed.first().map_or(ExitCode::SUCCESS, Failure::exit_code);
        if let Some(results) = self.json {
            let mut document = json!({ "results": results });
            if let Some(database) = self.database {
                document["database"] = database.into();
            }
            print_json(&document);
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
