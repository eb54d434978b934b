//! `retention`: removes batches that ended long ago, or shows what would be removed.

use std::{process::ExitCode, time::Duration};

use clap::{Arg, ArgAction, ArgMatches, Command};
use grid_batch_core::{Clock, Removable, RetentionCursor, Timestamp};
use grid_batch_store::Store;

use crate::commands::{failure::Failure, flags, operator::Database, print::print_stdout};

/// How many batches one transaction examines.
const STEP: usize = 200;

pub(crate) fn command() -> Command {
    Command::new("retention")
        .about(
            "Removes batches that ended long ago, with all that is stored about them; a removed batch \
             that a client sends again is a new one and is submitted",
        )
        .arg(
            Arg::new("older-than")
                .long("older-than")
                .value_name("TIME")
                .value_parser(|text: &str| humantime::parse_duration(text))
                .help("How long ago the batches ended, such as 30d [default: retention.after]"),
        )
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Only show what would be removed"),
        )
        .args(flags::of_database())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let age = age(matches)?;
    let only_counts = matches.get_flag("dry-run");
    let database =
        if only_counts { Database::to_read(matches)? } else { Database::to_write(matches)? };
    let (store, before) = (&database.store, database.now().minus(age));
    let age = humantime::format_duration(age);
    if only_counts {
        print_removable(store, before, &age)?;
    } else {
        let removed = remove(store, before)?;
        print_stdout(format_args!("removed {removed} batches that ended more than {age} ago"));
    }
    Ok(ExitCode::SUCCESS)
}

/// How long ago the batches must have ended.
fn age(matches: &ArgMatches) -> Result<Duration, Failure> {
    let config = flags::load(matches)?;
    let Some(age) = matches.get_one::<Duration>("older-than") else {
        return config.retention.after.ok_or_else(|| {
            Failure::new("retention.after is not set; say how old with --older-than, such as 30d")
        });
    };
    let limit = config.retention_limit();
    if *age <= limit {
        return Err(Failure::new(format!(
            "--older-than is {}; it must be more than ledger.late_arrival_limit and poll.give_up_after, {}, \
             because the ledger may still report younger batches",
            humantime::format_duration(*age),
            humantime::format_duration(limit)
        )));
    }
    Ok(*age)
}

fn remove(store: &Store, before: Timestamp) -> Result<usize, Failure> {
    let (mut removed, mut from) = (0, None);
    loop {
        let step = store.remove_ended(before, from, STEP)?;
        removed += step.batches;
        from = step.next;
        if from.is_none() {
            return Ok(removed);
        }
    }
}

fn print_removable(
    store: &Store,
    before: Timestamp,
    age: &humantime::FormattedDuration,
) -> Result<(), Failure> {
    let found = count_removable(store, before)?;
    let Some(oldest) = found.oldest_end else {
        print_stdout(format_args!("no batch ended more than {age} ago; nothing would be removed"));
        return Ok(());
    };
    let ended = Duration::from_secs(store.clock().now().since(oldest).as_secs());
    let ended = humantime::format_duration(ended);
    print_stdout(format_args!(
        "{} batches of {} bytes ended more than {age} ago and would be removed; the first of them ended \
         {ended} ago",
        found.batches, found.bytes
    ));
    Ok(())
}

fn count_removable(store: &Store, before: Timestamp) -> Result<Removable, Failure> {
    let mut all = Removable { batches: 0, bytes: 0, oldest_end: None, next: None };
    let mut from: Option<RetentionCursor> = None;
    loop {
        let step = store.count_removable(before, from, STEP)?;
        all.batches += step.batches;
        all.bytes += step.bytes;
        all.oldest_end = all.oldest_end.into_iter().chain(step.oldest_end).min();
        from = step.next;
        if from.is_none() {
            return Ok(all);
        }
    }
}
