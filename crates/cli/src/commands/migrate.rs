//! `migrate`: brings the schema of a database up to date.

use std::process::ExitCode;

use clap::Args;
use grid_batch_service::Config;
use grid_batch_store::{SchemaVersion, Store};

use crate::commands::{
    failure::Failure,
    flags::{OfDatabase, SettingFlags},
    print::print_stdout,
};

/// Brings the schema of the database up to date, as a server does when it starts
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Changes nothing; the exit code is 1 if the schema is not that of this release
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    settings: SettingFlags<OfDatabase>,
}

pub(crate) fn run(args: &MigrateArgs) -> Result<ExitCode, Failure> {
    let config = args.settings.load()?;
    let before = version(&config)?;
    if args.check {
        print_stdout(describe(&before));
        return Ok(if before.is_current() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    Store::open(&config.general.database, config.store_options())?;
    let SchemaVersion { found, known, missing, .. } = before;
    print_stdout(match found {
        Some(_) if missing.is_empty() => format!("the schema is up to date: {known}"),
        Some(found) if found == known => {
            format!("the schema {known} has {} too", missing.join(", "))
        }
        Some(found) => format!("the schema was {found} and is {known}"),
        None => format!("the tables are created; the schema is {known}"),
    });
    Ok(ExitCode::SUCCESS)
}

pub(super) fn version(config: &Config) -> Result<SchemaVersion, Failure> {
    Ok(Store::schema_version(&config.general.database, &config.store_options())?)
}

pub(super) fn describe(version: &SchemaVersion) -> String {
    let SchemaVersion { found, known, later, missing, differences } = version;
    let Some(found) = found else {
        return format!("it has no tables yet; `grid-batch migrate` creates those of {known}");
    };
    if let Some(later) = later {
        format!("the schema {later} is of a later release; this one knows {known}")
    } else if !missing.is_empty() && found == known {
        let missing = missing.join(", ");
        format!("the schema is {found} without {missing}; `grid-batch migrate` adds these")
    } else if !missing.is_empty() {
        format!("the schema is {found}; `grid-batch migrate` brings it to {known}")
    } else if differences.is_empty() {
        format!("the schema is up to date: {known}")
    } else {
        format!(
            "the tables were made by an earlier build, and this release cannot upgrade them, although the version \
             is {known}: {}. Let that build finish the open batches, and start this release with an empty database",
            differences.join("; ")
        )
    }
}
