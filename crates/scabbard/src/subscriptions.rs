use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use grid_batch_core::{HeaderId, ServiceId};

/// The number of a subscription; no two subscriptions have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SubscriptionId(u64);

/// The live event subscription of each service, and the last event that was received.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<SubscriptionsState>);

#[derive(Default)]
struct SubscriptionsState {
    last_id: u64,
    services: HashMap<ServiceId, ServiceEvents>,
}

#[derive(Default)]
struct ServiceEvents {
    subscription: Option<SubscriptionState>,
    last_event: Option<HeaderId>,
}

struct SubscriptionState {
    id: SubscriptionId,
    /// All received events were processed.
    is_caught_up: bool,
}

impl Subscriptions {
    /// Registers a websocket that a node has opened for the service. It replaces an earlier one.
    pub(crate) fn register(self: &Arc<Self>, service: &ServiceId) -> LiveSubscription {
        let mut state = self.lock();
        state.last_id += 1;
        let id = SubscriptionId(state.last_id);
        let events = state.services.entry(service.clone()).or_default();
        events.subscription = Some(SubscriptionState { id, is_caught_up: false });
        LiveSubscription { subscriptions: Arc::clone(self), service: service.clone(), id }
    }

    /// The service's live subscription.
    pub(crate) fn live(&self, service: &ServiceId) -> Option<SubscriptionId> {
        self.lock().services.get(service)?.subscription.as_ref().map(|live| live.id)
    }

    /// The service's live subscription, if all events that it received were processed.
    pub(crate) fn caught_up(&self, service: &ServiceId) -> Option<SubscriptionId> {
        let state = self.lock();
        let live = state.services.get(service)?.subscription.as_ref()?;
        live.is_caught_up.then_some(live.id)
    }

    /// The transaction of the service's last event.
    pub(crate) fn last_event(&self, service: &ServiceId) -> Option<HeaderId> {
        self.lock().services.get(service)?.last_event
    }

    fn lock(&self) -> MutexGuard<'_, SubscriptionsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscription that is live until this is dropped.
pub(crate) struct LiveSubscription {
    subscriptions: Arc<Subscriptions>,
    service: ServiceId,
    id: SubscriptionId,
}

impl LiveSubscription {
    pub(crate) fn service(&self) -> &ServiceId {
        &self.service
    }

    /// An event was received; there may be more.
    pub(crate) fn mark_behind(&self) {
        self.update(|_, live| live.is_caught_up = false);
    }

    /// There are no more events at present.
    pub(crate) fn mark_caught_up(&self) {
        self.update(|_, live| live.is_caught_up = true);
    }

    pub(crate) fn set_last_event(&self, transaction: HeaderId) {
        self.update(|last_event, _| *last_event = Some(transaction));
    }

    fn update(&self, update: impl FnOnce(&mut Option<HeaderId>, &mut SubscriptionState)) {
        let mut state = self.subscriptions.lock();
        let Some(events) = state.services.get_mut(&self.service) else { return };
        if let Some(live) = &mut events.subscription
            && live.id == self.id
        {
            update(&mut events.last_event, live);
        }
    }
}

impl Drop for LiveSubscription {
    fn drop(&mut self) {
        let mut state = self.subscriptions.lock();
        if let Some(events) = state.services.get_mut(&self.service) {
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

    #[test]
    fn subscription_is_live_until_dropped_and_has_its_own_id() {
        let subscriptions = Arc::new(Subscriptions::default());
        assert_eq!(subscriptions.live(&service()), None);
        let live = subscriptions.register(&service());
        let first = subscriptions.live(&service()).unwrap();
        drop(live);
        assert_eq!(subscriptions.live(&service()), None);
        let _live = subscriptions.register(&service());
        assert_ne!(subscriptions.live(&service()), Some(first));
    }

    #[test]
    fn end_of_a_subscription_does_not_end_its_successor() {
        let subscriptions = Arc::new(Subscriptions::default());
        let first = subscriptions.register(&service());
        let second = subscriptions.register(&service());
        first.mark_caught_up();
        assert_eq!(subscriptions.caught_up(&service()), None);
        drop(first);
        second.mark_caught_up();
        assert_eq!(subscriptions.caught_up(&service()), Some(second.id));
        second.mark_behind();
        assert_eq!(subscriptions.caught_up(&service()), None);
    }

    #[test]
    fn last_event_is_known_after_the_subscription_ended() {
        let subscriptions = Arc::new(Subscriptions::default());
        let id = HeaderId::from_bytes([1; 64]);
        subscriptions.register(&service()).set_last_event(id);
        assert_eq!(subscriptions.last_event(&service()), Some(id));
    }
}
