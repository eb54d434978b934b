use std::process::ExitCode;

use serde_json::{Value, json};

use super::print_wrapped;
use crate::commands::{
    arguments::ActionArgs,
    failure::Failure,
    print::{print_json, print_stderr, print_stdout},
    remote::{changed, field},
};

/// The characters of an id that are printed.
const SHORT_ID: usize = 32;

/// The result for each batch that a command is about.
pub(in crate::commands) struct Report<'a> {
    args: &'a ActionArgs,
    /// Its name; `None`: a running server was asked.
    database: Option<&'a str>,
    /// Whether the command is about several batches.
    several: bool,
    /// Each batch for programs.
    results: Vec<Value>,
    changed: usize,
    failed: Vec<Failure>,
}

impl<'a> Report<'a> {
    pub(in crate::commands) fn new(
        args: &'a ActionArgs,
        database: Option<&'a str>,
        batches: usize,
    ) -> Self {
        let (results, failed) = (Vec::new(), Vec::new());
        Self { args, database, several: batches > 1, results, changed: 0, failed }
    }

    /// Adds a batch that was changed, or would be, from the answer of the interface.
    pub(in crate::commands) fn add_done(&mut self, done: &Value) {
        let (service_id, batch_id) = (field(done, "service_id"), field(done, "batch_id"));
        let text = format!("{}{}", self.args.asked.run.would(), changed(done));
        if !self.args.output.json {
            self.print(&format!("{service_id} {batch_id:.SHORT_ID$}"), &text);
        }
        self.add(&done["service_id"], &batch_id, true, &done["state"], &text);
        self.changed += 1;
    }

    /// Adds a batch that was not changed, as it was named.
    pub(in crate::commands) fn add_failed(&mut self, batch_id: &str, failure: Failure) {
        self.add(&Value::Null, batch_id, false, &Value::Null, &failure.to_string());
        let name = format!("{batch_id:.SHORT_ID$}");
        let place = self.database.map(|name| format!(" ({name})")).unwrap_or_default();
        self.failed.push(if self.several { failure.about(&name) } else { failure.at(&place) });
    }

    fn add(&mut self, service: &Value, id: &str, is_done: bool, state: &Value, text: &str) {
        let dry_run = self.args.asked.is_dry_run();
        self.results.push(json!({
            "service_id": service,
            "batch_id": id,
            "changed": is_done && !dry_run,
            "dry_run": dry_run,
            "state": state,
            "text": text,
        }));
    }

    fn print(&self, name: &str, text: &str) {
        if let (0, Some(database)) = (self.changed, self.database) {
            print_stdout(format_args!("database {database}"));
        }
        print_stdout(format_args!("{name}:"));
        print_wrapped("    ", text);
    }

    /// The exit code is that of a failure if one batch was not changed.
    pub(in crate::commands) fn end(mut self) -> Result<ExitCode, Failure> {
        let code = self.failed.first().map_or(ExitCode::SUCCESS, Failure::exit_code);
        if self.args.output.json {
            print_json(&json!({ "results": self.results }));
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
