//! Lists of batches that programs leave in the table `intake_lists`, in transactions of their own. These programs cannot
//! call the store, because they are written in another language.

use std::{slice, time::Duration};

use grid_batch_core::batches::{AddOutcome, BatchConflict, BatchLabel, FormatError, NewBatch};
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::{BatchResult, ServiceId, Timestamp};
use grid_batch_support::{Job, Jobs, Next, Schedule};
use log::{debug, warn};

use super::add::add_lists;
use crate::sql::{
    Connection, Store, StoreError,
    groups::LOCK_LIMIT,
    result_row,
    rows::{limit, storable},
};

/// How often the job looks for lists without a notification. SQLite has none.
const INTERVAL: Duration = Duration::from_secs(1);

/// How many lists of a service are added before those of the next service.
const LISTS_AT_ONCE: usize = 100;

/// The job that adds the batches of lists. The lists of a service are added in the order of their ids, each as a whole.
/// If a limit is reached, a list and those after it wait.
#[derive(Debug)]
pub struct IntakeLists;

impl IntakeLists {
    /// Starts the job. `read` makes the batches of a service from the bytes of a list, as
    /// [`BatchFormat`](grid_batch_core::batches::BatchFormat) does. Services with new batches are published to the stream.
    pub fn start(
        store: &Store,
        read: impl Fn(&ServiceId, &[u8]) -> Result<Vec<NewBatch>, FormatError> + Send + 'static,
        stream: impl RecordedSubscriber + 'static,
        jobs: &Jobs,
    ) -> Job {
        let schedule = Schedule::every(INTERVAL).or_on(&store.intake_lists);
        let store = store.clone();
        jobs.repeat("intake lists", schedule, move || {
            let mut next = Next::AfterInterval;
            for service in store.services_with_lists()? {
                if store.add_lists_of(&service, &read, &stream)? {
                    next = Next::AtOnce;
                }
            }
            Ok(next)
        })
    }
}

/// What became of a list.
#[derive(Debug, PartialEq, Eq)]
enum ListOutcome {
    /// Its batches are stored.
    Added,
    /// They never will be, for this reason.
    Refused(String),
    /// They cannot be stored now, for this reason.
    Waits(String),
    /// Another instance has added or refused it.
    Gone,
}

result_row! {
    struct ListRow {
        id: i64,
        list: Vec<u8>,
        label: Option<String>,
    }
}

impl ListRow {
    /// The batches, or why the list is refused.
    fn batches(
        &self,
        service: &str,
        read: impl Fn(&ServiceId, &[u8]) -> Result<Vec<NewBatch>, FormatError>,
    ) -> Result<Vec<NewBatch>, String> {
        let service_id: ServiceId = service.parse().map_err(text)?;
        let label: Option<BatchLabel> =
            self.label.as_deref().map(str::parse).transpose().map_err(text)?;
        let batches = read(&service_id, &self.list).map_err(text)?;
        Ok(batches.into_iter().map(|batch| NewBatch { label: label.clone(), ..batch }).collect())
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

impl Store {
    /// The services with lists to add. They are texts of programs, which may not be ids.
    pub(crate) fn services_with_lists(&self) -> BatchResult<Vec<String>> {
        let statement = self.statement(
            "-- find_services_with_lists
             select distinct l.service_id from intake_lists l where l.refused_at is null
             order by l.service_id",
        );
        let mut connection = self.pools.read()?;
        Ok(connection.load_column(&statement)?)
    }

    /// Adds the first lists of a service. Returns whether there may be more that can be added now.
    pub(crate) fn add_lists_of(
        &self,
        service: &str,
        read: impl Fn(&ServiceId, &[u8]) -> Result<Vec<NewBatch>, FormatError>,
        stream: &impl RecordedSubscriber,
    ) -> BatchResult<bool> {
        for _ in 0..LISTS_AT_ONCE {
            let Some(list) = self.first_list(service)? else { return Ok(false) };
            match self.add_list(&list, list.batches(service, &read))? {
                ListOutcome::Added => publish(service, stream),
                ListOutcome::Refused(error) => warn!(
                    list = list.id, service, error;
                    "a list in the table intake_lists is refused; its row stays there until it is deleted"
                ),
                ListOutcome::Gone => {}
                ListOutcome::Waits(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    fn first_list(&self, service: &str) -> Result<Option<ListRow>, StoreError> {
        let statement = self
            .statement(
                "-- find_first_list
                 select l.id, l.list, l.label from intake_lists l
                 where l.service_id = ? and l.refused_at is null order by l.id limit ?",
            )
            .text(service)
            .long(limit(1));
        Ok(self.pools.read()?.load(&statement)?.into_iter().next())
    }

    /// Adds the batches of a list and removes it in one transaction, or records why they are not added.
    fn add_list(
        &self,
        list: &ListRow,
        batches: Result<Vec<NewBatch>, String>,
    ) -> Result<ListOutcome, StoreError> {
        let mut connection = self.pools.write()?;
        let added = connection.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
            if !lock(connection, list)? {
                return Ok(ListOutcome::Gone);
            }
            let outcome = match batches {
                Ok(batches) => outcome(add_lists(self, connection, &[&batches])?),
                Err(error) => ListOutcome::Refused(error),
            };
            match &outcome {
                ListOutcome::Added => remove(connection, list)?,
                ListOutcome::Refused(error) => refuse(connection, list, error, self.now())?,
                ListOutcome::Waits(error) => set_error(connection, list, error)?,
                ListOutcome::Gone => {}
            }
            Ok(outcome)
        });
        drop(connection);
        self.scheduler.events().committed();
        match added {
            // Another transaction keeps a row of the service locked.
            Err(error @ StoreError::Locked { .. }) => Ok(ListOutcome::Waits(error.to_string())),
            added => added,
        }
    }
}

/// What becomes of a list whose batches were added with this result.
fn outcome(added: Vec<Result<Vec<AddOutcome>, BatchConflict>>) -> ListOutcome {
    let Some(conflict) = added.into_iter().find_map(Result::err) else {
        return ListOutcome::Added;
    };
    let error = conflict.to_string();
    match conflict {
        BatchConflict::OtherBytes { .. }
        | BatchConflict::Transaction(_)
        | BatchConflict::AppliedBefore { .. } => ListOutcome::Refused(error),
        BatchConflict::ServiceLocked { .. }
        | BatchConflict::QueueFull { .. }
        | BatchConflict::QueueOfClientFull { .. }
        | BatchConflict::TooManyMissing { .. }
        | BatchConflict::TooManyIncomplete { .. }
        | BatchConflict::TooManyServicesOfSigner { .. }
        | BatchConflict::TooManyNewServices { .. } => ListOutcome::Waits(error),
    }
}

fn publish(service: &str, stream: &impl RecordedSubscriber) {
    debug!(service; "the batches of a list in the table intake_lists are stored");
    if let Ok(service_id) = service.parse() {
        stream.recorded(Recorded::Stored(slice::from_ref(&service_id)));
    }
}

/// Whether no other instance has added or refused the list. Others wait until the end of this transaction.
fn lock(connection: &mut Connection, list: &ListRow) -> Result<bool, StoreError> {
    let locking = connection.dialect().locking("for update");
    let statement = connection
        .statement(format!(
            "-- lock_list
             select l.id from intake_lists l where l.id = ? and l.refused_at is null {locking}"
        ))
        .long(list.id);
    let found: Vec<i64> = connection.load_column(&statement)?;
    Ok(!found.is_empty())
}

fn remove(connection: &mut Connection, list: &ListRow) -> Result<(), StoreError> {
    let sql = "-- remove_list\n delete from intake_lists where id = ?";
    connection.execute(&connection.statement(sql).long(list.id)).map(drop)
}

fn refuse(
    connection: &mut Connection,
    list: &ListRow,
    error: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let sql = "-- refuse_list\n update intake_lists set error = ?, refused_at = ? where id = ?";
    let error = storable(error);
    let statement = connection.statement(sql).text(&error).long(now.as_micros()).long(list.id);
    connection.execute(&statement).map(drop)
}

/// Records why a list waits, unless that is recorded already.
fn set_error(connection: &mut Connection, list: &ListRow, error: &str) -> Result<(), StoreError> {
    let sql = "-- set_list_error
         update intake_lists set error = ? where id = ? and (error is null or error <> ?)";
    let error = storable(error);
    let statement = connection.statement(sql).text(&error).long(list.id).text(&error);
    connection.execute(&statement).map(drop)
}
