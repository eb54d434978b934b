//! Notifications between instances: about batches for another instance, which then need not wait for its next scan, and
//! about the end of batches that clients of another instance wait for. Programs notify instances of lists.
//!
//! They use PostgreSQL's `listen` and `pg_notify`. A notification is sent after the commit that it reports, for many
//! services or batches at once, because commits that send notifications wait for each other.

use std::collections::BTreeMap;

use grid_batch_core::claims::Notifications;
use grid_batch_core::{BatchResult, ItemId, ServiceId};
use log::debug;

use crate::sql::{ClaimStore, Connection, Statement, Store, StoreError};

/// Clients of the sender wait for the end of these batches.
const AWAITED: &str = "awaited by ";
/// These batches have ended.
const ENDED: &str = "ended at ";

/// The channel of the function `grid_batch_add`, in every namespace, and its notification.
const LISTS_CHANNEL: &str = "grid_batch_lists";
const LIST_ADDED: &str = "list added";

/// PostgreSQL refuses notifications of 8,000 bytes.
const LONGEST_NOTIFICATION: usize = 7_500;

impl ClaimStore {
    /// Returns a function that exchanges notifications with other instances. It reports batches that clients of this
    /// instance wait for and batches that have ended, and returns what has arrived since the last call. It uses its own
    /// connection. `None` if only one instance can use the database, as with an SQLite file.
    pub fn work_notifications(
        &self,
    ) -> Option<impl FnMut(&[ItemId], &[ItemId]) -> BatchResult<Notifications> + Send + use<>> {
        if !self.store.dialect().locks_rows() {
            return None;
        }
        let (claims, mut connection) = (self.clone(), NotificationConnection::default());
        Some(move |awaited: &[ItemId], ended: &[ItemId]| {
            let instance = claims.instance();
            if !awaited.is_empty() || !ended.is_empty() {
                connection.notify(&claims.store, instance.as_str(), awaited, ended)?;
            }
            Ok(connection.receive(&claims.store, instance.as_str())?)
        })
    }
}

/// Notifies instances that these of their services have batches. If this fails, their next scan finds the batches.
pub(super) fn notify_owners(store: &Store, services: &BTreeMap<String, Vec<ServiceId>>) {
    if services.is_empty() || !store.dialect().locks_rows() {
        return;
    }
    let texts = services.iter().flat_map(|(instance, services)| notifications(instance, services));
    if let Err(error) = texts.into_iter().try_for_each(|text| notify(store, &text)) {
        debug!(error:%; "cannot notify other instances of batches; they find them at their next scan");
    }
}

fn notify(store: &Store, text: &str) -> Result<(), StoreError> {
    let channel = store.notification_channel();
    let statement =
        Statement::new("-- notify_owners\n select pg_notify(?, ?)").text(&channel).text(text);
    store.pools.read()?.execute(&statement).map(drop)
}

/// Creates notifications that begin with this line, each with as many of the other lines as fit.
fn notifications(first: &str, lines: &[impl ToString]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for line in lines.iter().map(ToString::to_string) {
        match texts.last_mut() {
            Some(text) if text.len() + 1 + line.len() <= LONGEST_NOTIFICATION => {
                text.push('\n');
                text.push_str(&line);
            }
            _ => texts.push(format!("{first}\n{line}")),
        }
    }
    texts
}

/// Adds what a notification reports to this instance.
fn add(received: &mut Notifications, text: &str, instance: &str) {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let batches = |sender: &str, lines: std::str::Lines<'_>| -> Vec<ItemId> {
        let is_own = sender == instance;
        lines.filter(|_| !is_own).filter_map(|line| line.parse().ok()).collect()
    };
    if first == instance {
        received.stored.extend(lines.filter_map(|line| line.parse::<ServiceId>().ok()));
    } else if let Some(sender) = first.strip_prefix(AWAITED) {
        received.awaited.extend(batches(sender, lines));
    } else if let Some(sender) = first.strip_prefix(ENDED) {
        received.ended.extend(batches(sender, lines));
    }
}

/// The connection on which an instance receives notifications.
#[derive(Default)]
struct NotificationConnection(Option<Connection<'static>>);

impl NotificationConnection {
    /// Takes the notifications for this instance that have arrived, without waiting for others.
    ///
    /// The first call after an error connects again. Notifications may have been lost until then.
    fn receive(&mut self, store: &Store, instance: &str) -> Result<Notifications, StoreError> {
        let mut connection = self.take(store)?;
        let texts = connection.notifications()?;
        self.0 = Some(connection);
        if texts.iter().any(|text| text == LIST_ADDED) {
            store.list_trigger.fire();
        }
        let mut received = Notifications::default();
        texts.iter().for_each(|text| add(&mut received, text, instance));
        Ok(received)
    }

    /// Notifies other instances of batches that clients of this one wait for, and of batches that have ended.
    ///
    /// The notifications may be lost without harm, so their commits do not wait for the disk.
    fn notify(
        &mut self,
        store: &Store,
        instance: &str,
        awaited: &[ItemId],
        ended: &[ItemId],
    ) -> Result<(), StoreError> {
        let (channel, clock) = (store.notification_channel(), store.dialect().clock());
        let sql = format!(
            "-- notify_others
             select set_config('synchronous_commit', 'off', true), pg_notify(?, ?)
             where exists (select 1 from instances i where i.instance_id <> ? and i.expiry_1 > {clock})"
        );
        let of_awaited = notifications(&format!("{AWAITED}{instance}"), awaited);
        let of_ended = notifications(&format!("{ENDED}{instance}"), ended);
        for text in of_awaited.iter().chain(&of_ended) {
            let mut connection = self.take(store)?;
            connection.execute(&Statement::new(&*sql).text(&channel).text(text).text(instance))?;
            self.0 = Some(connection);
        }
        Ok(())
    }

    fn take(&mut self, store: &Store) -> Result<Connection<'static>, StoreError> {
        self.0.take().map_or_else(|| connect(store), Ok)
    }
}

fn connect(store: &Store) -> Result<Connection<'static>, StoreError> {
    let mut connection = store.pools.connect()?;
    let channel = store.notification_channel();
    connection.batch_execute(&format!("listen {channel}; listen {LISTS_CHANNEL}"))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(number: usize) -> ServiceId {
        format!("circuit-{number}::service").parse().unwrap()
    }

    fn read(text: &str, instance: &str) -> Notifications {
        let mut received = Notifications::default();
        add(&mut received, text, instance);
        received
    }

    #[test]
    fn notification_is_read_by_its_instance_only() {
        let services = [service(1), service(2)];
        let texts = notifications("i1", &services);
        assert_eq!(texts, ["i1\ncircuit-1::service\ncircuit-2::service"]);
        assert_eq!(read(&texts[0], "i1").stored, services);
        assert_eq!(read(&texts[0], "i2"), Notifications::default());
        assert_eq!(read("i1\nno service", "i1").stored, [], "it is from a later version");
    }

    #[test]
    fn notification_of_batches_is_read_by_all_others() {
        let ids: Vec<ItemId> = (0..100).map(|n| ItemId::from_bytes([n; 64])).collect();
        for (first, is_ended) in [("awaited by i1", false), ("ended at i1", true)] {
            let texts = notifications(first, &ids);
            assert!(texts.len() > 1 && texts.iter().all(|text| text.len() <= LONGEST_NOTIFICATION));
            let mut received = Notifications::default();
            texts.iter().for_each(|text| add(&mut received, text, "i2"));
            let (named, other) = if is_ended {
                (received.ended, received.awaited)
            } else {
                (received.awaited, received.ended)
            };
            assert_eq!((named, other), (ids.clone(), Vec::new()));
            assert_eq!(read(&texts[0], "i1"), Notifications::default(), "its sender");
        }
    }

    #[test]
    fn many_services_need_several_notifications() {
        let services: Vec<ServiceId> = (0..1_000).map(service).collect();
        let texts = notifications("i1", &services);
        assert!(texts.len() > 1 && texts.iter().all(|text| text.len() <= LONGEST_NOTIFICATION));
        let read: Vec<ServiceId> = texts.iter().flat_map(|text| read(text, "i1").stored).collect();
        assert_eq!(read, services);
    }
}

#[cfg(all(test, feature = "postgres"))]
mod postgres_tests {
    use std::{
        sync::mpsc::channel,
        time::{Duration, Instant},
    };

    use grid_batch_support::{Jobs, Next, Schedule};
    use grid_batch_test_postgres::TestDatabase;

    use super::*;
    use crate::{DatabaseUrl, StoreOptions};

    #[test]
    fn list_of_a_program_starts_the_job() {
        let database = TestDatabase::create();
        let url: DatabaseUrl = database.url().parse().unwrap();
        let store = Store::open(&url, StoreOptions::default()).unwrap();
        let (send, ran) = channel();
        let schedule = Schedule::every(Duration::from_secs(3_600)).or_on(&store.list_trigger);
        let jobs = Jobs::start().unwrap();
        let _job = jobs.repeat("lists", schedule, move || {
            send.send(()).unwrap();
            Ok(Next::AfterInterval)
        });
        let mut connection = NotificationConnection::default();
        connection.receive(&store, "i1").unwrap();
        let mut program = store.pools.connect().unwrap();
        program.batch_execute("select grid_batch_add('a::b', 'bytes'::bytea)").unwrap();
        let started = Instant::now();
        while ran.try_recv().is_err() {
            assert!(started.elapsed() < Duration::from_secs(60), "no notification has arrived");
            assert_eq!(connection.receive(&store, "i1").unwrap(), Notifications::default());
        }
    }
}
