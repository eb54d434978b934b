//! `retention`: removes batches that ended long ago, or shows what would be removed.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use serde_json::{Value, json};

use crate::commands::{
    arguments::{DryRun, Output, SourceArgs, parse_duration},
    failure::Failure,
    print::print_stdout,
    remote::{self, Server, field},
};

/// Removes batches that ended long ago, with all that is stored about them; if a client sends a removed batch again, it
/// is submitted as a new one
#[derive(Debug, Args)]
pub(crate) struct RetentionArgs {
    /// How long ago the batches ended, such as 30d [default: retention.after]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    older_than: Option<Duration>,
    #[command(flatten)]
    run: DryRun,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    source: SourceArgs,
}

pub(crate) fn run(args: &RetentionArgs) -> Result<ExitCode, Failure> {
    let server = Server::to_act(&args.source)?;
    let (older_than, dry_run) = (args.older_than.as_ref().map(whole_seconds), args.run.dry_run);
    let fields = json!({ "older_than_seconds": older_than, "dry_run": dry_run });
    let mut removed = 0;
    let mut report = loop {
        let report = server.client.post("/v1/database/remove-ended", &[], &fields);
        let report = report.map_err(Server::failed)?;
        removed += report["batches"].as_u64().unwrap_or_default();
        if report["has_more"] != true {
            break report;
        }
    };
    report["batches"] = removed.into();
    Ok(args.output.show(&report, || print_stdout(in_words(&report, dry_run))))
}

/// Rounded up, so that no younger batch is removed.
fn whole_seconds(age: &Duration) -> u64 {
    age.as_secs() + u64::from(age.subsec_nanos() > 0)
}

fn in_words(report: &Value, dry_run: bool) -> String {
    let age = Duration::from_secs(report["older_than_seconds"].as_u64().unwrap_or_default());
    let (age, batches) = (humantime::format_duration(age), field(report, "batches"));
    let (bytes, ended) = (field(report, "bytes"), remote::age(report, "first_ended_at"));
    if !dry_run {
        format!("removed {batches} batches that ended more than {age} ago")
    } else if ended.is_empty() {
        format!("no batch ended more than {age} ago; nothing would be removed")
    } else {
        format!(
            "{batches} batches of {bytes} bytes ended more than {age} ago and would be removed; the first of them \
             ended {ended} ago"
        )
    }
}
