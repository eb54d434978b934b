use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::future::{join_all, select_all};
use grid_batch_core::ServiceId;
use grid_batch_http::HttpRequests;
use tokio::{
    select,
    sync::{
        Mutex,
        broadcast::{self, error::TryRecvError},
    },
    time::{Instant, sleep, timeout},
};

use super::{pace::Pace, subscription::HeadSubscription};
use crate::context::EvmContext;

/// How long the nodes are watched after a transaction was sent.
const WATCHED_FOR: Duration = Duration::from_mins(5);
/// The time limit of a request for the latest block.
const REQUEST_LIMIT: Duration = Duration::from_secs(2);
/// The longest wait while all nodes report their blocks by subscription.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Watches for new blocks, once for all services that wait for them. The first one that waits does the work.
pub(crate) struct HeadWatch {
    context: Arc<EvmContext>,
    state: Mutex<WatchState>,
}

struct WatchState {
    /// How many blocks were seen.
    version: u64,
    /// The latest block of each node.
    latest: HashMap<String, u64>,
    subscriptions: HashMap<String, HeadSubscription>,
    pace: Pace,
    sent: broadcast::Receiver<ServiceId>,
    watched_until: Instant,
}

impl HeadWatch {
    pub(crate) fn new(context: Arc<EvmContext>) -> Self {
        let state = WatchState {
            version: 0,
            latest: HashMap::new(),
            subscriptions: HashMap::new(),
            pace: Pace::new(),
            sent: context.wake_up.of_all(),
            watched_until: Instant::now() + WATCHED_FOR,
        };
        Self { context, state: Mutex::new(state) }
    }

    /// Waits until there is a block after those that were `seen`.
    pub(super) async fn changed(&self, service_id: &str, seen: &mut u64) {
        loop {
            // The lock is fair, so after each look it goes to another waiting service.
            let mut state = self.state.lock().await;
            if state.version != *seen {
                *seen = state.version;
                return;
            }
            state.wait_until_watched().await;
            let urls = self.context.nodes.status_urls(service_id, "");
            state.subscribe(&*self.context.http, &urls).await;
            state.look(&self.context, &urls).await;
        }
    }
}

impl WatchState {
    /// If no transaction was sent for long, waits until one is, and meanwhile does not ask the nodes.
    async fn wait_until_watched(&mut self) {
        let mut was_sent = false;
        while matches!(self.sent.try_recv(), Ok(_) | Err(TryRecvError::Lagged(_))) {
            was_sent = true;
        }
        if was_sent {
            self.watched_until = Instant::now() + WATCHED_FOR;
        }
        if Instant::now() >= self.watched_until {
            self.subscriptions.clear();
            let _ = self.sent.recv().await;
            self.watched_until = Instant::now() + WATCHED_FOR;
        }
    }

    async fn subscribe(&mut self, http: &dyn HttpRequests, urls: &[String]) {
        self.subscriptions.retain(|url, _| urls.contains(url));
        for url in urls {
            self.subscriptions.entry(url.clone()).or_insert_with(HeadSubscription::new);
        }
        let opening = self.subscriptions.iter_mut().map(|(url, it)| it.open_if_due(http, url));
        join_all(opening).await;
    }

    /// Waits for a block, or asks for one when it is time.
    async fn look(&mut self, context: &EvmContext, urls: &[String]) {
        let asked: Vec<String> =
            urls.iter().filter(|url| !self.is_subscribed(url)).cloned().collect();
        let wait =
            if asked.is_empty() && !urls.is_empty() { LONGEST_WAIT } else { self.pace.interval() };
        let is_told = self.wait_for_block(wait).await;
        let is_new = is_told | self.ask(context, asked).await;
        if is_new {
            self.version += 1;
            self.pace.block(Instant::now());
        }
    }

    /// Waits at most this long for a block that a subscription reports. Returns whether there was one.
    async fn wait_for_block(&mut self, longest: Duration) -> bool {
        let open = self.subscriptions.values_mut().filter(|subscription| subscription.is_open());
        let told: Vec<_> = open.map(|subscription| Box::pin(subscription.next_block())).collect();
        if told.is_empty() {
            sleep(longest).await;
            return false;
        }
        select! {
            (is_block, _, _) = select_all(told) => is_block,
            () = sleep(longest) => false,
        }
    }

    fn is_subscribed(&self, url: &str) -> bool {
        self.subscriptions.get(url).is_some_and(HeadSubscription::is_open)
    }

    /// Asks nodes for their latest blocks. Returns whether the latest block of one of them has changed.
    async fn ask(&mut self, context: &EvmContext, urls: Vec<String>) -> bool {
        let asking = urls.into_iter().map(async |url| {
            let node = context.node(url.as_str());
            let number = timeout(REQUEST_LIMIT, node.block_number()).await.ok()?.ok()?;
            Some((url, number))
        });
        let answers = join_all(asking).await;
        let mut is_new = false;
        for (url, number) in answers.into_iter().flatten() {
            is_new |= self.latest.insert(url, number) != Some(number);
        }
        is_new
    }
}
