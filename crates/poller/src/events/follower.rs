use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use grid_batch_core::ServiceId;
use grid_batch_core::batches::BatchState;
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use log::{debug, info, warn};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use crate::{
    EventOptions,
    events::silence::{SilenceChange, SilenceCheck, SilenceOptions},
    instant::after,
};

/// Selects the services that an event monitor listens to, and reports whether their streams are live.
///
/// It can be used before the monitor runs. Clones share the selection.
#[derive(Debug, Clone)]
pub struct EventFollower(Arc<FollowerState>);

#[derive(Debug)]
struct FollowerState {
    services: Mutex<FollowedServices>,
    changed: Notify,
    /// How many events reported a transaction that was applied before.
    repeated: AtomicU64,
}

#[derive(Debug)]
struct FollowedServices {
    streams: HashMap<String, ServiceStream>,
    /// The services that were followed or evicted since the monitor last took them.
    changed: HashSet<String>,
    max_streams: usize,
    /// The number of calls of `follow`. It gives them an order.
    follow_count: u64,
    evict_after: Duration,
    /// No service can be evicted before this time.
    no_eviction_before: Option<Instant>,
    distrust_after_eviction: Duration,
    distrusted_until: Option<Instant>,
    silence: SilenceOptions,
}

#[derive(Debug)]
struct ServiceStream {
    /// The call of `follow` that added the service. It changes when a service is evicted and followed again.
    number: u64,
    /// The last call of `follow` for this service, and its time.
    last_followed: u64,
    followed_at: Instant,
    silence: SilenceCheck,
    /// Tells the listener whether the stream is silent.
    is_silent: watch::Sender<bool>,
    /// The node that it is connected to.
    node: Option<String>,
}

/// A service that is followed, from the call of `follow` that added it until it is evicted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FollowedService {
    pub(crate) service_id: String,
    number: u64,
}

impl FollowedService {
    /// A number that is unique among followed services.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// Follows services that have batches to submit or under way, and compares commits with events.
impl RecordedSubscriber for EventFollower {
    fn recorded(&self, entry: Recorded<'_>) {
        let follow = |service_id: &ServiceId| self.follow(service_id.as_str());
        match entry {
            Recorded::Change { change, state, .. } => {
                match (state, change.event.ends_submission()) {
                    (BatchState::Pending, true) => self.accepted(&change.service_id),
                    // The sender found the commit, so no event reported it.
                    (BatchState::Committed, false) => self.committed(&change.service_id),
                    _ => {}
                }
            }
            Recorded::Stored(services) | Recorded::Submittable(services) => {
                services.iter().for_each(follow);
            }
            Recorded::TakenOver(takeover) => {
                let services = takeover.in_doubt.iter().map(|(service_id, _)| service_id);
                services.collect::<BTreeSet<_>>().into_iter().for_each(follow);
            }
            _ => {}
        }
    }
}

impl EventFollower {
    pub(crate) fn new(options: &EventOptions) -> Self {
        Self(Arc::new(FollowerState {
            services: Mutex::new(FollowedServices {
                streams: HashMap::new(),
                changed: HashSet::new(),
                max_streams: options.sockets,
                follow_count: 0,
                evict_after: options.evict_after,
                no_eviction_before: None,
                distrust_after_eviction: options.distrust_after_eviction,
                distrusted_until: None,
                silence: SilenceOptions {
                    tolerance: options.event_tolerance,
                    limit: options.silent_after,
                },
            }),
            changed: Notify::new(),
            repeated: AtomicU64::new(0),
        }))
    }

    /// Listens to the events of this service.
    ///
    /// Call it whenever a batch of the service is submitted. If all sockets are in use, the service with the oldest
    /// last call is evicted. If that call was within `evict_after`, none is evicted and this service is not followed.
    pub fn follow(&self, service_id: &str) {
        if self.services().follow(service_id) {
            self.0.changed.notify_one();
        }
    }

    /// Reports that a ledger has accepted a batch of the service, so that an event must report its commit.
    pub fn accepted(&self, service_id: &ServiceId) {
        if let Some(stream) = self.services().streams.get_mut(service_id.as_str()) {
            stream.silence.accepted();
        }
    }

    /// Reports that a batch of the service has ended as committed, whether or not an event reported it.
    pub fn committed(&self, service_id: &ServiceId) {
        if let Some(stream) = self.services().streams.get_mut(service_id.as_str()) {
            let change = stream.silence.committed(Instant::now());
            stream.silence_changed(service_id.as_str(), change);
        }
    }

    /// Whether the stream of this service is connected and not silent.
    pub fn is_live(&self, service_id: &str) -> bool {
        self.services().streams.get(service_id).is_some_and(ServiceStream::is_live)
    }

    /// The number of connected streams that are silent: batches were committed but no event reported them.
    pub fn silent_streams(&self) -> usize {
        self.services().streams.values().filter(|stream| stream.is_silent()).count()
    }

    /// How many events reported a transaction that the ledger had applied before.
    pub fn repeated_events(&self) -> u64 {
        self.0.repeated.load(Ordering::Relaxed)
    }

    /// Records an event of a transaction that the ledger had applied before.
    pub(crate) fn repeated(&self) {
        self.0.repeated.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether events can be relied on: at least one service is followed, the streams of all followed
    /// services are live, and no service was evicted recently.
    pub fn all_live(&self) -> bool {
        let services = self.services();
        let is_distrusted = services.distrusted_until.is_some_and(|until| Instant::now() < until);
        !is_distrusted
            && !services.streams.is_empty()
            && services.streams.values().all(ServiceStream::is_live)
    }

    /// Waits until the set of followed services changes.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    pub(crate) fn followed_services(&self) -> Vec<FollowedService> {
        let followed = |(service_id, stream): (&String, &ServiceStream)| FollowedService {
            service_id: service_id.clone(),
            number: stream.number,
        };
        self.services().streams.iter().map(followed).collect()
    }

    /// Takes the services that were followed or evicted since the last call, and how each is followed now.
    pub(crate) fn take_changed(&self) -> Vec<(String, Option<FollowedService>)> {
        let mut services = self.services();
        let changed = std::mem::take(&mut services.changed);
        let with_stream = |service_id: String| {
            let number = services.streams.get(&service_id).map(|stream| stream.number);
            let followed = |number| FollowedService { service_id: service_id.clone(), number };
            (service_id.clone(), number.map(followed))
        };
        changed.into_iter().map(with_stream).collect()
    }

    /// Records that the stream of this service was connected, at this node.
    pub(crate) fn connected(&self, service: &FollowedService, node: Option<String>) {
        self.update(service, |stream| {
            stream.silence.connected(Instant::now());
            stream.node = node;
        });
    }

    pub(crate) fn disconnected(&self, service: &FollowedService) {
        self.update(service, |stream| stream.silence.disconnected());
    }

    /// Records that an event of this service was received.
    pub(crate) fn event(&self, service: &FollowedService) {
        self.update(service, |stream| {
            let change = stream.silence.event(Instant::now());
            stream.silence_changed(&service.service_id, change);
        });
    }

    /// Watches whether the stream of this service is silent; `None` if the service was evicted.
    pub(crate) fn watch_silence(&self, service: &FollowedService) -> Option<watch::Receiver<bool>> {
        let services = self.services();
        let stream = services.streams.get(&service.service_id)?;
        (stream.number == service.number).then(|| stream.is_silent.subscribe())
    }

    /// Records that the monitor has ended.
    pub(crate) fn set_none_live(&self) {
        self.services().streams.values_mut().for_each(|stream| stream.silence.disconnected());
    }

    /// Updates the stream of this service, unless it was evicted.
    fn update(&self, service: &FollowedService, update: impl FnOnce(&mut ServiceStream)) {
        if let Some(stream) = self.services().streams.get_mut(&service.service_id)
            && stream.number == service.number
        {
            update(stream);
        }
    }

    fn services(&self) -> MutexGuard<'_, FollowedServices> {
        self.0.services.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServiceStream {
    fn is_live(&self) -> bool {
        self.silence.is_connected() && !self.silence.is_silent()
    }

    fn is_silent(&self) -> bool {
        self.silence.is_connected() && self.silence.is_silent()
    }

    fn silence_changed(&self, service: &str, change: SilenceChange) {
        let node = self.node.as_deref();
        match change {
            SilenceChange::None => return,
            SilenceChange::Began => warn!(service, node;
                "the event stream is silent: batches are committed and no event reports them; restart \
                 the node's REST API, which may have lost a subscriber; polling continues without events"),
            SilenceChange::Ended => info!(service, node; "the event stream reports commits again"),
        }
        self.is_silent.send_replace(self.silence.is_silent());
    }
}

impl FollowedServices {
    /// Returns whether the set of services changed.
    fn follow(&mut self, service_id: &str) -> bool {
        self.follow_count += 1;
        let (number, now) = (self.follow_count, Instant::now());
        if let Some(stream) = self.streams.get_mut(service_id) {
            stream.last_followed = number;
            stream.followed_at = now;
            return false;
        }
        if self.streams.len() >= self.max_streams && !self.evict_one(now) {
            return false;
        }
        self.changed.insert(service_id.to_owned());
        let stream = ServiceStream {
            number,
            last_followed: number,
            followed_at: now,
            silence: SilenceCheck::new(self.silence),
            is_silent: watch::Sender::new(false),
            node: None,
        };
        self.streams.insert(service_id.to_owned(), stream);
        true
    }

    /// Evicts the service whose last call was longest ago, and returns whether it did. A service that was followed
    /// within `evict_after` keeps its socket. Otherwise, with more busy services than sockets, each batch would open
    /// another one.
    fn evict_one(&mut self, now: Instant) -> bool {
        self.distrusted_until = Some(after(now, self.distrust_after_eviction));
        if self.no_eviction_before.is_some_and(|time| now < time) {
            return false;
        }
        let longest_ago = self.streams.iter().min_by_key(|(_, stream)| stream.last_followed);
        let Some((service_id, stream)) = longest_ago else { return false };
        let evictable_at = after(stream.followed_at, self.evict_after);
        if now < evictable_at {
            self.no_eviction_before = Some(evictable_at);
            return false;
        }
        let service_id = service_id.clone();
        debug!(
            service = service_id.as_str(), sockets = self.max_streams;
            "all event sockets are in use; stopped following a service"
        );
        self.streams.remove(&service_id);
        self.changed.insert(service_id);
        true
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ItemId;
    use grid_batch_core::batches::{Change, Event, LedgerStatus};
    use grid_batch_core::claims::Takeover;
    use grid_batch_core::ledger::Outcome;

    use super::*;

    fn follower(sockets: usize) -> EventFollower {
        let evict_after = Duration::ZERO;
        EventFollower::new(&EventOptions { sockets, evict_after, ..EventOptions::default() })
    }

    fn services(follower: &EventFollower) -> Vec<String> {
        let mut services: Vec<_> =
            follower.followed_services().into_iter().map(|service| service.service_id).collect();
        services.sort();
        services
    }

    fn connect_all(follower: &EventFollower) {
        follower.followed_services().iter().for_each(|service| follower.connected(service, None));
    }

    #[test]
    fn all_live_needs_every_followed_stream_connected() {
        let follower = follower(2);
        assert!(!follower.all_live(), "no service is followed");
        follower.follow("a");
        assert!(!follower.all_live());
        connect_all(&follower);
        assert!(follower.all_live() && follower.is_live("a"));
        follower.follow("a");
        assert!(follower.all_live(), "it was followed already");
        follower.follow("b");
        assert!(!follower.all_live() && !follower.is_live("b"));
        connect_all(&follower);
        follower.set_none_live();
        assert!(!follower.is_live("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn eviction_makes_events_distrusted_for_a_while() {
        let follower = follower(2);
        ["a", "b", "a", "c"].into_iter().for_each(|service| follower.follow(service));
        assert_eq!(services(&follower), ["a", "c"]);
        connect_all(&follower);
        assert!(!follower.all_live(), "b was evicted");
        tokio::time::advance(EventOptions::default().distrust_after_eviction).await;
        assert!(follower.all_live());
    }

    #[tokio::test(start_paused = true)]
    async fn recently_followed_service_is_not_evicted() {
        let second = Duration::from_secs(1);
        let options = EventOptions { sockets: 2, evict_after: second, ..EventOptions::default() };
        let follower = EventFollower::new(&options);
        ["a", "b", "c"].into_iter().for_each(|service| follower.follow(service));
        assert_eq!(services(&follower), ["a", "b"], "there is no socket for c");
        connect_all(&follower);
        assert!(!follower.all_live(), "no event reports c");
        tokio::time::advance(second).await;
        ["a", "c"].into_iter().for_each(|service| follower.follow(service));
        assert_eq!(services(&follower), ["a", "c"]);
        tokio::time::advance(second / 2).await;
        follower.follow("b");
        assert_eq!(services(&follower), ["a", "c"]);
    }

    #[test]
    fn changes_are_taken_once() {
        let follower = follower(2);
        let changes = || {
            let mut changes: Vec<_> = follower.take_changed();
            changes.sort_by(|one, other| one.0.cmp(&other.0));
            changes.into_iter().map(|(id, followed)| (id, followed.is_some())).collect::<Vec<_>>()
        };
        let expected = |changes: &[(&str, bool)]| {
            changes.iter().map(|(id, is)| ((*id).to_owned(), *is)).collect::<Vec<_>>()
        };
        ["a", "b", "a"].into_iter().for_each(|service| follower.follow(service));
        assert_eq!(changes(), expected(&[("a", true), ("b", true)]));
        ["a", "c"].into_iter().for_each(|service| follower.follow(service));
        assert_eq!(changes(), expected(&[("b", false), ("c", true)]));
        assert_eq!(changes(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn silent_stream_is_not_live() {
        let follower = follower(1);
        follower.follow("a");
        connect_all(&follower);
        let service: ServiceId = "a".parse().unwrap();
        for missed in 0..EventOptions::default().silent_after {
            assert!(follower.all_live(), "{missed}");
            tokio::time::advance(std::time::Duration::from_secs(10)).await;
            follower.accepted(&service);
            follower.committed(&service);
        }
        assert!(!follower.all_live() && !follower.is_live("a"));
        assert_eq!(follower.silent_streams(), 1);
        let followed = follower.followed_services().remove(0);
        assert!(*follower.watch_silence(&followed).unwrap().borrow());
        follower.event(&followed);
        assert!(follower.all_live(), "the event reports the last commit");
        assert_eq!(follower.silent_streams(), 0);
    }

    #[test]
    fn services_with_batches_are_followed() {
        let follower = follower(9);
        let [a, b, c] = ["a", "b", "c"].map(|name| name.parse::<ServiceId>().unwrap());
        follower.recorded(Recorded::Stored(&[a]));
        follower.recorded(Recorded::Submittable(&[b]));
        let in_doubt = |number| (c.clone(), ItemId::from_bytes([number; 64]));
        let in_doubt = vec![in_doubt(1), in_doubt(2)];
        let takeover = Takeover { in_doubt, ..Takeover::default() };
        follower.recorded(Recorded::TakenOver(&takeover));
        follower.recorded(Recorded::Freed(&["d".parse().unwrap()]));
        assert_eq!(services(&follower), ["a", "b", "c"]);
        assert_eq!(follower.services().follow_count, 3, "each is followed once");
    }

    #[tokio::test(start_paused = true)]
    async fn only_commits_that_events_must_report_count_as_silence() {
        let is_silent = async |accept: Event, commit: Event, state| {
            let follower = follower(1);
            follower.follow("a");
            connect_all(&follower);
            let recorded = |event, state| {
                let id = ItemId::from_bytes([1; 64]);
                let change = Change::new("a".parse().unwrap(), id, event);
                follower.recorded(Recorded::Change { change: &change, state, next_waits: false });
            };
            for _ in 0..EventOptions::default().silent_after {
                tokio::time::advance(Duration::from_secs(10)).await;
                recorded(accept, BatchState::Pending);
                recorded(commit, state);
            }
            follower.silent_streams() == 1
        };
        let outcome = |outcome| Event::Outcome { attempt: 1, outcome };
        let accepted = outcome(Outcome::Accepted);
        let committed = Event::status(LedgerStatus::Committed);
        assert!(is_silent(accepted, committed, BatchState::Committed).await);
        let found = outcome(Outcome::Committed);
        assert!(!is_silent(accepted, found, BatchState::Committed).await);
        let pending = Event::status(LedgerStatus::Pending);
        assert!(!is_silent(pending, committed, BatchState::Committed).await);
        let invalid = Event::status(LedgerStatus::Invalid);
        assert!(!is_silent(accepted, invalid, BatchState::Invalid).await);
    }

    #[test]
    fn state_of_an_evicted_stream_is_ignored() {
        let follower = follower(1);
        follower.follow("a");
        let evicted = follower.followed_services().remove(0);
        ["b", "a"].into_iter().for_each(|service| follower.follow(service));
        follower.connected(&evicted, None);
        assert!(!follower.is_live("a"));
    }
}
