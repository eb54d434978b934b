use std::process::ExitCode;

use serde_json::{Value, json};

use super::print_wrapped;
use crate::commands::{
    arguments::{ActionArgs, DryRun},
    failure::Failure,
    print::{print_json, print_stderr, print_stdout},
    remote::{changed, field},
};

/// The characters of an id that are printed.
const SHORT_ID: usize = 32;

/// The result for each batch that a command is about.
pub(in crate::commands) struct Report {
    /// Its name; `None`: a running server was asked.
    database: Option<String>,
    /// Whether the command is about several batches.
    several: bool,
    run: DryRun,
    json: Option<Vec<Value>>,
    changed: usize,
    failed: Vec<Failure>,
}

impl Report {
    pub(in crate::commands) fn new(
        args: &ActionArgs,
        database: Option<&str>,
        batches: usize,
    ) -> Self {
        Self {
            database: database.map(str::to_owned),
            several: batches > 1,
            run: args.asked.run,
            json: args.output.json.then(Vec::new),
            changed: 0,
            failed: Vec::new(),
        }
    }

    /// Adds a batch that was changed, or would be, from the answer of the interface.
    pub(in crate::commands) fn add_done(&mut self, done: &Value) {
        let (service_id, batch_id) = (field(done, "service_id"), field(done, "batch_id"));
        let text = format!("{}{}", self.run.would(), changed(done));
        if self.json.is_none() {
            self.print(&format!("{service_id} {batch_id:.SHORT_ID$}"), &text);
        }
        self.add_json(done["service_id"].clone(), &batch_id, true, done["state"].clone(), &text);
        self.changed += 1;
    }

    /// Adds a batch that was not changed, as it was named.
    pub(in crate::commands) fn add_failed(&mut self, batch_id: &str, failure: Failure) {
        self.add_json(Value::Null, batch_id, false, Value::Null, &failure.to_string());
        let name = format!("{batch_id:.SHORT_ID$}");
        let place = self.database.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        self.failed.push(if self.several { failure.about(&name) } else { failure.at(&place) });
    }

    fn add_json(
        &mut self,
        service: Value,
        batch_id: &str,
        is_done: bool,
        state: Value,
        text: &str,
    ) {
        let dry_run = self.run.dry_run;
        if let Some(results) = &mut self.json {
            results.push(json!({
                "service_id": service,
                "batch_id": batch_id,
                "changed": is_done && !dry_run,
                "dry_run": dry_run,
                "state": state,
                "text": text,
            }));
        }
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
            print_json(&json!({ "results": results }));
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
