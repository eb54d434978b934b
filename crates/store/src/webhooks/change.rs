//! Changes of a stored webhook.

use std::borrow::Cow;

use grid_batch_core::operators::{ActionEffect, OperatorRequest, OperatorTarget};
use grid_batch_core::webhooks::{
    Message, TRACE_EXPORT, Webhook, WebhookChange, WebhookId, WebhookSecret,
};
use grid_batch_core::{Timestamp, events::EventFilter};
use grid_batch_support::redact_url;

use super::rows::{WEBHOOK_COLUMNS, WebhookRow, lines};
use crate::{
    action_log::{Logged, logged},
    sql::{Connection, Statement, Store, StoreError},
};

/// Makes a change. `None`: there is no such webhook.
pub(super) fn change(
    store: &Store,
    id: WebhookId,
    change: &WebhookChange,
    request: &OperatorRequest,
) -> Result<Option<Webhook>, StoreError> {
    let now = store.now();
    logged(store, request, change.verb(), None, |connection| {
        let before = find(connection, id)?.filter(|webhook| can_change(webhook, change));
        let Some(before) = before else { return Ok(Logged::unchanged(None)) };
        write(connection, &before, change, now)?;
        let Some(after) = find(connection, id)? else { return Ok(Logged::unchanged(None)) };
        let effect = ActionEffect::in_words(describe(&before, change), describe(&after, change));
        Ok(Logged::changed(Some(after), OperatorTarget::Webhook(id), effect))
    })
}

/// The export of traces has no URL and no secret.
fn can_change(webhook: &Webhook, change: &WebhookChange) -> bool {
    webhook.url != TRACE_EXPORT || matches!(change, WebhookChange::Pause | WebhookChange::Resume)
}

fn find(connection: &mut Connection, id: WebhookId) -> Result<Option<Webhook>, StoreError> {
    let statement = Statement::new(format!(
        "-- find_webhook\n select {WEBHOOK_COLUMNS} from webhooks where webhooks.id = ?"
    ));
    let rows: Vec<WebhookRow> = connection.load(&statement.long(id.0))?;
    rows.into_iter().next().map(WebhookRow::read).transpose()
}

/// What the log of operators' actions says about the webhook.
fn describe(webhook: &Webhook, change: &WebhookChange) -> Cow<'static, str> {
    match change {
        WebhookChange::Fields { .. } => {
            let EventFilter { services, kinds } = &webhook.filter;
            let [services, kinds] = [lines(services.iter()), lines(kinds.iter())];
            let filter = format!("services: {services}; kinds: {kinds}").replace('\n', ", ");
            format!("{}; {filter}", redact_url(&webhook.url)).into()
        }
        WebhookChange::Secret { .. } => match webhook.previous_secret_until {
            Some(until) => {
                format!("the secret before is used until {}", until.rfc3339_micros()).into()
            }
            None => "no secret before".into(),
        },
        WebhookChange::Pause | WebhookChange::Resume if webhook.paused_at.is_some() => {
            "paused".into()
        }
        WebhookChange::Pause | WebhookChange::Resume => "not paused".into(),
        WebhookChange::Ping(message) => message.id.clone().into(),
    }
}

fn write(
    connection: &mut Connection,
    webhook: &Webhook,
    change: &WebhookChange,
    now: Timestamp,
) -> Result<(), StoreError> {
    let id = webhook.id;
    match change {
        WebhookChange::Fields { url, services, kinds } => {
            let filter = EventFilter {
                services: services.as_ref().unwrap_or(&webhook.filter.services).clone(),
                kinds: kinds.as_ref().unwrap_or(&webhook.filter.kinds).clone(),
            };
            set_fields(connection, id, url.as_ref().unwrap_or(&webhook.url), &filter)
        }
        WebhookChange::Secret { secret, previous_until } => {
            set_secret(connection, id, secret, *previous_until)
        }
        WebhookChange::Pause => pause(connection, id, now),
        WebhookChange::Resume => resume(connection, id),
        WebhookChange::Ping(message) => ping(connection, id, message, now),
    }
}

/// The number of the lease is raised, so that a delivery in progress ends, which has the former values.
fn set_fields(
    connection: &mut Connection,
    id: WebhookId,
    url: &str,
    filter: &EventFilter,
) -> Result<(), StoreError> {
    let [services, kinds] = [lines(filter.services.iter()), lines(filter.kinds.iter())];
    let statement = Statement::new(
        "-- change_webhook
         update webhooks set url = ?, services = ?, kinds = ?, next_try_at = 0, lease = lease + 1,
             leased_until = 0
         where id = ?",
    );
    let statement = statement.text(url).text(&services).text(&kinds).long(id.0);
    connection.execute(&statement).map(drop)
}

fn set_secret(
    connection: &mut Connection,
    id: WebhookId,
    secret: &WebhookSecret,
    previous_until: Timestamp,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- rotate_webhook_secret
         update webhooks set previous_secret = secret, previous_secret_until = ?, secret = ?,
             lease = lease + 1, leased_until = 0
         where id = ?",
    );
    let statement = statement.long(previous_until.as_micros()).bytes(secret.expose()).long(id.0);
    connection.execute(&statement).map(drop)
}

/// A pause that lasts keeps its time.
fn pause(connection: &mut Connection, id: WebhookId, now: Timestamp) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- pause_webhook
         update webhooks set paused_at = coalesce(paused_at, ?), lease = lease + 1, leased_until = 0
         where id = ?",
    );
    connection.execute(&statement.long(now.as_micros()).long(id.0)).map(drop)
}

fn resume(connection: &mut Connection, id: WebhookId) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- resume_webhook\n update webhooks set paused_at = null, next_try_at = 0 where id = ?",
    );
    connection.execute(&statement.long(id.0)).map(drop)
}

/// Adds the message to those that are sent once more. It is listed with them until it is delivered.
fn ping(
    connection: &mut Connection,
    id: WebhookId,
    message: &Message,
    now: Timestamp,
) -> Result<(), StoreError> {
    let insert = Statement::new(
        "-- insert_ping
         insert into failed_deliveries (webhook_id, message_id, body, attempts, error, failed_at, again)
         values (?, ?, ?, 0, '', ?, true)",
    )
    .long(id.0)
    .text(&message.id)
    .text(&message.body)
    .long(now.as_micros());
    connection.execute(&insert)?;
    let wake = Statement::new("-- wake_webhook\n update webhooks set next_try_at = 0 where id = ?");
    connection.execute(&wake.long(id.0)).map(drop)
}
