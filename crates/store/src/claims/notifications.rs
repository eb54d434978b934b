//! Notifications to other instances of batches for them, so that they need not wait for their next scan.
//!
//! They are notifications of PostgreSQL (`listen` and `pg_notify`). One is sent after the commit that stored the
//! batches, for many services at once: commits that send a notification wait for each other.

use std::collections::BTreeMap;

use grid_batch_core::ServiceId;
use log::debug;

use crate::sql::{Connection, Dialect, Store, StoreError};

/// The channel of all instances. A notification names its instance, and then services, each on a line.
const CHANNEL: &str = "grid_batch_work";

/// PostgreSQL refuses notifications of 8,000 bytes.
const LONGEST_NOTIFICATION: usize = 7_500;

/// Notifies instances that these services of theirs have batches. If that fails, their next scan finds them.
pub(super) fn notify_owners(store: &Store, services: &BTreeMap<String, Vec<ServiceId>>) {
    if services.is_empty() || !store.dialect().locks_rows() {
        return;
    }
    let texts = services.iter().flat_map(|(instance, services)| notifications(instance, services));
    if let Err(error) = texts.into_iter().try_for_each(|text| notify(store, &text)) {
        debug!(error:%; "cannot notify other instances of batches; they find them at their next scan \
             (queue.poll_interval)");
    }
}

fn notify(store: &Store, text: &str) -> Result<(), StoreError> {
    let statement = store
        .statement("-- notify_owners\n select pg_notify(?, ?)".to_owned())
        .text(CHANNEL)
        .text(text);
    store.pools.read()?.execute(&statement).map(drop)
}

fn notifications(instance: &str, services: &[ServiceId]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for service in services {
        match texts.last_mut() {
            Some(text) if text.len() + 1 + service.as_str().len() <= LONGEST_NOTIFICATION => {
                text.push('\n');
                text.push_str(service.as_str());
            }
            _ => texts.push(format!("{instance}\n{service}")),
        }
    }
    texts
}

/// The services that a notification names, if it is for this instance.
fn services_of(text: &str, instance: &str) -> Vec<ServiceId> {
    let mut lines = text.lines();
    match lines.next() == Some(instance) {
        true => lines.filter_map(|line| line.parse().ok()).collect(),
        false => Vec::new(),
    }
}

/// The connection on which an instance receives notifications.
#[derive(Default)]
pub(crate) struct NotificationConnection(Option<Connection>);

impl NotificationConnection {
    /// Takes the notifications for this instance that have arrived, without waiting for others.
    ///
    /// The first call after an error connects again. Notifications may have been lost until then.
    pub(crate) fn receive(
        &mut self,
        store: &Store,
        instance: &str,
    ) -> Result<Vec<ServiceId>, StoreError> {
        let mut connection = match self.0.take() {
            Some(connection) => connection,
            None => connect(store)?,
        };
        let texts = connection.notifications()?;
        self.0 = Some(connection);
        Ok(texts.iter().flat_map(|text| services_of(text, instance)).collect())
    }
}

fn connect(store: &Store) -> Result<Connection, StoreError> {
    let mut connection = store.pools.connect()?;
    connection.batch_execute(&format!("listen {CHANNEL}"))?;
    Ok(connection)
}

/// Whether instances can notify each other. Only one instance can use a file of SQLite.
pub(crate) fn are_supported(dialect: Dialect) -> bool {
    dialect.locks_rows()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(number: usize) -> ServiceId {
        format!("circuit-{number}::service").parse().unwrap()
    }

    #[test]
    fn notification_is_read_by_its_instance_only() {
        let services = [service(1), service(2)];
        let texts = notifications("i1", &services);
        assert_eq!(texts, ["i1\ncircuit-1::service\ncircuit-2::service"]);
        assert_eq!(services_of(&texts[0], "i1"), services);
        assert_eq!(services_of(&texts[0], "i2"), []);
        assert_eq!(services_of("i1\nno service", "i1"), [], "of a later version");
    }

    #[test]
    fn many_services_need_several_notifications() {
        let services: Vec<ServiceId> = (0..1_000).map(service).collect();
        let texts = notifications("i1", &services);
        assert!(texts.len() > 1 && texts.iter().all(|text| text.len() <= LONGEST_NOTIFICATION));
        let read: Vec<ServiceId> = texts.iter().flat_map(|text| services_of(text, "i1")).collect();
        assert_eq!(read, services);
    }
}
