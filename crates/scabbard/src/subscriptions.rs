use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{ItemId, MonotonicTime, ServiceId};
use grid_batch_http::WebSocketProbe;
use grid_batch_support::lock;

use crate::replay::Replay;

/// The number of a subscription; no two subscriptions have the same, and later ones have greater ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SubscriptionId(u64);

/// The node whose events a subscription receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum EventSource {
    /// A node that batches are sent to.
    Node,
    /// The peer at this position among the service's peers.
    Peer(usize),
    /// A node that batches are sent to, only to have it replay the history of the service.
    Replay,
}

/// The subscriptions of a service when a batch was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SubscriptionsAtPost {
    /// The live subscription at a node that batches are sent to.
    pub(crate) node: Option<SubscriptionId>,
    /// The last subscription that was registered, at any node and for any service.
    pub(crate) newest: SubscriptionId,
}

/// The live event subscriptions of each service, and the last event that was received.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<SubscriptionsState>);

#[derive(Default)]
struct SubscriptionsState {
    last_id: SubscriptionId,
    services: HashMap<(ServiceId, EventSource), ServiceEvents>,
}

#[derive(Default)]
struct ServiceEvents {
    subscription: Option<SubscriptionState>,
    known: KnownEvents,
}

/// What is known of a service's events, also after a subscription has ended.
#[derive(Default)]
struct KnownEvents {
    /// The last subscription that broke, as it does when its node ends. One that was given up did not.
    last_broken: Option<SubscriptionId>,
    last_event: Option<ItemId>,
    /// The service has more transactions than one page of the replay.
    is_long: bool,
    /// The generation of the store in which the last subscription was continuous, if its node ended it.
    continuous_in: Option<i64>,
    /// When the node last ended a subscription, or could not be reached.
    away_at: MonotonicTime,
}

struct SubscriptionState {
    id: SubscriptionId,
    /// All received events were processed.
    is_caught_up: bool,
    /// The number of received events.
    received: u64,
    replay: Replay,
    probe: Option<WebSocketProbe>,
    /// The generation of the store in which the subscription is *continuous*: it has shown everything that was
    /// committed since the history of the service was known.
    continuous_in: Option<i64>,
}

/// What a subscription has received.
#[derive(Debug, Clone)]
pub(crate) struct SubscriptionView {
    pub(crate) id: SubscriptionId,
    pub(crate) received: u64,
    pub(crate) probe: Option<WebSocketProbe>,
}

impl Subscriptions {
    /// How long after a node was away a subscription must be opened, so that the node still has the statuses of
    /// all batches that it has committed since it came back.
    const OPENED_SOON: Duration = Duration::from_secs(10);

    /// Registers a websocket that a node has opened for the service. It replaces an earlier one.
    pub(crate) fn register(
        self: &Arc<Self>,
        service: &ServiceId,
        source: EventSource,
        replay: Replay,
        probe: Option<WebSocketProbe>,
        now: MonotonicTime,
    ) -> LiveSubscription {
        let mut state = lock(&self.0);
        state.last_id.0 += 1;
        let id = state.last_id;
        let key = (service.clone(), source);
        let events = state.services.entry(key.clone()).or_default();
        let is_soon = now.since(events.known.away_at) <= Self::OPENED_SOON;
        let continuous_in = events.known.continuous_in.take().filter(|_| is_soon);
        events.subscription = Some(SubscriptionState {
            id,
            is_caught_up: false,
            received: 0,
            replay,
            probe,
            continuous_in,
        });
        LiveSubscription { subscriptions: Arc::clone(self), key, id }
    }

    /// The service's live subscription at a node that batches are sent to, if all events that it
    /// received were processed.
    pub(crate) fn caught_up(&self, service: &ServiceId) -> Option<SubscriptionId> {
        self.read(service, EventSource::Node, |live| live.is_caught_up.then_some(live.id))?
    }

    /// The service's subscriptions now.
    pub(crate) fn at_post(&self, service: &ServiceId) -> SubscriptionsAtPost {
        let state = lock(&self.0);
        let events = state.services.get(&(service.clone(), EventSource::Node));
        let live = events.and_then(|events| events.subscription.as_ref());
        SubscriptionsAtPost { node: live.map(|live| live.id), newest: state.last_id }
    }

    /// Whether the live subscription at a node that batches are sent to has shown everything that was committed
    /// since the history of the service was known.
    pub(crate) fn is_continuous(&self, service: &ServiceId, generation: i64) -> bool {
        let is_continuous = |live: &SubscriptionState| live.continuous_in == Some(generation);
        self.read(service, EventSource::Node, is_continuous).unwrap_or(false)
    }

    /// Records that what was committed until now is accounted for, if this subscription is still live.
    pub(crate) fn set_continuous(&self, service: &ServiceId, id: SubscriptionId, generation: i64) {
        let key = (service.clone(), EventSource::Node);
        self.update(&key, id, |_, live| live.continuous_in = Some(generation));
    }

    /// Records that the node could not be reached then.
    pub(crate) fn mark_away(&self, service: &ServiceId, source: EventSource, at: MonotonicTime) {
        let mut state = lock(&self.0);
        let known = &mut state.services.entry((service.clone(), source)).or_default().known;
        known.away_at = known.away_at.max(at);
    }

    /// Whether this subscription at a node that batches are sent to, or a later one, broke.
    pub(crate) fn has_broken(&self, service: &ServiceId, first: SubscriptionId) -> bool {
        let state = lock(&self.0);
        let events = state.services.get(&(service.clone(), EventSource::Node));
        events.and_then(|events| events.known.last_broken).is_some_and(|id| id >= first)
    }

    /// What the service's live subscription at this node has received.
    pub(crate) fn view(
        &self,
        service: &ServiceId,
        source: EventSource,
    ) -> Option<SubscriptionView> {
        self.read(service, source, |live| SubscriptionView {
            id: live.id,
            received: live.received,
            probe: live.probe.clone(),
        })
    }

    /// Records that the node has sent all of the replay.
    pub(crate) fn end_replay(&self, service: &ServiceId, source: EventSource, id: SubscriptionId) {
        self.update(&(service.clone(), source), id, |_, live| live.replay.end());
    }

    /// Whether this subscription is live and has shown every transaction of the service.
    pub(crate) fn is_whole(
        &self,
        service: &ServiceId,
        source: EventSource,
        id: SubscriptionId,
    ) -> bool {
        self.read(service, source, |live| live.id == id && live.replay.is_whole()).unwrap_or(false)
    }

    /// The number of transactions that the service has, if the live subscription may have shown all.
    pub(crate) fn replayed(&self, service: &ServiceId, source: EventSource) -> Option<usize> {
        self.read(service, source, |live| live.replay.len())?
    }

    /// The event after which a new subscription continues. `None`: it receives all events, because
    /// they are unknown or few.
    pub(crate) fn resume_after(&self, service: &ServiceId, source: EventSource) -> Option<ItemId> {
        let state = lock(&self.0);
        let known = &state.services.get(&(service.clone(), source))?.known;
        known.last_event.filter(|_| known.is_long)
    }

    /// Changes this subscription if it is live.
    fn update(
        &self,
        key: &(ServiceId, EventSource),
        id: SubscriptionId,
        update: impl FnOnce(&mut KnownEvents, &mut SubscriptionState),
    ) {
        let mut state = lock(&self.0);
        let Some(events) = state.services.get_mut(key) else { return };
        if let Some(live) = events.subscription.as_mut().filter(|live| live.id == id) {
            update(&mut events.known, live);
        }
    }

    fn read<T>(
        &self,
        service: &ServiceId,
        source: EventSource,
        read: impl FnOnce(&SubscriptionState) -> T,
    ) -> Option<T> {
        let state = lock(&self.0);
        state.services.get(&(service.clone(), source))?.subscription.as_ref().map(read)
    }
}

/// A subscription that is live until this is dropped.
pub(crate) struct LiveSubscription {
    subscriptions: Arc<Subscriptions>,
    key: (ServiceId, EventSource),
    id: SubscriptionId,
}

impl LiveSubscription {
    pub(crate) fn service(&self) -> &ServiceId {
        &self.key.0
    }

    pub(crate) fn source(&self) -> EventSource {
        self.key.1
    }

    /// The subscription ended without being given up.
    pub(crate) fn mark_broken(&self) {
        self.update(|known, live| known.last_broken = Some(live.id));
    }

    /// The node ended the subscription, as it does when it stops. It commits nothing before it is back.
    pub(crate) fn mark_ended_by_node(&self, now: MonotonicTime) {
        self.update(|known, live| {
            known.continuous_in = live.continuous_in;
            known.away_at = now;
        });
    }

    /// An event was received; there may be more.
    pub(crate) fn mark_behind(&self) {
        self.update(|_, live| {
            live.is_caught_up = false;
            live.received += 1;
        });
    }

    /// There are no more events at present.
    pub(crate) fn mark_caught_up(&self) {
        self.update(|_, live| live.is_caught_up = true);
    }

    pub(crate) fn set_last_event(&self, transaction: ItemId) {
        self.update(|known, live| {
            live.replay.receive(transaction);
            known.last_event = Some(transaction);
            known.is_long |= live.replay.len().is_none();
        });
    }

    fn update(&self, update: impl FnOnce(&mut KnownEvents, &mut SubscriptionState)) {
        self.subscriptions.update(&self.key, self.id, update);
    }
}

impl Drop for LiveSubscription {
    fn drop(&mut self) {
        let mut state = lock(&self.subscriptions.0);
        if let Some(events) = state.services.get_mut(&self.key) {
            events.subscription.take_if(|live| live.id == self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> ServiceId {
        "a::b".parse().unwrap()
    }

    fn register(subscriptions: &Arc<Subscriptions>) -> LiveSubscription {
        let now = MonotonicTime::default();
        subscriptions.register(&service(), EventSource::Node, Replay::from_start(), None, now)
    }

    #[test]
    fn subscription_is_live_until_dropped_and_has_its_own_id() {
        let subscriptions = Arc::new(Subscriptions::default());
        assert_eq!(subscriptions.at_post(&service()).node, None);
        let live = register(&subscriptions);
        let first = subscriptions.at_post(&service()).node.unwrap();
        drop(live);
        assert_eq!(subscriptions.at_post(&service()).node, None);
        let _live = register(&subscriptions);
        assert_ne!(subscriptions.at_post(&service()).node, Some(first));
    }

    #[test]
    fn end_of_a_subscription_does_not_end_its_successor() {
        let subscriptions = Arc::new(Subscriptions::default());
        let first = register(&subscriptions);
        let second = register(&subscriptions);
        first.mark_caught_up();
        assert_eq!(subscriptions.caught_up(&service()), None);
        drop(first);
        second.mark_caught_up();
        assert_eq!(subscriptions.caught_up(&service()), Some(second.id));
        second.mark_behind();
        assert_eq!(subscriptions.caught_up(&service()), None);
    }

    #[test]
    fn continuity_lasts_only_over_a_break_by_the_node() {
        let at = |seconds| MonotonicTime::default().plus(Duration::from_secs(seconds));
        let is_continuous_after = |end: fn(&LiveSubscription, MonotonicTime), reopened_at| {
            let subscriptions = Arc::new(Subscriptions::default());
            let live = register(&subscriptions);
            subscriptions.set_continuous(&service(), live.id, 1);
            assert!(subscriptions.is_continuous(&service(), 1));
            assert!(!subscriptions.is_continuous(&service(), 2), "the store went back");
            end(&live, at(1));
            drop(live);
            assert!(!subscriptions.is_continuous(&service(), 1));
            let replay = Replay::from_start();
            let now = at(reopened_at);
            let _live = subscriptions.register(&service(), EventSource::Node, replay, None, now);
            subscriptions.is_continuous(&service(), 1)
        };
        assert!(is_continuous_after(LiveSubscription::mark_ended_by_node, 11));
        assert!(!is_continuous_after(LiveSubscription::mark_ended_by_node, 12));
        assert!(!is_continuous_after(|live, _| live.mark_broken(), 1));
        assert!(!is_continuous_after(|_, _| {}, 1));
    }

    #[test]
    fn subscription_resumes_only_a_service_with_a_long_history() {
        let subscriptions = Arc::new(Subscriptions::default());
        let resume_after = || subscriptions.resume_after(&service(), EventSource::Node);
        let id = |number| ItemId::from_bytes([number; 64]);
        let live = register(&subscriptions);
        (0..63).for_each(|number| live.set_last_event(id(number)));
        assert_eq!(resume_after(), None);
        live.set_last_event(id(63));
        drop(live);
        assert_eq!(resume_after(), Some(id(63)));
    }

    #[test]
    fn subscriptions_at_a_post_were_registered_before_it() {
        let subscriptions = Arc::new(Subscriptions::default());
        let _peer = subscriptions.register(
            &service(),
            EventSource::Peer(0),
            Replay::from_start(),
            None,
            MonotonicTime::default(),
        );
        let at_post = subscriptions.at_post(&service());
        assert_eq!(at_post.node, None);
        let id = |source| subscriptions.view(&service(), source).unwrap().id;
        let _node = register(&subscriptions);
        assert!(id(EventSource::Peer(0)) <= at_post.newest);
        assert!(id(EventSource::Node) > at_post.newest);
        assert_eq!(subscriptions.at_post(&service()).node, Some(id(EventSource::Node)));
    }
}
