use diesel::prelude::*;
use grid_batch_core::Timestamp;
use grid_batch_core::claims::InstanceId;
use grid_batch_core::operators::{
    ActionEffect, ActionFilter, ActionSource, Operator, OperatorAction, OperatorTarget,
    OperatorVerb, RecordedAction,
};
use grid_batch_core::webhooks::WebhookId;

use crate::sql::{
    Connection, Rows, Store, StoreError,
    rows::{batch_id, limit, service_id, storable},
    schema::operator_actions,
};

/// Logs an action in the transaction that does it.
pub(crate) fn record_action(
    connection: &mut Connection,
    action: &OperatorAction,
    effect: &ActionEffect,
    now: Timestamp,
) -> Result<(), StoreError> {
    record_actions(connection, action, &[(&action.target, effect)], now)
}

/// Logs the effect of an action on each of these targets, in the transaction that does it.
pub(crate) fn record_actions(
    connection: &mut Connection,
    action: &OperatorAction,
    done: &[(&OperatorTarget, &ActionEffect)],
    now: Timestamp,
) -> Result<(), StoreError> {
    if done.is_empty() || !cfg!(feature = "action-log") {
        return Ok(());
    }
    let OperatorAction { verb, reason, operator, .. } = action;
    let (name, reason) = (storable(&operator.name), reason.as_deref().map(storable));
    let acting = operator.instance.as_ref().map(InstanceId::as_str);
    let each = || done.iter().map(|(target, _)| *target);
    let same = || done.iter().map(drop);
    let other_ids: Vec<Option<String>> = each().map(OperatorTarget::other_id).collect();
    connection.execute_rows(
        "-- insert_operator_actions
         insert into operator_actions (
             acted_at, operator, source, instance, verb, target, service_id, batch_id, attempt,
             target_instance, target_id, reason, state_before, state_after)
         select x.acted_at, x.operator, x.source, x.instance, x.verb, x.target, x.service_id,
             x.batch_id, x.attempt, x.target_instance, x.target_id, x.reason, x.state_before,
             x.state_after
         from {x}",
        Rows::default()
            .long("acted_at", same().map(|()| now.as_micros()))
            .text("operator", same().map(|()| &*name))
            .text("source", same().map(|()| operator.source.as_str()))
            .optional_text("instance", same().map(|()| acting))
            .text("verb", same().map(|()| verb.as_str()))
            .text("target", each().map(|it| it.kind()))
            .optional_text("service_id", each().map(|it| it.service_id().map(|id| id.as_str())))
            .optional_bytes("batch_id", each().map(|it| Some(it.batch()?.0.as_bytes())))
            .optional_long("attempt", each().map(|it| Some(i64::from(it.batch()?.1?))))
            .optional_text("target_instance", each().map(|it| Some(it.instance()?.as_str())))
            .optional_text("target_id", other_ids.iter().map(Option::as_deref))
            .optional_text("reason", same().map(|()| reason.as_deref()))
            .text("state_before", done.iter().map(|(_, effect)| effect.before.as_str()))
            .text("state_after", done.iter().map(|(_, effect)| effect.after.as_str())),
    )
}

/// Up to `count` actions before the one with this number, the latest first.
pub(crate) fn actions(
    store: &Store,
    filter: &ActionFilter,
    before: Option<i64>,
    count: usize,
) -> Result<Vec<RecordedAction>, StoreError> {
    if !cfg!(feature = "action-log") {
        return Ok(Vec::new());
    }
    let mut query = operator_actions::table
        .filter(operator_actions::id.lt(before.unwrap_or(i64::MAX)))
        .order_by(operator_actions::id.desc())
        .limit(limit(count))
        .select(ActionRow::as_select())
        .into_boxed();
    if let Some(operator) = &filter.operator {
        query = query.filter(operator_actions::operator.eq(operator.clone()));
    }
    if let Some(verb) = filter.verb {
        query = query.filter(operator_actions::verb.eq(verb.as_str()));
    }
    if let Some(service_id) = &filter.service_id {
        query = query.filter(operator_actions::service_id.eq(service_id.as_str().to_owned()));
    }
    if let Some(batch_id) = &filter.batch_id {
        query = query.filter(operator_actions::batch_id.eq(batch_id.as_bytes().to_vec()));
    }
    let rows: Vec<ActionRow> = store.pools.read()?.load_query("operator_actions", query)?;
    rows.into_iter().map(ActionRow::read).collect()
}

/// The operator and the reason of the last such action on a service, or on all services.
pub(crate) fn last_action(
    connection: &mut Connection,
    verb: OperatorVerb,
    target: &OperatorTarget,
) -> Result<Option<(String, Option<String>)>, StoreError> {
    if !cfg!(feature = "action-log") {
        return Ok(None);
    }
    let mut query = operator_actions::table
        .filter(operator_actions::verb.eq(verb.as_str()))
        .filter(operator_actions::target.eq(target.kind()))
        .order_by(operator_actions::id.desc())
        .limit(1)
        .select((operator_actions::operator, operator_actions::reason))
        .into_boxed();
    if let Some(service_id) = target.service_id() {
        query = query.filter(operator_actions::service_id.eq(service_id.as_str().to_owned()));
    }
    let found: Vec<(String, Option<String>)> = connection.load_query("last_action", query)?;
    Ok(found.into_iter().next())
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = operator_actions)]
struct ActionRow {
    id: i64,
    acted_at: i64,
    operator: String,
    source: String,
    instance: Option<String>,
    verb: String,
    target: String,
    service_id: Option<String>,
    batch_id: Option<Vec<u8>>,
    attempt: Option<i64>,
    target_instance: Option<String>,
    target_id: Option<String>,
    reason: Option<String>,
    state_before: String,
    state_after: String,
}

impl ActionRow {
    fn read(self) -> Result<RecordedAction, StoreError> {
        let target = self.target()?;
        let source = ActionSource::ALL.into_iter().find(|it| it.as_str() == self.source);
        let source = source.ok_or_else(|| StoreError::corrupt("an unknown source"))?;
        let instance = self.instance.map(InstanceId::new);
        let action = OperatorAction {
            verb: self.verb.parse().map_err(StoreError::corrupt)?,
            target,
            reason: self.reason,
            operator: Operator { name: self.operator, source, instance },
            dry_run: false,
        };
        Ok(RecordedAction {
            id: self.id,
            acted_at: Timestamp::from_micros(self.acted_at),
            action,
            before: self.state_before,
            after: self.state_after,
        })
    }

    fn target(&self) -> Result<OperatorTarget, StoreError> {
        let service = self.service_id.as_deref().map(service_id).transpose()?;
        let batch = self.batch_id.as_deref().map(batch_id).transpose()?;
        let attempt = self.attempt.map(u32::try_from).transpose().map_err(StoreError::corrupt)?;
        let instance = self.target_instance.as_deref().map(InstanceId::new);
        let other_id = self.target_id.as_deref().unwrap_or_default();
        match (self.target.as_str(), service, batch, instance) {
            ("batch", Some(service_id), Some(batch_id), _) => {
                Ok(OperatorTarget::Batch { service_id, batch_id, attempt })
            }
            ("service", Some(service_id), ..) => Ok(OperatorTarget::Service(service_id)),
            ("instance", _, _, Some(instance)) => Ok(OperatorTarget::Instance(instance)),
            ("token", ..) => {
                Ok(OperatorTarget::Token(other_id.parse().map_err(StoreError::corrupt)?))
            }
            ("webhook", ..) => {
                let id = other_id.parse().map_err(StoreError::corrupt)?;
                Ok(OperatorTarget::Webhook(WebhookId(id)))
            }
            ("database", ..) => Ok(OperatorTarget::Database),
            ("all_services", ..) => Ok(OperatorTarget::AllServices),
            _ => Err(StoreError::corrupt("an action without its target")),
        }
    }
}
