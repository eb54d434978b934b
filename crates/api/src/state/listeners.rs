use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use grid_batch_support::lock;

use crate::rate_limits::ClientKey;

/// The requests that wait for events: of pages, of streams, and of websockets of nodes.
#[derive(Debug, Default)]
pub(crate) struct Listeners(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    of_clients: HashMap<ClientKey, usize>,
}

impl Listeners {
    /// The most at once.
    const MOST: usize = 64;
    /// The most of one client, or of an address whose clients have not authenticated, so that it leaves some to others.
    const MOST_OF_CLIENT: usize = 16;

    /// Counts one more, until it is dropped. `None`: there are too many.
    pub(crate) fn begin(self: &Arc<Self>, client: ClientKey) -> Option<WaitingListener> {
        let mut counts = lock(&self.0);
        let of_client = counts.of_clients.get(&client).copied().unwrap_or(0);
        if counts.all >= Self::MOST || of_client >= Self::MOST_OF_CLIENT {
            return None;
        }
        counts.all += 1;
        counts.of_clients.insert(client, of_client + 1);
        Some(WaitingListener { listeners: Arc::clone(self), client })
    }
}

/// One request that waits for events.
#[derive(Debug)]
pub(crate) struct WaitingListener {
    listeners: Arc<Listeners>,
    client: ClientKey,
}

impl Drop for WaitingListener {
    fn drop(&mut self) {
        let mut counts = lock(&self.listeners.0);
        counts.all -= 1;
        if let Some(of_client) = counts.of_clients.get_mut(&self.client) {
            *of_client -= 1;
            if *of_client == 0 {
                counts.of_clients.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{iter, net::IpAddr};

    use grid_batch_core::batches::{ClientId, SignerId};

    use super::*;

    fn client(number: u8) -> ClientKey {
        ClientKey::Client(ClientId::Key(SignerId::from_bytes([number; SignerId::BYTES])))
    }

    fn address(number: u8) -> ClientKey {
        ClientKey::Address(IpAddr::from([192, 0, 2, number]))
    }

    #[test]
    fn client_or_address_leaves_listeners_to_others() {
        for (one, other) in [(client(1), client(2)), (address(1), address(2))] {
            let listeners = Arc::new(Listeners::default());
            let of_one: Vec<WaitingListener> = iter::from_fn(|| listeners.begin(one)).collect();
            assert_eq!(of_one.len(), Listeners::MOST_OF_CLIENT);
            assert!(listeners.begin(other).is_some());
            drop(of_one);
            assert!(listeners.begin(one).is_some());
            assert!(lock(&listeners.0).of_clients.is_empty(), "none is kept");
        }
    }

    #[test]
    fn all_clients_together_are_limited() {
        let listeners = Arc::new(Listeners::default());
        let all: Vec<WaitingListener> =
            (0..=u8::MAX).filter_map(|number| listeners.begin(address(number))).collect();
        assert_eq!(all.len(), Listeners::MOST);
        assert!(listeners.begin(client(1)).is_none());
        drop(all);
        assert_eq!(lock(&listeners.0).all, 0);
    }
}
