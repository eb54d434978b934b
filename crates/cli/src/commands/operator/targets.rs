//! Which batches a command is about.

use std::fmt::Write as _;

use clap::ArgMatches;
use grid_batch_core::{BatchQueryStore, ItemId, ItemIdPrefix, StoredBatch};
use grid_batch_withdrawals::keep_latest_generation;

use super::{Database, NamedBatches, ServiceSelection};
use crate::commands::failure::Failure;

/// How many batches with the same first characters are examined.
const MAX_FOUND: usize = 10_000;
/// How many of them an error names.
const MAX_NAMED: usize = 5;

/// A batch that a command is about.
pub(in crate::commands) struct Target {
    pub(in crate::commands) batch: StoredBatch,
    /// The attempt that was given for it.
    pub(in crate::commands) attempt: Option<u32>,
}

/// The beginning of an id by which a person names the batch. A withdrawal has this id.
pub(in crate::commands) fn short_id(id: &ItemId) -> String {
    format!("{id:.32}")
}

/// Finds each batch that the arguments name, once. Fails if one of them is not exactly one batch.
pub(in crate::commands) fn find_targets(
    database: &Database,
    matches: &ArgMatches,
) -> Result<Vec<Target>, Failure> {
    let NamedBatches { service, names } = NamedBatches::of(matches)?;
    let service = service.unwrap_or_else(ServiceSelection::any);
    let mut targets: Vec<Target> = Vec::new();
    for name in names {
        let batch = find_one(database, &service, &name.prefix)?;
        let key = (&batch.service_id, batch.batch_id);
        if !targets.iter().any(|found| (&found.batch.service_id, found.batch.batch_id) == key) {
            targets.push(Target { batch, attempt: name.attempt });
        }
    }
    Ok(targets)
}

fn find_one(
    database: &Database,
    service: &ServiceSelection,
    prefix: &ItemIdPrefix,
) -> Result<StoredBatch, Failure> {
    let mut found = database.store.find_by_prefix(prefix, service.one(), MAX_FOUND)?;
    found.retain(|batch| service.matches(&batch.service_id));
    prefix.prefer_whole(&mut found);
    keep_latest_generation(&mut found);
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::new(format!(
            "the service has no such batch: {service} {prefix:.32}, in {}",
            database.name()
        ))),
        _ => Err(ambiguous(prefix, &found)),
    }
}

fn ambiguous(prefix: &ItemIdPrefix, found: &[StoredBatch]) -> Failure {
    let characters = characters_that_differ(found);
    let mut named = String::new();
    for batch in found.iter().take(MAX_NAMED) {
        // Writing to a string does not fail.
        let _ = write!(named, ", {} {:.characters$}", batch.service_id, batch.batch_id);
    }
    if found.len() > MAX_NAMED {
        named.push_str(", ...");
    }
    Failure::new(format!(
        "{prefix:.32} names {} batches; give more characters or another service{}",
        found.len(),
        named.replacen(',', ":", 1)
    ))
}

/// How many characters tell the ids from each other. Ids that are equal belong to several services.
fn characters_that_differ(found: &[StoredBatch]) -> usize {
    let ids: Vec<String> = found.iter().map(|batch| batch.batch_id.to_string()).collect();
    let common = |pair: &[String]| {
        let same = pair[0].chars().zip(pair[1].chars()).take_while(|(a, b)| a == b);
        same.count()
    };
    let differing = ids.windows(2).map(common).filter(|same| *same < ItemId::LONGEST);
    (differing.max().unwrap_or(0) + 2).max(12)
}
