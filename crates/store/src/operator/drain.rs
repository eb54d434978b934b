//! Drains: an instance takes nothing more, and gives up its services.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Text},
};
use grid_batch_core::{ActionEffect, ActionOutcome, ActionRefusal, InstanceId, OperatorVerb};

use super::pauses::lock_pause_of_all;
use crate::sql::{Connection, Statement, StoreError, rows::confirmed_ledger};

/// Begins or ends the drain of a running instance, which is named by its id or its name.
///
/// The instance starts no submission after that, and releases its services when it renews its lease.
pub(super) fn change_drain(
    connection: &mut Connection,
    verb: OperatorVerb,
    instance: &InstanceId,
) -> Result<ActionOutcome, StoreError> {
    // Two instances that are drained at once would each count the other. A round shares the row of its
    // instance: it is taken before, or it sees the drain.
    lock_pause_of_all(connection)?;
    let dialect = connection.dialect();
    let clock = dialect.clock();
    let lock = dialect.locking("for update of i");
    let statement = Statement::new(
        dialect,
        format!(
            "-- lock_instance
             select i.instance_id, i.draining from instances i
             where (i.instance_id = ? or i.name = ?) and i.expiry_2 > {clock} {lock}"
        ),
    )
    .text(instance.as_str())
    .text(instance.as_str());
    let rows: Vec<InstanceRow> = connection.load(&statement)?;
    let Some(InstanceRow { instance_id, draining }) = rows.into_iter().next() else {
        return Ok(ActionOutcome::NotFound);
    };
    let instance = InstanceId::new(instance_id);
    let begins = verb == OperatorVerb::Drain;
    let refusal = match (begins, draining) {
        (true, true) => Some(ActionRefusal::AlreadyDraining),
        (false, false) => Some(ActionRefusal::NotDraining),
        (true, false) if !has_other(connection, &instance)? => Some(ActionRefusal::LastInstance),
        _ => None,
    };
    if let Some(refusal) = refusal {
        return Ok(ActionOutcome::Refused(refusal));
    }
    set_draining(connection, &instance, begins)?;
    let (before, after) = if begins { ("running", "draining") } else { ("draining", "running") };
    Ok(ActionOutcome::Done(ActionEffect {
        before: before.to_owned(),
        after: after.to_owned(),
        state: None,
        next_waits: false,
    }))
}

/// Begins or ends the drain of an instance.
pub(crate) fn set_draining(
    connection: &mut Connection,
    instance: &InstanceId,
    draining: bool,
) -> Result<(), StoreError> {
    let statement = connection.statement(if draining {
        "-- begin_drain
         update instances set draining = true where instance_id = ?"
    } else {
        "-- end_drain
         update instances set draining = false where instance_id = ?"
    });
    connection.execute(&statement.text(instance.as_str())).map(drop)
}

/// Whether another instance could take the services.
fn has_other(connection: &mut Connection, instance: &InstanceId) -> Result<bool, StoreError> {
    let dialect = connection.dialect();
    let (clock, confirmed) = (dialect.clock(), confirmed_ledger("i"));
    let statement = Statement::new(
        dialect,
        format!(
            "-- count_other_instances
             select count(*) as instances from instances i
             where i.instance_id <> ? and i.expiry_1 > {clock} and not i.draining and {confirmed}"
        ),
    )
    .text(instance.as_str());
    let rows: Vec<CountRow> = connection.load(&statement)?;
    Ok(rows.iter().any(|row| row.instances > 0))
}

#[derive(QueryableByName)]
struct InstanceRow {
    #[diesel(sql_type = Text)]
    instance_id: String,
    #[diesel(sql_type = Bool)]
    draining: bool,
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    instances: i64,
}
