//! Observations of services at each of their nodes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{ItemId, MonotonicTime, ServiceId};
use grid_batch_http::WebSocketProbe;
use grid_batch_support::lock;

use crate::{
    new_batches::ProofWait, replay::Replay, replay_wait::ReplayWait,
    unanswered_times::UnansweredTimes,
};

/// The unique number of a subscription. Later subscriptions have greater numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SubscriptionId(u64);

/// The node whose events a subscription receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum EventSource {
    /// A node to which batches are sent.
    Node,
    /// The peer at this position among the service's peers.
    Peer(usize),
    /// A node to which batches are sent, subscribed to only for the replay of the service's history.
    Replay,
}

/// The subscriptions of a service when a batch was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SubscriptionsAtPost {
    /// The live subscription at a node to which batches are sent.
    pub(crate) node: Option<SubscriptionId>,
    /// The last subscription that was registered, at any node and for any service.
    pub(crate) newest: SubscriptionId,
}

/// The observations of each service at each of its nodes.
#[derive(Default)]
pub(crate) struct ObservedNodes(Mutex<State>);

#[derive(Default)]
struct State {
    last_id: SubscriptionId,
    nodes: HashMap<(ServiceId, EventSource), Box<ObservedNode>>,
    /// When there are this many entries, those without a subscription are removed.
    cleaned_at: usize,
}

/// The observations of a service at one node: its live event subscription, what earlier ones have shown, and when the
/// node did not answer.
#[derive(Default)]
pub(crate) struct ObservedNode {
    had_subscription: bool,
    live: Option<Box<Subscription>>,
    /// The last subscription that broke, which happens when its node ends. A subscription that was given up did not
    /// break.
    last_broken: Option<SubscriptionId>,
    /// The last event, if the service has more transactions than one page of the replay.
    last_event: Option<Box<ItemId>>,
    /// The generation of the store in which the last subscription was continuous, if its node ended it.
    continuous_in: Option<i64>,
    /// When the node last ended a subscription, or could not be reached.
    away_at: MonotonicTime,
    pub(crate) outages: UnansweredTimes,
    pub(crate) replay_wait: ReplayWait,
    pub(crate) proof_wait: ProofWait,
}

/// A live event subscription.
struct Subscription {
    id: SubscriptionId,
    /// Whether all received events were processed.
    is_caught_up: bool,
    /// The number of received events.
    received: u64,
    replay: Replay,
    probe: Option<WebSocketProbe>,
    /// The generation of the store in which the subscription is *continuous*, which means that it has shown everything
    /// that was committed since the history of the service was known.
    continuous_in: Option<i64>,
}

/// What a subscription has received.
#[derive(Debug, Clone)]
pub(crate) struct SubscriptionView {
    pub(crate) id: SubscriptionId,
    pub(crate) received: u64,
    pub(crate) probe: Option<WebSocketProbe>,
}

impl State {
    /// Limit on observations without a subscription, because clients choose the names of services.
    const LIMIT: usize = 100_000;

    fn entry(&mut self, service: &ServiceId, source: EventSource) -> &mut ObservedNode {
        let key = (service.clone(), source);
        if self.nodes.len() >= self.cleaned_at.max(Self::LIMIT) && !self.nodes.contains_key(&key) {
            self.nodes.retain(|_, node| node.had_subscription);
            self.cleaned_at = 2 * self.nodes.len();
        }
        self.nodes.entry(key).or_default()
    }
}

impl ObservedNodes {
    pub(crate) fn read<T>(
        &self,
        service: &ServiceId,
        source: EventSource,
        read: impl FnOnce(&ObservedNode) -> T,
    ) -> T {
        let nothing = ObservedNode::default();
        let state = lock(&self.0);
        read(state.nodes.get(&(service.clone(), source)).map_or(&nothing, Box::as_ref))
    }

    pub(crate) fn update<T>(
        &self,
        service: &ServiceId,
        source: EventSource,
        update: impl FnOnce(&mut ObservedNode) -> T,
    ) -> T {
        update(lock(&self.0).entry(service, source))
    }

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
        let node = state.entry(service, source);
        node.had_subscription = true;
        node.replay_wait.opened(now);
        let is_soon = now.since(node.away_at) <= ObservedNode::OPENED_SOON;
        let continuous_in = node.continuous_in.take().filter(|_| is_soon);
        let (is_caught_up, received) = (false, 0);
        let live = Subscription { id, is_caught_up, received, replay, probe, continuous_in };
        node.live = Some(Box::new(live));
        LiveSubscription { nodes: Arc::clone(self), service: service.clone(), source, id }
    }

    /// The service's subscriptions now.
    pub(crate) fn at_post(&self, service: &ServiceId) -> SubscriptionsAtPost {
        let state = lock(&self.0);
        let node = state.nodes.get(&(service.clone(), EventSource::Node));
        let live = node.and_then(|node| node.live.as_ref());
        SubscriptionsAtPost { node: live.map(|live| live.id), newest: state.last_id }
    }

    /// The service's live subscription at a node to which batches are sent, if all events that it received were
    /// processed.
    pub(crate) fn caught_up(&self, service: &ServiceId) -> Option<SubscriptionId> {
        self.read(service, EventSource::Node, |node| {
            node.live.as_ref().filter(|live| live.is_caught_up).map(|live| live.id)
        })
    }
}

impl ObservedNode {
    /// How soon after a node was away a subscription must be opened, so that the node still has the statuses of all
    /// batches that it has committed since it came back.
    const OPENED_SOON: Duration = Duration::from_secs(10);

    /// This subscription, if it is live.
    fn live(&mut self, id: SubscriptionId) -> Option<&mut Subscription> {
        self.live.as_deref_mut().filter(|live| live.id == id)
    }

    /// Whether the live subscription has shown everything that was committed since the history of the service was
    /// known.
    pub(crate) fn is_continuous(&self, generation: i64) -> bool {
        self.live.as_ref().is_some_and(|live| live.continuous_in == Some(generation))
    }

    /// Records that all commits until now are accounted for, if this subscription is still live.
    pub(crate) fn set_continuous(&mut self, id: SubscriptionId, generation: i64) {
        if let Some(live) = self.live(id) {
            live.continuous_in = Some(generation);
        }
    }

    /// Records that the node could not be reached at this time.
    pub(crate) fn mark_away(&mut self, at: MonotonicTime) {
        self.away_at = self.away_at.max(at);
    }

    /// Whether this subscription, or a later one, broke.
    pub(crate) fn has_broken(&self, first: SubscriptionId) -> bool {
        self.last_broken.is_some_and(|id| id >= first)
    }

    /// What the live subscription has received.
    pub(crate) fn view(&self) -> Option<SubscriptionView> {
        let live = self.live.as_ref()?;
        Some(SubscriptionView { id: live.id, received: live.received, probe: live.probe.clone() })
    }

    /// Records whether the node has sent all of the replay. Returns whether this subscription is live and has shown
    /// every transaction of the service.
    pub(crate) fn check_replay(&mut self, id: SubscriptionId, has_ended: bool) -> bool {
        let Some(live) = self.live(id) else { return false };
        if has_ended {
            live.replay.end();
        }
        live.replay.is_whole()
    }

    /// The number of the service's transactions, if the live subscription may have shown all of them.
    pub(crate) fn replayed(&self) -> Option<usize> {
        self.live.as_ref()?.replay.len()
    }

    /// The event after which a new subscription continues. `None`: it receives all events, because they are unknown or
    /// few.
    pub(crate) fn resume_after(&self) -> Option<ItemId> {
        self.last_event.as_deref().copied()
    }
}

/// A subscription that is live until this is dropped.
pub(crate) struct LiveSubscription {
    nodes: Arc<ObservedNodes>,
    pub(crate) service: ServiceId,
    source: EventSource,
    pub(crate) id: SubscriptionId,
}

impl LiveSubscription {
    /// Records that the subscription ended without being given up. A node that ended it because it stops commits
    /// nothing until it is back.
    pub(crate) fn mark_broken(&self, is_ended_by_node: bool, now: MonotonicTime) {
        self.nodes.update(&self.service, self.source, |node| {
            node.outages.add(now, now);
            node.replay_wait.broken();
            let Some(continuous_in) = node.live(self.id).map(|live| live.continuous_in) else {
                return;
            };
            node.last_broken = Some(self.id);
            if is_ended_by_node {
                (node.continuous_in, node.away_at) = (continuous_in, now);
            }
        });
    }

    /// Records that an event was received and there may be more.
    pub(crate) fn mark_behind(&self) {
        self.update(|live| {
            live.is_caught_up = false;
            live.received += 1;
        });
    }

    /// Records that there are no more events at present.
    pub(crate) fn mark_caught_up(&self) {
        self.update(|live| live.is_caught_up = true);
    }

    pub(crate) fn set_last_event(&self, transaction: ItemId) {
        self.nodes.update(&self.service, self.source, |node| {
            let Some(live) = node.live(self.id) else { return };
            live.replay.receive(transaction);
            if live.replay.len().is_none() || node.last_event.is_some() {
                node.last_event = Some(Box::new(transaction));
            }
        });
    }

    fn update(&self, update: impl FnOnce(&mut Subscription)) {
        self.nodes.update(&self.service, self.source, |node| node.live(self.id).map(update));
    }
}

impl Drop for LiveSubscription {
    fn drop(&mut self) {
        let mut state = lock(&self.nodes.0);
        let key = (self.service.clone(), self.source);
        let Some(node) = state.nodes.get_mut(&key) else { return };
        let has_ended = node.live.take_if(|live| live.id == self.id).is_some();
        // Nothing else is asked about it, unless it tells the next one where to continue.
        if has_ended && self.source == EventSource::Replay && node.last_event.is_none() {
            state.nodes.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> ServiceId {
        "a::b".parse().unwrap()
    }

    fn register(nodes: &Arc<ObservedNodes>) -> LiveSubscription {
        let now = MonotonicTime::default();
        nodes.register(&service(), EventSource::Node, Replay::from_start(), None, now)
    }

    #[test]
    fn subscription_is_live_until_dropped_and_has_its_own_id() {
        let nodes = Arc::new(ObservedNodes::default());
        assert_eq!(nodes.at_post(&service()).node, None);
        let live = register(&nodes);
        let first = nodes.at_post(&service()).node.unwrap();
        drop(live);
        assert_eq!(nodes.at_post(&service()).node, None);
        let _live = register(&nodes);
        assert_ne!(nodes.at_post(&service()).node, Some(first));
    }

    #[test]
    fn end_of_a_subscription_does_not_end_its_successor() {
        let nodes = Arc::new(ObservedNodes::default());
        let first = register(&nodes);
        let second = register(&nodes);
        first.mark_caught_up();
        assert_eq!(nodes.caught_up(&service()), None);
        drop(first);
        second.mark_caught_up();
        assert_eq!(nodes.caught_up(&service()), Some(second.id));
        second.mark_behind();
        assert_eq!(nodes.caught_up(&service()), None);
    }

    #[test]
    fn continuity_survives_only_a_break_by_the_node() {
        let at = |seconds| MonotonicTime::default().plus(Duration::from_secs(seconds));
        let is_continuous_after = |end: fn(&LiveSubscription, MonotonicTime), reopened_at| {
            let nodes = Arc::new(ObservedNodes::default());
            let live = register(&nodes);
            nodes.update(&service(), EventSource::Node, |node| node.set_continuous(live.id, 1));
            let is_continuous = |generation| {
                nodes.read(&service(), EventSource::Node, |node| node.is_continuous(generation))
            };
            assert!(is_continuous(1));
            assert!(!is_continuous(2), "the store went back");
            end(&live, at(1));
            drop(live);
            assert!(!is_continuous(1));
            let replay = Replay::from_start();
            let now = at(reopened_at);
            let _live = nodes.register(&service(), EventSource::Node, replay, None, now);
            is_continuous(1)
        };
        assert!(is_continuous_after(|live, now| live.mark_broken(true, now), 11));
        assert!(!is_continuous_after(|live, now| live.mark_broken(true, now), 12));
        assert!(!is_continuous_after(|live, now| live.mark_broken(false, now), 1));
        assert!(!is_continuous_after(|_, _| {}, 1));
    }

    #[test]
    fn subscription_resumes_only_a_service_with_a_long_history() {
        let nodes = Arc::new(ObservedNodes::default());
        let resume_after = || nodes.read(&service(), EventSource::Node, ObservedNode::resume_after);
        let id = |number| ItemId::from_bytes([number; 64]);
        let live = register(&nodes);
        (0..63).for_each(|number| live.set_last_event(id(number)));
        assert_eq!(resume_after(), None);
        live.set_last_event(id(63));
        drop(live);
        assert_eq!(resume_after(), Some(id(63)));
    }

    #[test]
    fn subscriptions_at_a_post_were_registered_before_it() {
        let nodes = Arc::new(ObservedNodes::default());
        let _peer = nodes.register(
            &service(),
            EventSource::Peer(0),
            Replay::from_start(),
            None,
            MonotonicTime::default(),
        );
        let at_post = nodes.at_post(&service());
        assert_eq!(at_post.node, None);
        let id = |source| nodes.read(&service(), source, ObservedNode::view).unwrap().id;
        let _node = register(&nodes);
        assert!(id(EventSource::Peer(0)) <= at_post.newest);
        assert!(id(EventSource::Node) > at_post.newest);
        assert_eq!(nodes.at_post(&service()).node, Some(id(EventSource::Node)));
    }
}
