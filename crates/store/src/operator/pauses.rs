//! Pauses: no new submission of a service, or of any, starts.

use std::collections::HashMap;

use diesel::{
    QueryableByName,
    dsl::count,
    prelude::*,
    sql_types::{BigInt, Nullable},
};
use grid_batch_core::{
    ActionEffect, ActionOutcome, ActionRefusal, OperatorTarget, OperatorVerb, ServiceId,
    ServicePause, Timestamp,
};

use super::action_log::last_reason;

use crate::sql::{
    Connection, Statement, Store, StoreError,
    query::single_count,
    rows::{service_id, time},
    schema::{database_state, service_id_claims},
};

/// Begins or ends the pause of a service.
///
/// The row of the claim is locked, which a round that is being taken shares: so it is taken before, or it
/// sees the pause.
pub(super) fn change_pause(
    connection: &mut Connection,
    verb: OperatorVerb,
    service_id: &ServiceId,
    now: Timestamp,
) -> Result<ActionOutcome, StoreError> {
    let dialect = connection.dialect();
    let lock = dialect.locking("for update of c");
    let statement = Statement::new(
        dialect,
        format!(
            "-- lock_pause
             select c.paused_at from service_id_claims c where c.service_id = ? {lock}"
        ),
    )
    .text(service_id.as_str());
    let rows: Vec<PauseRow> = connection.load(&statement)?;
    let Some(PauseRow { paused_at }) = rows.into_iter().next() else {
        return Ok(ActionOutcome::NotFound);
    };
    if let Err(refusal) = check(verb, paused_at) {
        return Ok(ActionOutcome::Refused(refusal));
    }
    let statement = match verb {
        OperatorVerb::Pause => Statement::new(
            dialect,
            "-- pause
             update service_id_claims set paused_at = ? where service_id = ?",
        )
        .long(now.as_micros()),
        _ => Statement::new(
            dialect,
            "-- resume
             update service_id_claims set paused_at = null where service_id = ?",
        ),
    };
    connection.execute(&statement.text(service_id.as_str()))?;
    Ok(done(verb))
}

/// Begins or ends the pause of all services. Each instance has a copy, which it reads anyway.
pub(super) fn change_pause_of_all(
    connection: &mut Connection,
    verb: OperatorVerb,
    now: Timestamp,
) -> Result<ActionOutcome, StoreError> {
    let dialect = connection.dialect();
    if let Err(refusal) = check(verb, lock_pause_of_all(connection)?) {
        return Ok(ActionOutcome::Refused(refusal));
    }
    let (state, instances) = match verb {
        OperatorVerb::Pause => (
            Statement::new(
                dialect,
                "-- pause_all
                 update database_state set paused_at = ? where id = 1",
            )
            .long(now.as_micros()),
            Statement::new(dialect, "-- pause_instances\n update instances set paused = true"),
        ),
        _ => (
            Statement::new(
                dialect,
                "-- resume_all
                 update database_state set paused_at = null where id = 1",
            ),
            Statement::new(dialect, "-- resume_instances\n update instances set paused = false"),
        ),
    };
    connection.execute(&state)?;
    connection.execute(&instances)?;
    Ok(done(verb))
}

/// Since when all services are paused. Until the end of the transaction, no instance registers, and no other
/// transaction begins or ends such a pause or begins a drain.
pub(super) fn lock_pause_of_all(connection: &mut Connection) -> Result<Option<i64>, StoreError> {
    let dialect = connection.dialect();
    let lock = dialect.locking("for update of d");
    let statement = Statement::new(
        dialect,
        format!(
            "-- lock_pause_of_all
             select d.paused_at from database_state d where d.id = 1 {lock}"
        ),
    );
    let rows: Vec<PauseRow> = connection.load(&statement)?;
    Ok(rows.first().and_then(|row| row.paused_at))
}

fn check(verb: OperatorVerb, paused_at: Option<i64>) -> Result<(), ActionRefusal> {
    match (verb, paused_at) {
        (OperatorVerb::Pause, Some(_)) => Err(ActionRefusal::AlreadyPaused),
        (OperatorVerb::Resume, None) => Err(ActionRefusal::NotPaused),
        _ => Ok(()),
    }
}

fn done(verb: OperatorVerb) -> ActionOutcome {
    let (before, after) = match verb {
        OperatorVerb::Pause => ("running", "paused"),
        _ => ("paused", "running"),
    };
    ActionOutcome::Done(ActionEffect {
        before: before.to_owned(),
        after: after.to_owned(),
        state: None,
        next_waits: verb == OperatorVerb::Resume,
    })
}

/// Since when no new submission of a service starts: it is paused, or all are.
pub(super) fn paused_since(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<Timestamp>, StoreError> {
    let of_all = database_state::table.find(1).select(database_state::paused_at);
    let query = service_id_claims::table
        .filter(service_id_claims::service_id.eq(service_id.as_str()))
        .select((service_id_claims::paused_at, of_all.single_value()));
    let found: Vec<(Option<i64>, Option<i64>)> = connection.load_query("paused_since", query)?;
    let of_both = found.into_iter().flat_map(|(own, of_all)| [own, of_all]);
    Ok(time(of_both.flatten().min()))
}

/// Which of these services are paused, and why: by themselves, or because all are.
pub(crate) fn pauses(
    store: &Store,
    services: &[ServiceId],
) -> Result<HashMap<ServiceId, ServicePause>, StoreError> {
    let mut connection = store.pools.read()?;
    let pause = |connection: &mut Connection, target, since| -> Result<_, StoreError> {
        let reason = last_reason(connection, OperatorVerb::Pause, &target)?.unwrap_or_default();
        Ok(ServicePause { since: Timestamp::from_micros(since), reason })
    };
    let mut pauses = HashMap::new();
    if let Some(since) = all_paused(&mut connection)? {
        let of_all = pause(&mut connection, OperatorTarget::AllServices, since)?;
        pauses.extend(services.iter().map(|service_id| (service_id.clone(), of_all.clone())));
    }
    let names: Vec<&str> = services.iter().map(ServiceId::as_str).collect();
    let query = service_id_claims::table
        .filter(service_id_claims::service_id.eq_any(names))
        .filter(service_id_claims::paused_at.is_not_null())
        .select((service_id_claims::service_id, service_id_claims::paused_at));
    let own: Vec<(String, Option<i64>)> = connection.load_query("pauses", query)?;
    for (name, since) in own {
        let Some(since) = since else { continue };
        let service_id = service_id(&name)?;
        let target = OperatorTarget::Service(service_id.clone());
        let own = pause(&mut connection, target, since)?;
        pauses.insert(service_id, own);
    }
    Ok(pauses)
}

fn all_paused(connection: &mut Connection) -> Result<Option<i64>, StoreError> {
    let query = database_state::table.find(1).select(database_state::paused_at);
    let found: Vec<Option<i64>> = connection.load_query("all_paused", query)?;
    Ok(found.into_iter().flatten().next())
}

/// How many services are paused, and whether all are.
pub(super) fn count_paused(connection: &mut Connection) -> Result<(u64, bool), StoreError> {
    let services = service_id_claims::table
        .filter(service_id_claims::paused_at.is_not_null())
        .select(count(service_id_claims::service_id));
    let services: Vec<i64> = connection.load_query("paused_services", services)?;
    Ok((single_count(&services)?, all_paused(connection)?.is_some()))
}

#[derive(QueryableByName)]
struct PauseRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    paused_at: Option<i64>,
}
