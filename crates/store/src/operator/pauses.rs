//! Pauses, during which no new submission of a service, or of any service, starts. While the nodes of a service have
//! different states, the instance that claims it also begins and ends its own pauses.

use std::collections::HashMap;

use diesel::{dsl::count, prelude::*};
use grid_batch_core::claims::StatePauseStore;
use grid_batch_core::operators::{
    ActionEffect, ActionOutcome, ActionRefusal, OperatorTarget, OperatorVerb,
};
use grid_batch_core::queries::ServicePause;
use grid_batch_core::{BatchResult, ServiceId, Timestamp};

use crate::{
    action_log::last_action,
    sql::{
        ClaimStore, Connection, Statement, Store, StoreError,
        query::single_count,
        rows::{service_id, time},
        schema::{database_state, service_id_claims},
    },
};

/// Begins or ends the pause of a service.
///
/// The row of the claim is locked exclusively, and a round locks it in share mode. A round is therefore either taken
/// before or sees the pause.
pub(super) fn change_pause(
    connection: &mut Connection,
    verb: OperatorVerb,
    service_id: &ServiceId,
    now: Timestamp,
) -> Result<ActionOutcome, StoreError> {
    let lock = connection.dialect().locking("for update of c");
    let statement = Statement::new(format!(
        "-- lock_pause
         select c.paused_at, c.states_differ_at from service_id_claims c
         where c.service_id = ? {lock}"
    ))
    .text(service_id.as_str());
    let rows: Vec<(Option<i64>, Option<i64>)> = connection.load_tuples(&statement)?;
    let Some((paused_at, differ_at)) = rows.into_iter().next() else {
        return Ok(ActionOutcome::NotFound);
    };
    if let Err(refusal) = check(verb, by_operator(paused_at, differ_at)) {
        return Ok(ActionOutcome::Refused(match (refusal, differ_at) {
            (ActionRefusal::NotPaused, Some(_)) => ActionRefusal::StatesDiffer,
            (ActionRefusal::NotPaused, None) if all_paused(connection)?.is_some() => {
                ActionRefusal::AllPaused
            }
            _ => refusal,
        }));
    }
    let statement = match verb {
        OperatorVerb::Pause => Statement::new(
            "-- pause
             update service_id_claims set paused_at = ? where service_id = ?",
        )
        // The two times together show whether an operator has paused the service.
        .long(now.as_micros().max(differ_at.map_or(i64::MIN, |at| at.saturating_add(1)))),
        _ => Statement::new(
            "-- resume
             update service_id_claims set paused_at = states_differ_at where service_id = ?",
        ),
    };
    connection.execute(&statement.text(service_id.as_str()))?;
    let mut outcome = done(verb);
    if differ_at.is_some()
        && let ActionOutcome::Done(effect) = &mut outcome
    {
        effect.next_waits = false;
        let what = match verb {
            OperatorVerb::Pause => &mut effect.before,
            _ => &mut effect.after,
        };
        *what = format!("paused: {}", ServicePause::DIFFERENT_STATES);
    }
    Ok(outcome)
}

/// Begins or ends the pause of all services. The row of each instance has a copy of it, because an instance reads its
/// row anyway.
pub(super) fn change_pause_of_all(
    connection: &mut Connection,
    verb: OperatorVerb,
    now: Timestamp,
) -> Result<ActionOutcome, StoreError> {
    if let Err(refusal) = check(verb, lock_pause_of_all(connection)?) {
        return Ok(ActionOutcome::Refused(refusal));
    }
    lock_instances(connection)?;
    let (state, instances) = match verb {
        OperatorVerb::Pause => (
            Statement::new(
                "-- pause_all
                 update database_state set paused_at = ? where id = 1",
            )
            .long(now.as_micros()),
            Statement::new("-- pause_instances\n update instances set paused = true"),
        ),
        _ => (
            Statement::new(
                "-- resume_all
                 update database_state set paused_at = null where id = 1",
            ),
            Statement::new("-- resume_instances\n update instances set paused = false"),
        ),
    };
    connection.execute(&state)?;
    connection.execute(&instances)?;
    Ok(done(verb))
}

/// Waits for the rounds that are being taken, each of which has locked the row of its instance in share mode.
fn lock_instances(connection: &mut Connection) -> Result<(), StoreError> {
    let lock = connection.dialect().locking("for update of i");
    let statement = Statement::new(format!(
        "-- lock_instances
         select i.paused from instances i order by i.instance_id {lock}"
    ));
    connection.execute(&statement).map(drop)
}

/// Since when all services are paused. Until the end of the transaction, no instance registers, and no other
/// transaction begins or ends such a pause or begins a drain.
pub(super) fn lock_pause_of_all(connection: &mut Connection) -> Result<Option<i64>, StoreError> {
    let lock = connection.dialect().locking("for update of d");
    let statement = Statement::new(format!(
        "-- lock_pause_of_all
         select d.paused_at from database_state d where d.id = 1 {lock}"
    ));
    let paused_at: Vec<Option<i64>> = connection.load_column(&statement)?;
    Ok(paused_at.into_iter().flatten().next())
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

/// Since when no new submission of a service starts, because it is paused or all are.
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

impl Store {
    /// Which of these services are paused, individually or because all are, and why.
    pub fn pauses(
        &self,
        services: &[ServiceId],
    ) -> Result<HashMap<ServiceId, ServicePause>, StoreError> {
        let mut connection = self.pools.read()?;
        let pause = |connection: &mut Connection, target, since| -> Result<_, StoreError> {
            let (operator, reason) = last_action(connection, OperatorVerb::Pause, &target)?
                .unwrap_or_else(|| ("an operator".to_owned(), None));
            Ok(ServicePause {
                since: Timestamp::from_micros(since),
                reason: reason.unwrap_or_default(),
                operator: Some(operator),
                of_all: target == OperatorTarget::AllServices,
                states_differ: false,
            })
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
            .select((
                service_id_claims::service_id,
                service_id_claims::paused_at,
                service_id_claims::states_differ_at,
            ));
        let own: Vec<(String, Option<i64>, Option<i64>)> =
            connection.load_query("pauses", query)?;
        for (name, paused_at, states_differ_at) in own {
            let service_id = service_id(&name)?;
            let by_operator = match by_operator(paused_at, states_differ_at) {
                Some(since) => {
                    let target = OperatorTarget::Service(service_id.clone());
                    Some(pause(&mut connection, target, since)?)
                }
                None => pauses.get(&service_id).cloned(),
            };
            let both = match states_differ_at {
                Some(since) => Some(with_different_states(by_operator, since)),
                None => by_operator,
            };
            pauses.extend(both.map(|pause| (service_id, pause)));
        }
        Ok(pauses)
    }
}

/// The pause of a service whose nodes have had different states since `since`.
fn with_different_states(by_operator: Option<ServicePause>, since: i64) -> ServicePause {
    let differ = ServicePause::DIFFERENT_STATES;
    let (operator, of_all, reason) = match by_operator {
        Some(ServicePause { operator: Some(operator), of_all, reason, .. }) => {
            let reason = format!("{differ}; and by {operator}: {reason}");
            (Some(operator), of_all, reason)
        }
        _ => (None, false, differ.to_owned()),
    };
    let since = Timestamp::from_micros(since);
    ServicePause { since, reason, operator, of_all, states_differ: true }
}

fn all_paused(connection: &mut Connection) -> Result<Option<i64>, StoreError> {
    let query = database_state::table.find(1).select(database_state::paused_at);
    let found: Vec<Option<i64>> = connection.load_query("all_paused", query)?;
    Ok(found.into_iter().flatten().next())
}

/// How many services operators have paused individually, and whether all are paused.
pub(super) fn count_paused(connection: &mut Connection) -> Result<(u64, bool), StoreError> {
    let services = service_id_claims::table
        .filter(service_id_claims::paused_at.is_not_null())
        .filter(
            service_id_claims::states_differ_at
                .is_null()
                .or(service_id_claims::paused_at.ne(service_id_claims::states_differ_at)),
        )
        .select(count(service_id_claims::service_id));
    let services = single_count(&connection.load_query("paused_services", services)?)?;
    Ok((services, all_paused(connection)?.is_some()))
}

/// Since when an operator has paused a service.
fn by_operator(paused_at: Option<i64>, states_differ_at: Option<i64>) -> Option<i64> {
    paused_at.filter(|at| states_differ_at != Some(*at))
}

impl StatePauseStore for ClaimStore {
    fn services_with_different_states(&self) -> BatchResult<Vec<ServiceId>> {
        // There are few such services, so this must not use the index of claims.
        let query = service_id_claims::table
            .filter(service_id_claims::states_differ_at.is_not_null())
            .select((service_id_claims::service_id, service_id_claims::claimant));
        let found: Vec<(String, Option<String>)> =
            self.store.pools.read()?.load_query("services_with_different_states", query)?;
        let instance = self.instance();
        let is_own = |claimant: &Option<String>| claimant.as_deref() == Some(instance.as_str());
        let own = found.iter().filter(|(_, claimant)| is_own(claimant));
        Ok(own.map(|(name, _)| service_id(name)).collect::<Result<_, _>>()?)
    }

    /// The pause is independent of an operator's. While it lasts, no batch of the service is taken, and operators cannot
    /// cause one to be submitted again.
    fn set_states_differ(&self, service_id: &ServiceId, differ: bool) -> BatchResult<bool> {
        let statement = if differ {
            let now = self.store.now().as_micros();
            Statement::new(
                "-- begin_different_states
                 update service_id_claims
                 set states_differ_at = case when paused_at = ? then paused_at + 1 else ? end,
                     paused_at = coalesce(paused_at, ?)
                 where service_id = ? and coalesce(claimant, null) = ? and states_differ_at is null",
            )
            .long(now)
            .long(now)
            .long(now)
        } else {
            Statement::new(
                "-- end_different_states
                 update service_id_claims
                 set paused_at = nullif(paused_at, states_differ_at), states_differ_at = null
                 where service_id = ? and coalesce(claimant, null) = ? and states_differ_at is not null",
            )
        };
        let instance = self.instance();
        let statement = statement.text(service_id.as_str()).text(instance.as_str());
        Ok(self.store.pools.write()?.execute(&statement)? > 0)
    }
}

/// Whether the service is paused because its nodes have different states.
pub(super) fn states_differ(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<bool, StoreError> {
    let query = service_id_claims::table
        .filter(service_id_claims::service_id.eq(service_id.as_str()))
        .select(service_id_claims::states_differ_at);
    let found: Vec<Option<i64>> = connection.load_query("states_differ", query)?;
    Ok(found.into_iter().flatten().next().is_some())
}

/// How many services are paused because their nodes have different states.
pub(super) fn count_different_states(connection: &mut Connection) -> Result<u64, StoreError> {
    let query = service_id_claims::table
        .filter(service_id_claims::states_differ_at.is_not_null())
        .select(count(service_id_claims::service_id));
    single_count(&connection.load_query("count_different_states", query)?)
}
