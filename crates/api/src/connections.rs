use std::{
    cmp::Reverse,
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_support::lock;
use log::{debug, warn};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use crate::{http::ApiError, rate_limits::LimitError};

/// The open connections. When all permits are in use, a connection that waits for a request is closed for
/// a new one: of the address with most connections, the one that has waited longest.
///
/// Fewer requests are in progress than there are permits, so that some connection always waits.
#[derive(Debug, Clone)]
pub(crate) struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: ConnectionLimits,
    open: Mutex<OpenConnections>,
    closed: Notify,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// The most open connections.
    pub(crate) connections: usize,
    /// The most requests in progress of one address.
    pub(crate) requests_of_address: usize,
}

impl ConnectionLimits {
    /// How many connections are closed when no permit is free, so that a flood does not delay others.
    fn closed_at_once(&self) -> usize {
        (self.connections / 128).max(1)
    }

    /// The most requests in progress, without those of the paths of the health.
    fn requests(&self) -> usize {
        self.connections - self.connections / 16
    }
}

#[derive(Debug, Default)]
struct OpenConnections {
    next_id: u64,
    by_id: HashMap<u64, ConnectionEntry>,
    addresses: HashMap<IpAddr, AddressCounts>,
    requests: usize,
    is_full: bool,
}

#[derive(Debug)]
struct ConnectionEntry {
    address: IpAddr,
    /// Since when it waits for a complete request header.
    waiting_since: Option<Instant>,
    /// It is about to be closed for another one.
    is_closing: bool,
    close: Arc<Notify>,
}

#[derive(Debug, Default, Clone, Copy)]
struct AddressCounts {
    connections: usize,
    requests: usize,
}

/// The right to one open connection. Dropping it returns the permit.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    shared: Arc<Shared>,
    id: u64,
    address: IpAddr,
    close: Arc<Notify>,
}

/// A request in progress. Dropping it ends the request.
#[derive(Debug)]
pub(crate) struct RequestInProgress {
    permit: Arc<ConnectionPermit>,
    /// Of which address it counts, if it counts.
    address: Option<IpAddr>,
}

impl Connections {
    /// A connection that waited less than this may have a request that was not read yet.
    const SHORTEST_WAIT: Duration = Duration::from_millis(50);
    const CHECK_INTERVAL: Duration = Duration::from_millis(10);

    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        Self(Arc::new(Shared { limits, open: Mutex::default(), closed: Notify::new() }))
    }

    /// Waits for a permit, and has another connection closed if there is none.
    pub(crate) async fn acquire(&self, address: IpAddr) -> Arc<ConnectionPermit> {
        loop {
            if let Some(permit) = self.try_acquire(address) {
                return Arc::new(permit);
            }
            // Without a notification, it may be time to close another connection.
            let _ = timeout(Self::CHECK_INTERVAL, self.0.closed.notified()).await;
        }
    }

    fn try_acquire(&self, address: IpAddr) -> Option<ConnectionPermit> {
        let mut open = lock(&self.0.open);
        let now = Instant::now();
        if open.by_id.len() >= self.0.limits.connections {
            if !open.is_full {
                open.is_full = true;
                warn!(connections = open.by_id.len();
                    "the limit of open connections is reached; idle ones are closed for new ones");
            }
            open.close_longest_waiting(self.0.limits.closed_at_once(), now);
            return None;
        }
        Some(self.0.insert(&mut open, address, now))
    }
}

impl Shared {
    fn insert(
        self: &Arc<Self>,
        open: &mut OpenConnections,
        address: IpAddr,
        now: Instant,
    ) -> ConnectionPermit {
        let id = open.next_id;
        open.next_id += 1;
        let close = Arc::new(Notify::new());
        let connection = ConnectionEntry {
            address,
            waiting_since: Some(now),
            is_closing: false,
            close: Arc::clone(&close),
        };
        open.by_id.insert(id, connection);
        open.addresses.entry(address).or_default().connections += 1;
        ConnectionPermit { shared: Arc::clone(self), id, address, close }
    }
}

impl OpenConnections {
    /// Changes the counts of an address, which is forgotten when nothing of it is left.
    fn change(&mut self, address: IpAddr, change: impl FnOnce(&mut AddressCounts)) {
        let Some(counts) = self.addresses.get_mut(&address) else { return };
        change(counts);
        if counts.connections == 0 && counts.requests == 0 {
            self.addresses.remove(&address);
        }
    }

    /// Closes so many connections, unless some are being closed already.
    fn close_longest_waiting(&mut self, count: usize, now: Instant) {
        if self.by_id.values().any(|connection| connection.is_closing) {
            return;
        }
        let addresses = &self.addresses;
        let rank = |connection: &ConnectionEntry| {
            let waited = now.duration_since(connection.waiting_since?);
            let of_address = addresses.get(&connection.address).map_or(0, |a| a.connections);
            (waited >= Connections::SHORTEST_WAIT).then_some((of_address, waited))
        };
        let waiting = self.by_id.values_mut();
        let mut waiting: Vec<_> =
            waiting.filter_map(|connection| Some((rank(connection)?, connection))).collect();
        waiting.sort_unstable_by_key(|(rank, _)| Reverse(*rank));
        for (_, connection) in waiting.into_iter().take(count) {
            connection.is_closing = true;
            connection.close.notify_one();
        }
    }

    /// The next warning is logged only after a quarter of the permits was free.
    fn note_free_permits(&mut self, limit: usize) {
        if self.is_full && self.by_id.len() <= limit - limit.div_ceil(4) {
            self.is_full = false;
            debug!("fewer connections than the limit are open");
        }
    }
}

impl ConnectionPermit {
    /// Waits until the connection must be closed for another one.
    pub(crate) async fn must_close(&self) {
        loop {
            self.close.notified().await;
            // A request may have come meanwhile.
            if lock(&self.shared.open).by_id.get(&self.id).is_none_or(|open| open.is_closing) {
                return;
            }
        }
    }

    /// Begins a request of a client, if there are not too many. Its address may be another one than that of the
    /// connection, which may be of a proxy.
    pub(crate) fn begin_request(
        self: &Arc<Self>,
        address: IpAddr,
    ) -> Result<RequestInProgress, ApiError> {
        let mut open = lock(&self.shared.open);
        let limits = self.shared.limits;
        if open.requests >= limits.requests() {
            return Err(LimitError::TooManyRequests.into());
        }
        let requests = open.addresses.get(&address).map_or(0, |counts| counts.requests);
        if requests >= limits.requests_of_address {
            return Err(LimitError::TooManyRequestsOfAddress.into());
        }
        open.addresses.entry(address).or_default().requests += 1;
        open.requests += 1;
        Ok(self.begin(&mut open, Some(address)))
    }

    /// Begins a request that is always answered at once.
    pub(crate) fn begin_health_request(self: &Arc<Self>) -> RequestInProgress {
        self.begin(&mut lock(&self.shared.open), None)
    }

    fn begin(
        self: &Arc<Self>,
        open: &mut OpenConnections,
        address: Option<IpAddr>,
    ) -> RequestInProgress {
        if let Some(connection) = open.by_id.get_mut(&self.id) {
            connection.waiting_since = None;
            connection.is_closing = false;
        }
        RequestInProgress { permit: Arc::clone(self), address }
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        let mut open = lock(&self.permit.shared.open);
        if let Some(connection) = open.by_id.get_mut(&self.permit.id) {
            connection.waiting_since = Some(Instant::now());
        }
        if let Some(address) = self.address {
            open.requests -= 1;
            open.change(address, |counts| counts.requests -= 1);
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = lock(&self.shared.open);
        open.by_id.remove(&self.id);
        open.change(self.address, |counts| counts.connections -= 1);
        open.note_free_permits(self.shared.limits.connections);
        drop(open);
        self.shared.closed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep};

    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 1));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

    fn connections(connections: usize, requests_of_address: usize) -> Connections {
        Connections::new(ConnectionLimits { connections, requests_of_address })
    }

    /// Acquires a permit while another task closes the connection that must be closed.
    async fn permit_of_another(all: &Connections, open: &mut Vec<Arc<ConnectionPermit>>) -> usize {
        let waiting = tokio::spawn({
            let all = all.clone();
            async move { all.acquire(B).await }
        });
        let mut closed = None;
        while closed.is_none() {
            sleep(Duration::from_millis(5)).await;
            closed = open.iter().position(|permit| {
                lock(&permit.shared.open).by_id.get(&permit.id).is_some_and(|open| open.is_closing)
            });
        }
        drop(open.remove(closed.unwrap()));
        open.push(waiting.await.unwrap());
        closed.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn longest_waiting_connection_gives_way() {
        let all = connections(3, 3);
        let mut open = Vec::new();
        for _ in 0..3 {
            open.push(all.acquire(A).await);
            advance(Duration::from_secs(1)).await;
        }
        let request = open[0].begin_request(A).unwrap();
        assert_eq!(permit_of_another(&all, &mut open).await, 1);
        drop(request);
        assert_eq!(permit_of_another(&all, &mut open).await, 1, "the first has just had a request");
    }

    #[tokio::test(start_paused = true)]
    async fn address_with_most_connections_gives_way() {
        let all = connections(3, 3);
        let mut open = vec![all.acquire(B).await];
        advance(Duration::from_secs(60)).await;
        open.extend([all.acquire(A).await, all.acquire(A).await]);
        advance(Duration::from_secs(1)).await;
        assert_ne!(permit_of_another(&all, &mut open).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_with_a_request_is_not_closed() {
        let all = connections(1, 1);
        let first = all.acquire(A).await;
        let request = first.begin_health_request();
        advance(Duration::from_secs(1)).await;
        assert!(timeout(Duration::from_secs(60), all.acquire(B)).await.is_err());
        drop(request);
        drop(first);
        all.acquire(B).await;
    }

    #[tokio::test(start_paused = true)]
    async fn requests_through_a_proxy_count_for_their_clients() {
        let all = connections(32, 1);
        let proxy = [all.acquire(A).await, all.acquire(A).await];
        let client = proxy[0].begin_request(B).unwrap();
        assert_eq!(
            proxy[1].begin_request(B).unwrap_err(),
            LimitError::TooManyRequestsOfAddress.into()
        );
        drop(proxy[1].begin_request(A).unwrap());
        drop(client);
        drop(proxy);
        assert!(lock(&all.0.open).addresses.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_limited_in_all_and_of_an_address() {
        let all = connections(32, 20);
        let mut permits = Vec::new();
        for _ in 0..22 {
            permits.push(all.acquire(A).await);
        }
        let mut requests: Vec<_> =
            permits[..20].iter().map(|p| p.begin_request(A).unwrap()).collect();
        let refused = permits[20].begin_request(A).unwrap_err();
        assert_eq!(refused, LimitError::TooManyRequestsOfAddress.into());
        let mut others = Vec::new();
        for _ in 0..10 {
            let permit = all.acquire(B).await;
            requests.push(permit.begin_request(B).unwrap());
            others.push(permit);
        }
        assert_eq!(others[0].begin_request(B).unwrap_err(), LimitError::TooManyRequests.into());
        drop(others[0].begin_health_request());
        requests.clear();
        permits[20].begin_request(A).unwrap();
    }
}
