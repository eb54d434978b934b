//! The results of deliveries.

use grid_batch_core::webhooks::{DeliveryResult, FailedDeliveryId, Message, WebhookLease};

use crate::sql::{
    Connection, Statement, Store, StoreError,
    rows::{attempts, storable},
};

/// Stores the result of a delivery and extends the lease. `false`: it is not the latest lease.
pub(super) fn store(
    store: &Store,
    lease: &WebhookLease,
    result: &DeliveryResult,
) -> Result<bool, StoreError> {
    let now = store.now();
    let error = storable(error_of(result));
    let change = DeliveryChange { lease, until: now.plus(lease.duration).as_micros() };
    store.pools.write()?.write_transaction(|connection| match result {
        DeliveryResult::Delivered { cursor } => change.run(
            connection,
            "-- advance_webhook
             update webhooks set cursor = ?, attempts = 0, next_try_at = 0, last_error = null,
                 leased_until = ?
             where id = ? and lease = ?",
            |statement| statement.text(cursor.as_str()),
        ),
        DeliveryResult::Missed { cursor } => change.run(
            connection,
            "-- advance_webhook_past_removed
             update webhooks set cursor = ?, missed_at = ?, attempts = 0, next_try_at = 0,
                 leased_until = ?
             where id = ? and lease = ?",
            |statement| statement.text(cursor.as_str()).long(now.as_micros()),
        ),
        DeliveryResult::Delayed { cursor, attempts: number, until, .. } => change.run(
            connection,
            "-- delay_webhook
             update webhooks set cursor = ?, attempts = ?, next_try_at = ?, last_error = ?,
                 leased_until = ?
             where id = ? and lease = ?",
            |statement| {
                let delayed = statement.text(cursor.as_str()).long(attempts(*number).into());
                delayed.long(until.as_micros()).text(&error)
            },
        ),
        DeliveryResult::Disabled { cursor, .. } => change.run(
            connection,
            "-- disable_webhook
             update webhooks set cursor = ?, attempts = 0, next_try_at = 0, last_error = ?,
                 disabled_at = ?, leased_until = ?
             where id = ? and lease = ?",
            |statement| statement.text(cursor.as_str()).text(&error).long(now.as_micros()),
        ),
        DeliveryResult::GivenUp { cursor, message, attempts, .. } => {
            let is_last = change.run(
                connection,
                "-- give_up_event
                 update webhooks set cursor = ?, attempts = 0, next_try_at = 0, last_error = ?,
                     leased_until = ?
                 where id = ? and lease = ?",
                |statement| statement.text(cursor.as_str()).text(&error),
            )?;
            if is_last {
                insert_failed(connection, lease, message, *attempts, &error, now.as_micros())?;
            }
            Ok(is_last)
        }
        DeliveryResult::DeliveredAgain(id) => {
            let is_last = change.extend(connection)?;
            if is_last {
                remove_failed(connection, *id)?;
            }
            Ok(is_last)
        }
        DeliveryResult::FailedAgain { id, .. } => {
            let is_last = change.extend(connection)?;
            if is_last {
                fail_again(connection, *id, &error)?;
            }
            Ok(is_last)
        }
    })
}

fn error_of(result: &DeliveryResult) -> &str {
    match result {
        DeliveryResult::Delayed { error, .. }
        | DeliveryResult::GivenUp { error, .. }
        | DeliveryResult::Disabled { error, .. }
        | DeliveryResult::FailedAgain { error, .. } => error,
        DeliveryResult::Delivered { .. }
        | DeliveryResult::Missed { .. }
        | DeliveryResult::DeliveredAgain(_) => "",
    }
}

/// A change of the webhook of a lease.
struct DeliveryChange<'l> {
    lease: &'l WebhookLease,
    until: i64,
}

impl DeliveryChange<'_> {
    /// Runs a statement whose last values are the end of the lease, the webhook and the lease. `false`: it is not the
    /// latest lease.
    fn run<'a>(
        &self,
        connection: &mut Connection,
        sql: &'static str,
        bind: impl FnOnce(Statement<'a>) -> Statement<'a>,
    ) -> Result<bool, StoreError> {
        let statement = bind(Statement::new(sql));
        let statement =
            statement.long(self.until).long(self.lease.webhook.0).long(self.lease.number);
        Ok(connection.execute(&statement)? > 0)
    }

    fn extend(&self, connection: &mut Connection) -> Result<bool, StoreError> {
        self.run(
            connection,
            "-- extend_webhook_lease
             update webhooks set leased_until = ? where id = ? and lease = ?",
            |statement| statement,
        )
    }
}

fn insert_failed(
    connection: &mut Connection,
    lease: &WebhookLease,
    message: &Message,
    number: u32,
    error: &str,
    now: i64,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- insert_failed_delivery
         insert into failed_deliveries (webhook_id, message_id, body, attempts, error, failed_at)
         values (?, ?, ?, ?, ?, ?)",
    )
    .long(lease.webhook.0)
    .text(&message.id)
    .text(&message.body)
    .long(attempts(number).into())
    .text(error)
    .long(now);
    connection.execute(&statement).map(drop)
}

fn remove_failed(connection: &mut Connection, id: FailedDeliveryId) -> Result<(), StoreError> {
    let statement =
        Statement::new("-- remove_failed_delivery\n delete from failed_deliveries where id = ?");
    connection.execute(&statement.long(id.0)).map(drop)
}

fn fail_again(
    connection: &mut Connection,
    id: FailedDeliveryId,
    error: &str,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- fail_delivery_again
         update failed_deliveries set again = false, attempts = attempts + 1, error = ?
         where id = ?",
    );
    connection.execute(&statement.text(error).long(id.0)).map(drop)
}
