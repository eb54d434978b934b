//! Webhooks: URLs to which events are delivered.

mod addresses;

use std::{collections::BTreeSet, fmt, net::IpAddr, time::Duration};

use futures_core::future::BoxFuture;

use thiserror::Error;

use crate::events::{BatchEvent, EventCursor, EventFilter, EventKind};
use crate::operators::{OperatorRequest, OperatorVerb};
use crate::{BatchResult, ServiceId, Timestamp};

pub use addresses::{AllowedNetwork, AllowedNetworkError, AllowedNetworks};

/// Identifies a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebhookId(pub i64);

impl fmt::Display for WebhookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Identifies a message that was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailedDeliveryId(pub i64);

impl fmt::Display for FailedDeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What a webhook's requests are signed with.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

impl WebhookSecret {
    /// The length of a new secret.
    pub const BYTES: usize = 24;

    /// A secret of these bytes.
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes. Nothing that is logged may contain them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

/// Why events cannot be sent to a URL. It does not repeat the URL, which may have a secret in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WebhookUrlError {
    /// It is too long.
    #[error("the URL is longer than 2,048 bytes")]
    TooLong,
    /// It has another form.
    #[error("the URL must be http://HOST/... or https://HOST/..., without a user name")]
    OtherForm,
    /// Its address is private.
    #[error(
        "the URL has a private address; add `private:ADDRESS` to `options` in the section `requests.webhooks` of the \
         server to allow it"
    )]
    Private,
}

/// Checks that a text has the form of a webhook URL, and that an address in it is allowed. The addresses of a name are
/// checked when a connection is made.
pub fn check_webhook_url(url: &str, allowed: &AllowedNetworks) -> Result<(), WebhookUrlError> {
    const LONGEST: usize = 2_048;
    if url.len() > LONGEST {
        return Err(WebhookUrlError::TooLong);
    }
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let is_url =
        !host.is_empty() && !host.contains('@') && url.bytes().all(|c| c.is_ascii_graphic());
    match address_in(host) {
        _ if !is_url => Err(WebhookUrlError::OtherForm),
        Some(Err(error)) => Err(error),
        Some(Ok(address)) if !allowed.allows(address) => Err(WebhookUrlError::Private),
        _ => Ok(()),
    }
}

/// The address in the host of a URL, if that is no name. Other forms of addresses, such as numbers, are refused.
fn address_in(host: &str) -> Option<Result<IpAddr, WebhookUrlError>> {
    let parse = |text: &str| text.parse().map_err(|_| WebhookUrlError::OtherForm);
    if let Some(address) = host.strip_prefix('[') {
        // Without the closing bracket, it is no address.
        return Some(parse(address.split_once(']').map_or("", |(address, _)| address)));
    }
    let name = host.split(':').next().unwrap_or_default();
    let last = name.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    last.starts_with(|first: char| first.is_ascii_digit()).then(|| parse(name))
}

/// A webhook that is to be stored. It gets the events that occur after it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWebhook {
    /// Where the events are sent.
    pub url: String,
    /// What the requests are signed with.
    pub secret: WebhookSecret,
    /// Which events it gets.
    pub filter: EventFilter,
}

/// What an operator changes about a stored webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookChange {
    /// Other values of some fields.
    Fields {
        /// Where the events are sent.
        url: Option<String>,
        /// Which services it gets events of; empty: of all.
        services: Option<BTreeSet<ServiceId>>,
        /// Which kinds of events it gets; empty: all.
        kinds: Option<BTreeSet<EventKind>>,
    },
    /// Another secret. Until this time, requests are signed with the one before, too.
    Secret {
        /// The new one.
        secret: WebhookSecret,
        /// When the one before is forgotten.
        previous_until: Timestamp,
    },
    /// Sends nothing until it is resumed.
    Pause,
    /// Sends what has happened since the pause.
    Resume,
    /// Sends a message that tests the receiver.
    Ping(Message),
}

impl WebhookChange {
    /// What the log of operators' actions calls it.
    pub const fn verb(&self) -> OperatorVerb {
        match self {
            Self::Fields { .. } => OperatorVerb::ChangeWebhook,
            Self::Secret { .. } => OperatorVerb::RotateWebhookSecret,
            Self::Pause => OperatorVerb::PauseWebhook,
            Self::Resume => OperatorVerb::ResumeWebhook,
            Self::Ping(_) => OperatorVerb::PingWebhook,
        }
    }
}

/// The URL of the webhook that is the export of traces. Its events go to an [`EventReceiver`] of the instance, not to a URL.
pub const TRACE_EXPORT: &str = "otlp:";

/// Which events the export of traces gets: all with which a batch can end.
pub fn trace_export_filter() -> EventFilter {
    let kinds = [
        EventKind::Answered,
        EventKind::Status,
        EventKind::Evidence,
        EventKind::Decided,
        EventKind::DependencyInvalid,
    ];
    EventFilter { kinds: kinds.into(), ..EventFilter::default() }
}

/// Receives events within the process.
pub trait EventReceiver: Send + Sync {
    /// Receives the next events, in order. After an error it gets them again.
    fn receive<'a>(&'a self, events: &'a [BatchEvent]) -> BoxFuture<'a, BatchResult<()>>;
}

/// A stored webhook, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// Where the events are sent.
    pub url: String,
    /// Which events it gets.
    pub filter: EventFilter,
    /// When it was stored.
    pub created_at: Timestamp,
    /// How often the next event was sent without success.
    pub attempts: u32,
    /// When the next event is sent again.
    pub next_try_at: Option<Timestamp>,
    /// Why the last request failed; `None` after one that did not.
    pub last_error: Option<String>,
    /// Since when nothing is sent, because the receiver answered that it is gone.
    pub disabled_at: Option<Timestamp>,
    /// Since when nothing is sent, because an operator has paused it.
    pub paused_at: Option<Timestamp>,
    /// Until when requests are also signed with the secret before the present one.
    pub previous_secret_until: Option<Timestamp>,
    /// When events were last removed before they were delivered.
    pub missed_at: Option<Timestamp>,
    /// How many messages were given up.
    pub failed: u64,
}

/// How many events wait for a webhook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many were counted.
    pub count: u64,
    /// Whether there may be more, because only a limited number of events is examined.
    pub more: bool,
}

impl Backlog {
    /// How many are counted.
    pub const MAX_COUNTED: usize = 1_000;
}

/// What is sent for an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Identifies the message: an event that is sent again has the same id.
    pub id: String,
    /// The body of the request.
    pub body: String,
}

/// A message that was given up after it was sent too often without success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedDelivery {
    /// Its id in the list.
    pub id: FailedDeliveryId,
    /// What was sent.
    pub message: Message,
    /// How often.
    pub attempts: u32,
    /// Why the last request failed.
    pub error: String,
    /// When it was given up.
    pub failed_at: Timestamp,
    /// Whether it is to be sent once more.
    pub again: bool,
}

/// A webhook that may be delivered to now, as [`WebhookStore::due_webhooks`] found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueWebhook {
    /// The webhook.
    pub id: WebhookId,
    /// Where its events are sent.
    pub url: String,
    /// What the requests are signed with: the present secret, and the one before as long as it is kept.
    pub secrets: Vec<WebhookSecret>,
    /// Which events it gets.
    pub filter: EventFilter,
    /// The position up to which events were delivered.
    pub cursor: EventCursor,
    /// How often the next event was sent without success.
    pub attempts: u32,
    /// Raised each time an instance takes the webhook.
    pub lease: i64,
    /// Whether messages that were given up are to be sent again.
    pub has_failed_again: bool,
}

impl DueWebhook {
    /// Whether it is the export of traces.
    pub fn is_trace_export(&self) -> bool {
        self.url == TRACE_EXPORT
    }
}

/// The right to deliver to a webhook. A result that is stored with an earlier lease changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookLease {
    /// The webhook.
    pub webhook: WebhookId,
    /// Which lease of the webhook it is.
    pub number: i64,
    /// How long it lasts after the webhook was taken, and after each result that is stored.
    pub duration: Duration,
}

/// The result of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryResult {
    /// The events up to a position were delivered, or are not selected.
    Delivered {
        /// The position.
        cursor: EventCursor,
    },
    /// The event after a position could not be delivered and waits.
    Delayed {
        /// The position.
        cursor: EventCursor,
        /// How often it was sent.
        attempts: u32,
        /// Until when.
        until: Timestamp,
        /// Why.
        error: String,
    },
    /// The event before a position is given up.
    GivenUp {
        /// The position.
        cursor: EventCursor,
        /// What was sent.
        message: Message,
        /// How often.
        attempts: u32,
        /// Why the last request failed.
        error: String,
    },
    /// The receiver wants no more events. Those after a position were not delivered.
    Disabled {
        /// The position.
        cursor: EventCursor,
        /// What it answered.
        error: String,
    },
    /// Events before a position were removed before they were delivered.
    Missed {
        /// The position.
        cursor: EventCursor,
    },
    /// A message that was given up before was delivered.
    DeliveredAgain(FailedDeliveryId),
    /// A message that was given up before could not be delivered once more.
    FailedAgain {
        /// The message.
        id: FailedDeliveryId,
        /// Why.
        error: String,
    },
}

/// Stores webhooks and the progress of their deliveries. One instance at a time delivers to each.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait WebhookStore: Send + Sync {
    /// Stores a webhook. `None`: the limit of webhooks is reached.
    fn create_webhook(
        &self,
        webhook: &NewWebhook,
        request: &OperatorRequest,
    ) -> BatchResult<Option<Webhook>>;

    /// Stores the webhook of the export of traces, unless it is stored. It gets the events that occur afterwards.
    fn add_trace_export(&self) -> BatchResult<()>;

    /// All webhooks, by id.
    fn webhooks(&self) -> BatchResult<Vec<Webhook>>;

    /// How many events after the stored position a webhook is still to get. `None`: there is no such webhook.
    fn backlog(&self, id: WebhookId) -> BatchResult<Option<Backlog>>;

    /// Changes a webhook. A delivery in progress is given up, and its event sent again. Returns what is stored then.
    /// `None`: there is no such webhook.
    fn change_webhook(
        &self,
        id: WebhookId,
        change: &WebhookChange,
        request: &OperatorRequest,
    ) -> BatchResult<Option<Webhook>>;

    /// Removes a webhook and its failed messages. Returns whether there was one.
    fn remove_webhook(&self, id: WebhookId, request: &OperatorRequest) -> BatchResult<bool>;

    /// Up to `limit` messages that were given up, after `after`, ordered by id. `None`: there is no such webhook.
    fn failed_deliveries(
        &self,
        id: WebhookId,
        after: Option<FailedDeliveryId>,
        limit: usize,
    ) -> BatchResult<Option<Vec<FailedDelivery>>>;

    /// Schedules one or all of the messages that were given up to be sent once more. A waiting event is tried at once,
    /// and a disabled webhook is enabled. Returns how many are sent once more. `None`: there is no such webhook.
    fn redeliver(
        &self,
        id: WebhookId,
        failed: Option<FailedDeliveryId>,
        request: &OperatorRequest,
    ) -> BatchResult<Option<u64>>;

    /// The webhooks that no instance delivers to and that do not wait.
    fn due_webhooks(&self) -> BatchResult<Vec<DueWebhook>>;

    /// Takes a webhook. `None`: another instance was faster, or the webhook was removed.
    fn take_webhook(
        &self,
        webhook: &DueWebhook,
        duration: Duration,
    ) -> BatchResult<Option<WebhookLease>>;

    /// Up to `limit` messages that are to be sent once more, by id.
    fn failed_again(&self, id: WebhookId, limit: usize) -> BatchResult<Vec<FailedDelivery>>;

    /// Stores a result, and extends the lease. `false`: another instance has taken the webhook since, or it was
    /// removed; nothing is stored.
    fn delivered(&self, lease: &WebhookLease, result: &DeliveryResult) -> BatchResult<bool>;

    /// Ends a lease. Returns whether it was the last one.
    fn end_webhook_lease(&self, lease: &WebhookLease) -> BatchResult<bool>;

    /// The present time by the clock of the stored times.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str) -> Result<(), WebhookUrlError> {
        check_webhook_url(url, &AllowedNetworks::new(["10.0.0.0/8".parse().unwrap()]))
    }

    #[test]
    fn urls_have_a_scheme_and_a_host_and_no_user() {
        for url in ["http://a", "https://a.example:8443/events?token=5", "http://3com.example/"] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
        for url in [
            "",
            "a.example",
            "ftp://a",
            "https://",
            "https:///x",
            "https://u:p@a/",
            "http://a/\n",
            "http://é",
            "http://2130706433/",
            "http://127.1/",
            "http://a.0x7f.1",
            "http://[::1",
        ] {
            assert_eq!(check(url), Err(WebhookUrlError::OtherForm), "{url}");
        }
        let long = format!("https://a/{}", "x".repeat(2_048));
        assert_eq!(check(&long), Err(WebhookUrlError::TooLong));
    }

    #[test]
    fn private_address_in_a_url_must_be_allowed() {
        for url in ["http://8.8.8.8/", "https://10.1.2.3:80/", "http://[2606:4700::1]:80/"] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
        for url in [
            "http://127.0.0.1:80/",
            "https://192.168.0.1",
            "http://[::1]:80/",
            "http://[::ffff:127.0.0.1]",
        ] {
            assert_eq!(check(url), Err(WebhookUrlError::Private), "{url}");
        }
    }

    #[test]
    fn secret_is_shown_only_on_purpose() {
        let secret = WebhookSecret::new(vec![7; 3]);
        assert_eq!(secret.expose(), [7, 7, 7]);
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
    }
}
