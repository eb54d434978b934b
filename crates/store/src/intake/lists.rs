//! Lists of batches that programs leave in the table `intake_lists`, in transactions of their own. These programs cannot
//! call the store, because they are written in another language.

use std::{slice, time::Duration};

use grid_batch_core::batches::{AddOutcome, BatchConflict, BatchLabel, FormatError, NewBatch};
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::{BatchError, BatchResult, ServiceId, Timestamp};
use grid_batch_support::{Job, Jobs, Next, Schedule};
use log::{debug, warn};

use super::add::add_lists;
use crate::sql::{
    Connection, Statement, Store, StoreError,
    groups::{GroupItem, GroupResult, commit_group},
    result_row,
    rows::{limit, storable},
};

/// How often the job looks for lists without a notification. SQLite has none.
const INTERVAL: Duration = Duration::from_secs(1);

/// How many lists of a service are added before those of the next service.
const LISTS_AT_ONCE: usize = 100;

/// The job that adds the batches of lists, each list as a whole and in one commit. The lists of a service are added in the
/// order of their ids. If the queue of the service is full, a list and those after it wait.
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
        let schedule = Schedule::every(INTERVAL).or_on(&store.list_trigger);
        let store = store.clone();
        jobs.repeat("intake lists", schedule, move || {
            let (mut next, mut failure) = (Next::AfterInterval, None);
            for service in store.services_with_lists()? {
                match store.add_lists_of(&service, &read, &stream) {
                    Ok(more) if more => next = Next::AtOnce,
                    Ok(_) => {}
                    Err(error @ BatchError::Unavailable(_)) => return Err(error),
                    // The other services are tried, too.
                    Err(error) => failure = Some(error),
                }
            }
            failure.map_or(Ok(next), Err)
        })
    }
}

/// What became of a list.
enum ListOutcome {
    /// Its batches are stored.
    Added,
    /// They never will be, for this reason.
    Refused(String),
    /// They cannot be stored now, for this reason. The lists after it wait, too.
    Waits(String),
    /// They cannot be stored before batches that they depend on, which may be in a later list.
    Incomplete(String),
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

/// A list with its batches, or the reason why it is refused.
#[derive(Clone, Copy)]
struct List<'a> {
    row: &'a ListRow,
    /// `None`: the program named no service.
    service: Option<&'a ServiceId>,
    batches: &'a Result<Vec<NewBatch>, String>,
}

impl GroupItem for List<'_> {
    fn services(&self) -> impl Iterator<Item = &ServiceId> {
        self.service.into_iter()
    }
}

impl ListRow {
    /// The batches of the list. They have no signer, because limits of signers are for clients of the HTTP interface.
    fn batches(
        &self,
        service: &ServiceId,
        read: impl Fn(&ServiceId, &[u8]) -> Result<Vec<NewBatch>, FormatError>,
    ) -> Result<Vec<NewBatch>, String> {
        let label: Option<BatchLabel> =
            self.label.as_deref().map(str::parse).transpose().map_err(text)?;
        let mut batches = read(service, &self.list).map_err(text)?;
        for batch in &mut batches {
            batch.label.clone_from(&label);
            batch.signer = None;
        }
        Ok(batches)
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

impl Store {
    /// The services with lists to add. They are texts of programs, which may not be ids.
    pub(crate) fn services_with_lists(&self) -> BatchResult<Vec<String>> {
        let statement = Statement::new(
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
        let service_id: Result<ServiceId, _> = service.parse().map_err(text);
        let (mut after, mut more) = (0, false);
        for _ in 0..LISTS_AT_ONCE {
            let Some(row) = self.next_list(service, after)? else { return Ok(false) };
            let batches = service_id.as_ref().map_err(String::clone);
            let batches = batches.and_then(|service| row.batches(service, &read));
            let list = List { row: &row, service: service_id.as_ref().ok(), batches: &batches };
            match self.add_list(list)? {
                ListOutcome::Added => publish(list, stream),
                ListOutcome::Refused(error) => warn!(
                    list = row.id, service, error = error.as_str();
                    "a list in the table intake_lists is refused; its row stays there until it is deleted"
                ),
                ListOutcome::Gone => {}
                ListOutcome::Incomplete(_) => {
                    after = row.id;
                    continue;
                }
                ListOutcome::Waits(_) => return Ok(false),
            }
            more = true;
        }
        Ok(more)
    }

    /// The first list of a service after this one.
    fn next_list(&self, service: &str, after: i64) -> Result<Option<ListRow>, StoreError> {
        let statement = Statement::new(
                "-- find_next_list
                 select l.id, l.list, l.label from intake_lists l
                 where l.service_id = ? and l.id > ? and l.refused_at is null order by l.id limit ?",
            )
            .text(service)
            .long(after)
            .long(limit(1));
        Ok(self.pools.read()?.load(&statement)?.into_iter().next())
    }

    /// Adds the batches of a list and removes it in one commit, or records why they are not added.
    fn add_list(&self, list: List<'_>) -> Result<ListOutcome, StoreError> {
        let GroupResult { mut outcomes, error } =
            commit_group(self, &[list], |connection, lists| {
                lists.iter().map(|list| self.add_on_connection(connection, *list)).collect()
            });
        match (outcomes.pop().flatten(), error) {
            (Some(outcome), _) => Ok(outcome),
            (None, Some(error @ StoreError::ServicesLocked { .. })) => {
                set_error(&mut *self.pools.write()?, list.row, &error.to_string())?;
                Ok(ListOutcome::Waits(error.to_string()))
            }
            (None, Some(error)) => Err(error),
            (None, None) => Ok(ListOutcome::Gone),
        }
    }

    fn add_on_connection(
        &self,
        connection: &mut Connection,
        List { row, batches, .. }: List<'_>,
    ) -> Result<ListOutcome, StoreError> {
        if !lock(connection, row)? {
            return Ok(ListOutcome::Gone);
        }
        let outcome = match batches {
            Ok(batches) => outcome(batches.len(), add_lists(self, connection, &[batches])?),
            Err(error) => ListOutcome::Refused(error.clone()),
        };
        match &outcome {
            ListOutcome::Added => remove(connection, row)?,
            ListOutcome::Refused(error) => refuse(connection, row, error, self.now())?,
            ListOutcome::Waits(error) | ListOutcome::Incomplete(error) => {
                set_error(connection, row, error)?;
            }
            ListOutcome::Gone => {}
        }
        Ok(outcome)
    }
}

/// What becomes of a list with this many batches, which were added with this result.
fn outcome(count: usize, added: Vec<Result<Vec<AddOutcome>, BatchConflict>>) -> ListOutcome {
    let Some(conflict) = added.into_iter().find_map(Result::err) else {
        return ListOutcome::Added;
    };
    let error = conflict.to_string();
    match conflict {
        BatchConflict::OtherBytes { .. }
        | BatchConflict::Transaction(_)
        | BatchConflict::AppliedBefore { .. } => ListOutcome::Refused(error),
        BatchConflict::QueueFull { limit, .. }
            if u64::try_from(count).is_ok_and(|it| it > limit) =>
        {
            ListOutcome::Refused(error)
        }
        BatchConflict::TooManyMissing { .. } | BatchConflict::TooManyIncomplete { .. } => {
            ListOutcome::Incomplete(error)
        }
        BatchConflict::ServiceLocked { .. }
        | BatchConflict::QueueFull { .. }
        | BatchConflict::QueueOfClientFull { .. }
        | BatchConflict::TooManyServicesOfSigner { .. }
        | BatchConflict::TooManyNewServices { .. } => ListOutcome::Waits(error),
    }
}

fn publish(list: List<'_>, stream: &impl RecordedSubscriber) {
    if let Some(service) = list.service {
        debug!(service:%; "the batches of a list in the table intake_lists are stored");
        stream.recorded(Recorded::Stored(slice::from_ref(service)));
    }
}

/// Whether no other instance has added or refused the list. Others wait until the end of this transaction.
fn lock(connection: &mut Connection, list: &ListRow) -> Result<bool, StoreError> {
    let locking = connection.dialect().locking("for update");
    let statement = Statement::new(format!(
        "-- lock_list
         select l.id from intake_lists l where l.id = ? and l.refused_at is null {locking}"
    ))
    .long(list.id);
    let found: Vec<i64> = connection.load_column(&statement)?;
    Ok(!found.is_empty())
}

fn remove(connection: &mut Connection, list: &ListRow) -> Result<(), StoreError> {
    let sql = "-- remove_list\n delete from intake_lists where id = ?";
    connection.execute(&Statement::new(sql).long(list.id)).map(drop)
}

fn refuse(
    connection: &mut Connection,
    list: &ListRow,
    error: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let sql = "-- refuse_list\n update intake_lists set error = ?, refused_at = ? where id = ?";
    let error = storable(error);
    let statement = Statement::new(sql).text(&error).long(now.as_micros()).long(list.id);
    connection.execute(&statement).map(drop)
}

/// Records why a list waits, unless that is recorded already.
fn set_error(connection: &mut Connection, list: &ListRow, error: &str) -> Result<(), StoreError> {
    let sql = "-- set_list_error
         update intake_lists set error = ? where id = ? and (error is null or error <> ?)";
    let error = storable(error);
    let statement = Statement::new(sql).text(&error).long(list.id).text(&error);
    connection.execute(&statement).map(drop)
}
