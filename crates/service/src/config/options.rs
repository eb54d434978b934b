//! The options of the parts, which follow from the settings.

use std::sync::Arc;

use grid_batch_http::HttpOptions;
#[cfg(any(feature = "sawtooth", feature = "scabbard"))]
use grid_batch_http::WebSocketOptions;
use grid_batch_queuer::QueueOptions;
use grid_batch_settings::RequestsTo;
use grid_batch_store::{DelayOptions, StoreOptions};
use grid_batch_submitter::SubmitterOptions;
use grid_batch_webhooks::{AllowedNetworks, DeliveryOptions};

use super::Config;

impl Config {
    /// How the database is used.
    pub fn store_options(&self) -> StoreOptions {
        StoreOptions {
            connections: self.store.connections,
            lock_timeout: self.testing.lock_timeout,
            // Row locks of a frozen instance must not outlive its lease.
            idle_transaction_timeout: self.claims.idle_expiry / 2,
            clock: self.clock.clone(),
            intake_limits: self.intake_limits(),
            #[cfg(feature = "evm")]
            payment_limits: Arc::clone(&self.payment_limits),
            scheduling: Arc::new(self.scheduling()),
            writes_events: self.events.enabled,
            ..StoreOptions::default()
        }
    }

    /// How requests to the ledger are made.
    pub(crate) fn http_options(&self) -> HttpOptions {
        let nodes = self.nodes.clone();
        HttpOptions { nodes, ..self.http_options_with(&self.requests.options.nodes) }
    }

    /// How requests to remote signers are made.
    #[cfg(feature = "evm")]
    pub(crate) fn signer_http_options(&self) -> HttpOptions {
        self.http_options_with(&self.requests.options.signers)
    }

    /// How requests to the gas price oracle are made.
    #[cfg(feature = "evm")]
    pub(crate) fn oracle_http_options(&self) -> HttpOptions {
        self.http_options_with(&self.requests.options.oracle)
    }

    fn http_options_with<N>(&self, to: &RequestsTo<N>) -> HttpOptions {
        HttpOptions {
            connect_timeout: self.times().connect_timeout,
            request_timeout: self.ledger.request_timeout,
            headers: to.headers.clone(),
            tls: to.tls.clone(),
            ..HttpOptions::default()
        }
    }

    /// How event sockets are used.
    #[cfg(any(feature = "sawtooth", feature = "scabbard"))]
    pub(crate) fn websocket_options(&self) -> WebSocketOptions {
        WebSocketOptions {
            silence_timeout: self.testing.silence_timeout,
            ..WebSocketOptions::default()
        }
    }

    /// How batches are taken from the store.
    pub(crate) fn queue_options(&self) -> QueueOptions {
        let times = self.times();
        QueueOptions {
            most_of_service: self.most_lanes(),
            memory_limit: self.testing.memory_limit,
            poll_interval: self.testing.queue_poll_interval,
            give_back_after: times.total_limit.saturating_sub(times.sending_limit),
            clock: Arc::clone(&self.machine_clock),
            ..QueueOptions::default()
        }
    }

    /// How long a batch is delayed after an attempt that certainly failed, and when it is held.
    pub(crate) fn delay_options(&self) -> DelayOptions {
        DelayOptions {
            first: self.testing.first_delay,
            longest: self.testing.longest_delay,
            retry_after_limit: self.testing.retry_after_limit,
            refusals_before_hold: self.testing.refusals_before_hold,
            hold_after: self.poll.hold_after,
            ..DelayOptions::default()
        }
    }

    /// How batches are submitted.
    pub(crate) fn submitter_options(&self) -> SubmitterOptions {
        let times = self.times();
        SubmitterOptions {
            concurrency: self.submit.concurrency,
            sending_limit: times.sending_limit,
            total_limit: times.total_limit,
            drain_limit: times.drain_limit,
            warn_after: times.warn_after,
            ..SubmitterOptions::default()
        }
    }

    /// How events are delivered to webhooks.
    pub(crate) fn delivery_options(&self) -> DeliveryOptions {
        let RequestsTo { headers, tls, private } = self.requests.options.webhooks.clone();
        DeliveryOptions {
            allowed: AllowedNetworks::new(private),
            headers,
            tls,
            request_timeout: self.testing.webhooks_timeout,
            ..DeliveryOptions::default()
        }
    }
}
