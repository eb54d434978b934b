use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use grid_batch_core::{HeaderId, ServiceId};

/// Which event socket it was: no two are the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// Which services have an event socket that a node has opened and that never broke since.
#[derive(Default)]
pub(crate) struct Watch(Mutex<State>);

#[derive(Default)]
struct State {
    opened: u64,
    services: HashMap<ServiceId, Listened>,
}

#[derive(Default)]
struct Listened {
    socket: Option<Socket>,
    last_seen: Option<HeaderId>,
}

struct Socket {
    generation: Generation,
    /// All that came was taken, and its listener waits for more.
    is_caught_up: bool,
}

impl Watch {
    /// A node has opened a socket for the service. It is the one that counts from now on.
    pub(crate) fn open(self: &Arc<Self>, service: &ServiceId) -> OpenSocket {
        let mut state = self.lock();
        state.opened += 1;
        let generation = Generation(state.opened);
        let listened = state.services.entry(service.clone()).or_default();
        listened.socket = Some(Socket { generation, is_caught_up: false });
        OpenSocket { watch: Arc::clone(self), service: service.clone(), generation }
    }

    /// The service's live socket.
    pub(crate) fn live(&self, service: &ServiceId) -> Option<Generation> {
        self.lock().services.get(service)?.socket.as_ref().map(|socket| socket.generation)
    }

    /// The service's live socket, if all that came over it was heard.
    pub(crate) fn caught_up(&self, service: &ServiceId) -> Option<Generation> {
        let state = self.lock();
        let socket = state.services.get(service)?.socket.as_ref()?;
        socket.is_caught_up.then_some(socket.generation)
    }

    /// The last transaction that was heard of at this service.
    pub(crate) fn last_seen(&self, service: &ServiceId) -> Option<HeaderId> {
        self.lock().services.get(service)?.last_seen
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket that is live until this is dropped.
pub(crate) struct OpenSocket {
    watch: Arc<Watch>,
    service: ServiceId,
    generation: Generation,
}

impl OpenSocket {
    pub(crate) fn service(&self) -> &ServiceId {
        &self.service
    }

    /// Something came; there may be more.
    pub(crate) fn mark_busy(&self) {
        self.change(|_, socket| socket.is_caught_up = false);
    }

    /// There is nothing more now.
    pub(crate) fn mark_caught_up(&self) {
        self.change(|_, socket| socket.is_caught_up = true);
    }

    pub(crate) fn mark_seen(&self, transaction: HeaderId) {
        self.change(|last_seen, _| *last_seen = Some(transaction));
    }

    fn change(&self, change: impl FnOnce(&mut Option<HeaderId>, &mut Socket)) {
        let mut state = self.watch.lock();
        let Some(listened) = state.services.get_mut(&self.service) else { return };
        if let Some(socket) = &mut listened.socket
            && socket.generation == self.generation
        {
            change(&mut listened.last_seen, socket);
        }
    }
}

impl Drop for OpenSocket {
    fn drop(&mut self) {
        let mut state = self.watch.lock();
        if let Some(listened) = state.services.get_mut(&self.service) {
            listened.socket.take_if(|socket| socket.generation == self.generation);
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
    fn a_socket_is_live_until_it_is_dropped_and_each_is_another() {
        let watch = Arc::new(Watch::default());
        assert_eq!(watch.live(&service()), None);
        let socket = watch.open(&service());
        let first = watch.live(&service()).unwrap();
        drop(socket);
        assert_eq!(watch.live(&service()), None);
        let _socket = watch.open(&service());
        assert_ne!(watch.live(&service()), Some(first));
    }

    #[test]
    fn the_end_of_a_socket_is_not_that_of_its_successor() {
        let watch = Arc::new(Watch::default());
        let first = watch.open(&service());
        let second = watch.open(&service());
        first.mark_caught_up();
        assert_eq!(watch.caught_up(&service()), None);
        drop(first);
        second.mark_caught_up();
        assert_eq!(watch.caught_up(&service()), Some(second.generation));
        second.mark_busy();
        assert_eq!(watch.caught_up(&service()), None);
    }

    #[test]
    fn what_was_seen_last_is_known_after_the_socket_broke() {
        let watch = Arc::new(Watch::default());
        let id = HeaderId::from_bytes([1; 64]);
        watch.open(&service()).mark_seen(id);
        assert_eq!(watch.last_seen(&service()), Some(id));
    }
}
