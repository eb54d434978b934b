//! Limits how many batches of clients and services, and how many declared addresses of signers, are stored in a
//! second, and tells when to try again.

mod bucket;
mod declared_addresses;
mod error;
mod full_queues;
mod rate;

use std::{net::IpAddr, sync::Arc, time::Duration};

use grid_batch_core::batches::{ClientId, NewBatch};
use grid_batch_core::{Clock, MonotonicTime, ServiceId};

pub(crate) use bucket::Buckets;
use declared_addresses::DeclaredAddresses;
pub(crate) use error::LimitError;
pub(crate) use full_queues::FullQueues;
pub use rate::{Rate, RateError};

/// Who a limit of clients counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ClientKey {
    Client(ClientId),
    /// A client that has not authenticated.
    Address(IpAddr),
}

/// The most batches a second. `None`: any number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Of one client: a token, a key, or an address without either.
    pub client: Option<Rate>,
    /// Of one service, from all clients.
    pub service: Option<Rate>,
    /// Limit batches that declare many addresses, because each address is stored.
    pub declared_addresses: bool,
}

/// The parts of their rates that clients and services have used. It is in the memory of this instance.
#[derive(Debug)]
pub(crate) struct Rates {
    clients: Option<Buckets<ClientKey>>,
    services: Option<Buckets<ServiceId>>,
    addresses: Option<DeclaredAddresses>,
    full_queues: FullQueues<ServiceId>,
    full_clients: FullQueues<ClientId>,
    clock: Arc<dyn Clock>,
}

impl Rates {
    pub(crate) fn new(limits: RateLimits, clock: Arc<dyn Clock>) -> Self {
        Self {
            clients: limits.client.map(Buckets::new),
            services: limits.service.map(Buckets::new),
            addresses: limits.declared_addresses.then(DeclaredAddresses::new),
            full_queues: FullQueues::default(),
            full_clients: FullQueues::default(),
            clock,
        }
    }

    fn time(&self) -> MonotonicTime {
        self.clock.monotonic()
    }

    /// Counts the first batch of a request of a client. The error is the time until it has another one.
    pub(crate) fn begin_of_client(&self, client: ClientKey) -> Result<(), Duration> {
        self.clients.as_ref().map_or(Ok(()), |clients| clients.take(&client, self.time()))
    }

    /// The same for a service.
    pub(crate) fn begin_of_service(&self, service_id: &ServiceId) -> Result<(), LimitError> {
        let Some(services) = &self.services else { return Ok(()) };
        let over_rate = |wait| LimitError::RateOfService { service_id: service_id.clone(), wait };
        services.take(service_id, self.time()).map_err(over_rate)
    }

    /// Counts the batches of a request after the first, which was counted. They are not refused any more,
    /// and the client waits for all of them the next time.
    pub(crate) fn charge(&self, client: ClientKey, service_id: &ServiceId, batches: usize) {
        let others = batches.saturating_sub(1);
        if others == 0 {
            return;
        }
        if let Some(clients) = &self.clients {
            clients.charge(&client, others, self.time());
        }
        if let Some(services) = &self.services {
            services.charge(service_id, others, self.time());
        }
    }

    /// Counts what the batches of a request declare. The error is the time until their signers may declare more.
    pub(crate) fn take_addresses(&self, batches: &[NewBatch]) -> Result<(), Duration> {
        self.addresses.as_ref().map_or(Ok(()), |it| it.take(batches, self.time()))
    }

    /// Counts batches that were stored, for [`wait_for_place`](Self::wait_for_place).
    pub(crate) fn stored(&self, service_id: &ServiceId, client: Option<ClientId>, batches: usize) {
        self.full_queues.stored(service_id, batches);
        if let Some(client) = client {
            self.full_clients.stored(&client, batches);
        }
    }

    /// After how long a service whose queue is full will have a place, as far as its present rate tells.
    pub(crate) fn wait_for_place(&self, service_id: &ServiceId) -> Duration {
        self.full_queues.wait(service_id, self.time())
    }

    /// The same for a client that has as many open batches as it may have.
    pub(crate) fn wait_for_place_of_client(&self, client: &ClientId) -> Duration {
        self.full_clients.wait(client, self.time())
    }
}
