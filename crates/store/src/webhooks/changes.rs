//! Changes of webhooks by operators.

use grid_batch_core::operators::{ActionEffect, OperatorRequest, OperatorTarget, OperatorVerb};
use grid_batch_core::webhooks::{
    FailedDeliveryId, NewWebhook, TRACE_EXPORT, Webhook, WebhookId, trace_export_filter,
};
use grid_batch_support::redact_url;

use super::{
    failed::exists,
    rows::{WebhookRow, lines},
};
use crate::{
    action_log::{Logged, logged},
    events,
    sql::{Connection, Statement, Store, StoreError},
};

/// Limit on the number of webhooks. All are read whenever events are delivered.
const MOST_WEBHOOKS: i64 = 100;

/// Stores a webhook. `None`: the limit is reached.
pub(super) fn create(
    store: &Store,
    webhook: &NewWebhook,
    request: &OperatorRequest,
) -> Result<Option<Webhook>, StoreError> {
    let latest = events::latest(store)?;
    let services = lines(webhook.filter.services.iter());
    let kinds = lines(webhook.filter.kinds.iter());
    let statement = Statement::new(format!(
        "-- create_webhook
         insert into webhooks (url, secret, services, kinds, created_at, cursor)
         select ?, ?, ?, ?, ?, ? where (select count(*) from webhooks) < {MOST_WEBHOOKS}
         returning id, url, services, kinds, created_at, attempts, next_try_at, last_error,
             disabled_at, missed_at, paused_at, previous_secret_until, cast(0 as bigint) as failed"
    ))
    .text(&webhook.url)
    .bytes(webhook.secret.expose())
    .text(&services)
    .text(&kinds)
    .long(store.now().as_micros())
    .text(latest.as_str());
    logged(store, request, OperatorVerb::CreateWebhook, None, |connection| {
        let rows: Vec<WebhookRow> = connection.load(&statement)?;
        let Some(row) = rows.into_iter().next() else { return Ok(Logged::unchanged(None)) };
        let webhook = row.read()?;
        let target = OperatorTarget::Webhook(webhook.id);
        let effect = ActionEffect::in_words("does not exist", redact_url(&webhook.url));
        Ok(Logged::changed(Some(webhook), target, effect))
    })
}

/// Stores the webhook of the export of traces, unless it is stored. Instances that start together take turns.
pub(super) fn add_trace_export(store: &Store) -> Result<(), StoreError> {
    let latest = events::latest(store)?;
    let kinds = lines(trace_export_filter().kinds.iter());
    let insert = Statement::new(
        "-- add_trace_export
         insert into webhooks (url, secret, services, kinds, created_at, cursor)
         select ?, ?, '', ?, ?, ? where not exists (select 1 from webhooks where webhooks.url = ?)",
    )
    .text(TRACE_EXPORT)
    .bytes(&[])
    .text(&kinds)
    .long(store.now().as_micros())
    .text(latest.as_str())
    .text(TRACE_EXPORT);
    store.pools.write()?.write_transaction(|connection| {
        events::lock_feed(connection)?;
        connection.execute(&insert).map(drop)
    })
}

/// Removes a webhook and its failed messages. Returns whether there was one.
pub(super) fn remove(
    store: &Store,
    id: WebhookId,
    request: &OperatorRequest,
) -> Result<bool, StoreError> {
    let statement =
        Statement::new("-- remove_webhook\n delete from webhooks where id = ? returning url")
            .long(id.0);
    logged(store, request, OperatorVerb::RemoveWebhook, None, |connection| {
        let removed: Vec<String> = connection.load_column(&statement)?;
        let Some(url) = removed.first() else { return Ok(Logged::unchanged(false)) };
        let effect = ActionEffect::in_words(redact_url(url), "removed");
        Ok(Logged::changed(true, OperatorTarget::Webhook(id), effect))
    })
}

/// Schedules one or all failed messages to be sent once more. `None`: there is no such webhook.
pub(super) fn redeliver(
    store: &Store,
    id: WebhookId,
    failed: Option<FailedDeliveryId>,
    request: &OperatorRequest,
) -> Result<Option<u64>, StoreError> {
    logged(store, request, OperatorVerb::Redeliver, None, |connection| {
        let changed = send_again(connection, id, failed)?;
        if changed == 0 && failed.is_some() {
            return Ok(Logged::unchanged(exists(connection, id)?.then_some(0)));
        }
        if !enable(connection, id)? {
            return Ok(Logged::unchanged(None));
        }
        let count = u64::try_from(changed).unwrap_or(u64::MAX);
        let after = format!("enabled; {count} messages are sent once more");
        let effect = ActionEffect::in_words(format!("{count} messages were given up"), after);
        Ok(Logged::changed(Some(count), OperatorTarget::Webhook(id), effect))
    })
}

fn send_again(
    connection: &mut Connection,
    id: WebhookId,
    failed: Option<FailedDeliveryId>,
) -> Result<usize, StoreError> {
    let statement = match failed {
        None => Statement::new(
            "-- redeliver_all\n update failed_deliveries set again = true where webhook_id = ?",
        )
        .long(id.0),
        Some(failed) => Statement::new(
            "-- redeliver_one
             update failed_deliveries set again = true where webhook_id = ? and id = ?",
        )
        .long(id.0)
        .long(failed.0),
    };
    connection.execute(&statement)
}

fn enable(connection: &mut Connection, id: WebhookId) -> Result<bool, StoreError> {
    let statement = Statement::new(
        "-- enable_webhook
         update webhooks set next_try_at = 0, disabled_at = null where id = ?",
    );
    Ok(connection.execute(&statement.long(id.0))? > 0)
}
