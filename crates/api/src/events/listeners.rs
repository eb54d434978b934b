use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use grid_batch_core::ClientId;

/// The requests that wait for events, of pages and of streams.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    of_clients: HashMap<ClientId, usize>,
}

impl Listeners {
    /// The most at once.
    const MOST: usize = 64;
    /// The most of one client, so that it leaves some to others.
    const MOST_OF_CLIENT: usize = 16;

    /// Counts one more, until it is dropped. `None`: there are too many.
    pub(super) fn begin(self: &Arc<Self>, client: Option<ClientId>) -> Option<Listener> {
        let mut counts = self.lock();
        let of_client =
            client.map_or(0, |client| counts.of_clients.get(&client).copied().unwrap_or(0));
        if counts.all >= Self::MOST || of_client >= Self::MOST_OF_CLIENT {
            return None;
        }
        counts.all += 1;
        if let Some(client) = client {
            counts.of_clients.insert(client, of_client + 1);
        }
        Some(Listener { listeners: Arc::clone(self), client })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request that waits for events.
#[derive(Debug)]
pub(super) struct Listener {
    listeners: Arc<Listeners>,
    client: Option<ClientId>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut counts = self.listeners.lock();
        counts.all -= 1;
        let Some(client) = self.client else { return };
        if let Some(of_client) = counts.of_clients.get_mut(&client) {
            *of_client -= 1;
            if *of_client == 0 {
                counts.of_clients.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use grid_batch_core::SignerId;

    use super::*;

    fn client(number: u8) -> Option<ClientId> {
        Some(ClientId::Key(SignerId::from_bytes([number; SignerId::BYTES])))
    }

    #[test]
    fn client_leaves_listeners_to_others() {
        let listeners = Arc::new(Listeners::default());
        let of_one: Vec<Listener> = iter::from_fn(|| listeners.begin(client(1))).collect();
        assert_eq!(of_one.len(), Listeners::MOST_OF_CLIENT);
        assert!(listeners.begin(client(2)).is_some());
        drop(of_one);
        assert!(listeners.begin(client(1)).is_some());
        assert!(listeners.lock().of_clients.is_empty(), "none is kept");
    }

    #[test]
    fn all_clients_together_are_limited() {
        let listeners = Arc::new(Listeners::default());
        let all: Vec<Listener> = iter::from_fn(|| listeners.begin(None)).collect();
        assert_eq!(all.len(), Listeners::MOST);
        assert!(listeners.begin(client(1)).is_none());
        drop(all);
        assert_eq!(listeners.lock().all, 0);
    }
}
