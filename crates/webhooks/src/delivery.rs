//! The delivery to one webhook, from its position to the end of the feed.

use grid_batch_core::events::{
    BatchEvent, EventCursor, EventPage, EventPosition, EventReadError, PositionedEvent,
};
use grid_batch_core::webhooks::{DeliveryResult, DueWebhook, Message, WebhookLease};
use grid_batch_core::{BatchError, BatchResult};
use log::{debug, warn};
use tokio::{select, time::Instant};

use crate::{
    deliverer::Parts,
    message::{message, trace_of},
    request::{Sent, send},
};

/// How many events are read at once, which is also the maximum that is sent before the position is stored.
const PAGE: usize = 20;

/// The same for the export of traces, which sends a page at once.
const TRACE_PAGE: usize = 200;

/// How often an export that fails is logged: at the first failure, and after this many more.
const LOGGED_FAILURES: u32 = 20;

/// Delivers the pending events of a webhook, if there are any and no other instance delivers them.
pub(crate) async fn deliver(parts: &Parts, webhook: DueWebhook) -> BatchResult<()> {
    let (from, is_old) = parts.scanned.begin(&webhook);
    let page = read(parts, &webhook, &from).await?;
    let is_idle = page.is_idle() && !is_old && !webhook.has_failed_again;
    if is_idle {
        parts.scanned.keep(webhook.id, &webhook.cursor, page.page.next);
        return Ok(());
    }
    let duration = parts.options.lease();
    let due = webhook.clone();
    let lease = parts.store(move |stores| stores.webhooks.take_webhook(&due, duration)).await?;
    let Some(lease) = lease else { return Ok(()) };
    let stored = webhook.cursor.clone();
    let attempts = webhook.attempts;
    let stored_at = Instant::now();
    let delivery = Delivery { parts, webhook, lease, reached: from, stored, stored_at, attempts };
    let delivered = delivery.run(page).await;
    let ended = parts.store(move |stores| stores.webhooks.end_webhook_lease(&lease)).await;
    delivered.and(ended.map(drop))
}

/// Events that were read from the feed.
struct Read {
    page: EventPage,
    /// Events before this position were removed before they were read.
    missed: Option<EventCursor>,
}

impl Read {
    fn is_idle(&self) -> bool {
        self.page.events.is_empty() && !self.page.more && self.missed.is_none()
    }
}

/// Reads the next events. If they are no longer kept, reads from the oldest ones that are.
async fn read(parts: &Parts, webhook: &DueWebhook, from: &EventCursor) -> BatchResult<Read> {
    let (filter, from) = (webhook.filter.clone(), EventPosition::After(from.clone()));
    let count = if webhook.is_trace_export() { TRACE_PAGE } else { PAGE };
    parts
        .store(move |stores| {
            let unusable = |error: EventReadError| BatchError::InternalError(error.to_string());
            match stores.events.events(&from, &filter, count)? {
                Ok(page) => Ok(Read { page, missed: None }),
                Err(EventReadError::Gone { oldest }) => {
                    let position = EventPosition::After(oldest.clone());
                    let page =
                        stores.events.events(&position, &filter, count)?.map_err(unusable)?;
                    Ok(Read { page, missed: Some(oldest) })
                }
                Err(error) => Err(unusable(error)),
            }
        })
        .await
}

/// Whether the delivery continues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

/// A delivery under way.
struct Delivery<'p> {
    parts: &'p Parts,
    webhook: DueWebhook,
    lease: WebhookLease,
    /// The position up to which events were delivered.
    reached: EventCursor,
    /// The stored position.
    stored: EventCursor,
    stored_at: Instant,
    /// How often the next event was sent without success.
    attempts: u32,
}

impl Delivery<'_> {
    async fn run(mut self, first: Read) -> BatchResult<()> {
        let mut read_now = first;
        loop {
            let Read { page, missed } = read_now;
            if let Some(cursor) = missed {
                warn!(webhook:% = self.webhook.id; "events were removed before they were delivered");
                self.attempts = 0;
                if self.store(DeliveryResult::Missed { cursor }).await? == Next::Stop {
                    return Ok(());
                }
            }
            if self.deliver_page(&page.events).await? == Next::Stop {
                return Ok(());
            }
            let is_end = page.events.is_empty() && !page.more;
            self.reached = page.next.clone();
            if self.store_position(is_end).await? == Next::Stop
                || self.send_again().await? == Next::Stop
            {
                return Ok(());
            }
            if is_end {
                self.parts.scanned.keep(self.webhook.id, &self.stored, page.next);
                return Ok(());
            }
            // A filter may select none of many events, so the loop checks for a shutdown.
            if self.parts.shutdown.is_requested() {
                return Ok(());
            }
            read_now = read(self.parts, &self.webhook, &page.next).await?;
        }
    }

    async fn deliver_page(&mut self, events: &[PositionedEvent]) -> BatchResult<Next> {
        if self.webhook.is_trace_export() {
            return self.export_page(events).await;
        }
        for event in events {
            if self.deliver_event(event).await? == Next::Stop {
                return Ok(Next::Stop);
            }
        }
        Ok(Next::GoOn)
    }

    /// Exports the traces of batches that ended with these events. A collector that is away delays them.
    async fn export_page(&mut self, positioned: &[PositionedEvent]) -> BatchResult<Next> {
        let Some(receiver) = self.parts.receiver(&self.webhook) else { return Ok(Next::Stop) };
        let events: Vec<BatchEvent> = positioned.iter().map(|it| it.event.clone()).collect();
        let received = select! {
            () = self.parts.shutdown.requested() => return Ok(Next::Stop),
            received = receiver.receive(&events) => received,
        };
        let Err(error) = received else {
            self.attempts = 0;
            return Ok(Next::GoOn);
        };
        if self.attempts.is_multiple_of(LOGGED_FAILURES) {
            warn!(error:%; "traces are not exported; they are kept and exported later");
        }
        self.attempts = self.attempts.saturating_add(1);
        let delay = self.parts.options.export_delay(self.attempts);
        let delayed = DeliveryResult::Delayed {
            cursor: self.reached.clone(),
            attempts: self.attempts,
            until: self.parts.time().plus(delay),
            error: error.to_string(),
        };
        self.store(delayed).await?;
        Ok(Next::Stop)
    }

    async fn deliver_event(&mut self, positioned: &PositionedEvent) -> BatchResult<Next> {
        let PositionedEvent { event, cursor } = positioned;
        let message = message(event);
        match send(self.parts, &self.webhook, &message, event.trace.as_ref()).await {
            Sent::Delivered => {
                self.reached = cursor.clone();
                self.attempts = 0;
                let is_due = self.stored_at.elapsed() >= self.parts.options.request_timeout;
                if is_due { self.store_position(false).await } else { Ok(Next::GoOn) }
            }
            Sent::Stopped => {
                self.store_position(false).await?;
                Ok(Next::Stop)
            }
            Sent::Gone { error } => {
                warn!(webhook:% = self.webhook.id, error:%; "a webhook is disabled");
                self.store(DeliveryResult::Disabled { cursor: self.reached.clone(), error })
                    .await?;
                Ok(Next::Stop)
            }
            Sent::Failed { error, retry_after } => {
                self.attempts = self.attempts.saturating_add(1);
                let attempts = self.attempts;
                debug!(webhook:% = self.webhook.id, message:% = message.id, attempts, error:%; "not delivered");
                if attempts >= self.parts.options.most_attempts {
                    self.reached = cursor.clone();
                    return self.give_up(message, error).await;
                }
                let delay = self.parts.options.delay(attempts);
                let asked = retry_after.unwrap_or_default().min(self.parts.options.longest_delay);
                let until = self.parts.time().plus(delay.max(asked));
                let cursor = self.reached.clone();
                self.store(DeliveryResult::Delayed { cursor, attempts, until, error }).await?;
                Ok(Next::Stop)
            }
        }
    }

    async fn give_up(&mut self, message: Message, error: String) -> BatchResult<Next> {
        let attempts = self.attempts;
        warn!(webhook:% = self.webhook.id, message:% = message.id, attempts, error:%;
            "an event of a webhook is given up");
        self.attempts = 0;
        let cursor = self.reached.clone();
        self.store(DeliveryResult::GivenUp { cursor, message, attempts, error }).await
    }

    /// Sends messages that were given up once more, until one fails. New events are delivered in between.
    async fn send_again(&mut self) -> BatchResult<Next> {
        let id = self.webhook.id;
        let again = self.parts.store(move |stores| stores.webhooks.failed_again(id, PAGE)).await?;
        for failed in again {
            let id = failed.id;
            let trace = trace_of(&failed.message);
            let sent = send(self.parts, &self.webhook, &failed.message, trace.as_ref()).await;
            let (result, goes_on) = match sent {
                Sent::Delivered => (DeliveryResult::DeliveredAgain(id), true),
                Sent::Failed { error, .. } => (DeliveryResult::FailedAgain { id, error }, false),
                Sent::Gone { error } => {
                    let cursor = self.reached.clone();
                    self.store(DeliveryResult::Disabled { cursor, error }).await?;
                    return Ok(Next::Stop);
                }
                Sent::Stopped => return Ok(Next::Stop),
            };
            if self.store(result).await? == Next::Stop {
                return Ok(Next::Stop);
            }
            if !goes_on {
                break;
            }
        }
        Ok(Next::GoOn)
    }

    /// Stores the position, unless it is stored already. At the end of the feed, a position without new events need not
    /// be stored.
    async fn store_position(&mut self, is_end: bool) -> BatchResult<Next> {
        let is_old = self.parts.scanned.begin(&self.webhook).1;
        if self.reached == self.stored || (is_end && !is_old) {
            return Ok(Next::GoOn);
        }
        self.store(DeliveryResult::Delivered { cursor: self.reached.clone() }).await
    }

    /// Stores a result. Another instance may have the webhook.
    async fn store(&mut self, result: DeliveryResult) -> BatchResult<Next> {
        let cursor = match &result {
            DeliveryResult::Delivered { cursor }
            | DeliveryResult::Delayed { cursor, .. }
            | DeliveryResult::GivenUp { cursor, .. }
            | DeliveryResult::Disabled { cursor, .. }
            | DeliveryResult::Missed { cursor } => Some(cursor.clone()),
            DeliveryResult::DeliveredAgain(_) | DeliveryResult::FailedAgain { .. } => None,
        };
        let lease = self.lease;
        let is_stored =
            self.parts.store(move |stores| stores.webhooks.delivered(&lease, &result)).await?;
        if !is_stored {
            return Ok(Next::Stop);
        }
        self.stored_at = Instant::now();
        if let Some(cursor) = cursor {
            self.stored = cursor;
        }
        Ok(Next::GoOn)
    }
}
