use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use grid_batch_api::{MetricsText, OpenCounts};
use grid_batch_core::BatchResult;
use grid_batch_core::batches::BatchState;
use grid_batch_core::claims::InstanceId;
use grid_batch_core::queries::{BatchCounts, OpenStates, QueueDepth, WaitReason};
use grid_batch_core::webhooks::{Webhook, WebhookStore};
use grid_batch_support::{Job, Jobs, Next, Schedule, TimeShare};

use super::{count, history::HistoryRecorder};

/// Depths and ages of the queues. They are read from the store at intervals, because a scrape must not wait for the
/// store. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct QueueMetrics(Arc<Mutex<Option<Queues>>>);

/// The sources of the queue metrics.
pub struct QueueSources {
    /// The store.
    pub counts: Arc<dyn BatchCounts>,
    /// The webhooks.
    pub webhooks: Arc<dyn WebhookStore>,
    /// Returns the id of this instance, whose claims are counted.
    pub instance: Box<dyn Fn() -> InstanceId + Send>,
}

#[derive(Debug)]
struct Queues {
    states: OpenStates,
    /// How many services this instance claims.
    claims: u64,
    open: u64,
    /// The open batches of the services that have the most, by name, and those of all others as [`OTHERS`].
    services: BTreeMap<String, u64>,
    webhooks: WebhookCounts,
    read_at: Instant,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct WebhookCounts {
    delivering: u64,
    /// Webhooks whose last request failed.
    failing: u64,
    /// Webhooks whose receiver has answered that it is gone.
    disabled: u64,
    /// Webhooks that an operator has paused.
    paused: u64,
    /// Messages that were given up.
    given_up: u64,
}

/// The reasons that are stored with each batch. Reasons of a whole service, and those that only an instance knows, are
/// in the numbers of the health.
pub(crate) const COUNTED_REASONS: [&str; 15] = [
    "behind",
    "conflict",
    "delayed",
    "dependency",
    "evidence",
    "halt",
    "held",
    "lane",
    "late_arrival",
    "missing_transaction",
    "parked",
    "paused",
    "status",
    "submission",
    "submitter",
];

/// The label of all services that have no label of their own.
const OTHERS: &str = "other";

impl QueueMetrics {
    const SHORTEST_INTERVAL: Duration = Duration::from_secs(5);
    /// How many times as long as a read the pause after it is.
    const SHARE: u32 = 50;

    /// Starts the job that reads. At most `most` services have a label of their own.
    pub fn watch(
        &self,
        sources: QueueSources,
        most: usize,
        mut history: HistoryRecorder,
        jobs: &Jobs,
    ) -> Job {
        let shared = self.clone();
        let mut share = TimeShare::new(Self::SHORTEST_INTERVAL, Self::SHARE);
        let schedule = Schedule::every(Self::SHORTEST_INTERVAL).first_after(Duration::ZERO);
        jobs.repeat("metrics-queues", schedule, move || {
            let started = Instant::now();
            // The health reports that the database does not answer, and the metrics show the age of the counts.
            let Ok(queues) = Queues::read(&sources, most) else { return Ok(Next::AfterInterval) };
            history.record(&*sources.counts, queues.open, queues.oldest());
            *shared.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(queues);
            Ok(Next::After(share.pause_after(started.elapsed())))
        })
    }

    /// What was counted last; `None`: nothing yet.
    pub fn counts(&self) -> Option<OpenCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Queues::counts)
    }

    pub(super) fn write(&self, text: &mut MetricsText) {
        if let Some(queues) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            queues.write(text);
        }
    }
}

impl Queues {
    fn read(sources: &QueueSources, most: usize) -> BatchResult<Self> {
        let QueueSources { counts, webhooks, instance } = sources;
        let depths = counts.depths()?;
        Ok(Self {
            states: counts.open_states()?,
            claims: counts.count_claims(&instance())?,
            open: depths.iter().map(|depth| depth.open).sum(),
            services: by_service(depths, most),
            webhooks: WebhookCounts::of(&webhooks.webhooks()?),
            read_at: Instant::now(),
        })
    }

    fn oldest(&self) -> Duration {
        self.states.oldest.unwrap_or_default()
    }

    fn counts(&self) -> OpenCounts {
        let name = |(state, batches): (BatchState, u64)| (state.as_str(), batches);
        OpenCounts {
            open: self.open,
            states: self.by_state().into_iter().map(name).collect(),
            reasons: self.by_reason(),
            held: self.states.held,
            oldest_seconds: self.oldest().as_secs_f64(),
            age_seconds: self.read_at.elapsed().as_secs_f64(),
        }
    }

    fn write(&self, text: &mut MetricsText) {
        let help = "Services that this instance claims.";
        text.gauge("grid_batch_claims", help, count(self.claims));
        let mut open = text.gauges(
            "grid_batch_open_batches",
            "Open batches by state, of all instances of the database.",
        );
        for (state, batches) in self.by_state() {
            open.sample(&[("state", state.as_str())], count(batches));
        }
        let mut waiting = text.gauges(
            "grid_batch_waiting_batches",
            "Open batches by the reason for which they wait, of all instances of the database.",
        );
        for (reason, batches) in self.by_reason() {
            waiting.sample(&[("reason", reason)], count(batches));
        }
        let mut longest = text.gauges(
            "grid_batch_longest_in_state_seconds",
            "How long the first batch of each state has been in it; 0 if none is in it.",
        );
        for (state, seconds) in self.longest() {
            longest.sample(&[("state", state.as_str())], seconds);
        }
        let mut services = text.gauges(
            "grid_batch_service_open_batches",
            "Open batches of the services that have most of them; all others are one.",
        );
        for (service, batches) in &self.services {
            services.sample(&[("service", service)], count(*batches));
        }
        self.webhooks.write(text);
        let oldest = self.oldest().as_secs_f64();
        let help = "How long ago the oldest open batch was accepted; 0 if none is open.";
        text.gauge("grid_batch_oldest_open_batch_seconds", help, oldest);
        let age = self.read_at.elapsed().as_secs_f64();
        let help = "How long ago open batches were counted.";
        text.gauge("grid_batch_open_batches_age_seconds", help, age);
    }

    /// Batches behind others are new and have no lane.
    fn by_state(&self) -> BTreeMap<BatchState, u64> {
        let mut states = open_states(|| 0);
        states.extend(self.states.states.iter().map(|(state, it)| (*state, it.batches)));
        let tried: u64 = states.iter().filter(|it| *it.0 != BatchState::New).map(|it| it.1).sum();
        states.insert(BatchState::New, self.open.saturating_sub(tried));
        states
    }

    fn longest(&self) -> BTreeMap<BatchState, f64> {
        let mut longest = open_states(|| 0.0);
        let states = self.states.states.iter();
        longest.extend(states.map(|(state, it)| (*state, it.longest.as_secs_f64())));
        longest
    }

    /// The batches without a counted reason are behind others of a service with one lane.
    fn by_reason(&self) -> BTreeMap<&'static str, u64> {
        let mut reasons: BTreeMap<_, _> = COUNTED_REASONS.iter().map(|name| (*name, 0)).collect();
        reasons.extend(&self.states.waits);
        let counted: u64 = self.states.waits.values().sum();
        *reasons.entry(WaitReason::Behind.name()).or_default() += self.open.saturating_sub(counted);
        reasons
    }
}

impl WebhookCounts {
    fn of(webhooks: &[Webhook]) -> Self {
        let mut counts = Self::default();
        for webhook in webhooks {
            let of_state = match webhook {
                Webhook { disabled_at: Some(_), .. } => &mut counts.disabled,
                Webhook { paused_at: Some(_), .. } => &mut counts.paused,
                Webhook { attempts: 0, .. } => &mut counts.delivering,
                _ => &mut counts.failing,
            };
            *of_state += 1;
            counts.given_up += webhook.failed;
        }
        counts
    }

    fn write(&self, text: &mut MetricsText) {
        let help = "Webhooks by state: failing if the last request of each failed, disabled if its receiver is gone, paused by an operator.";
        let mut webhooks = text.gauges("grid_batch_webhooks", help);
        webhooks.sample(&[("state", "delivering")], count(self.delivering));
        webhooks.sample(&[("state", "failing")], count(self.failing));
        webhooks.sample(&[("state", "disabled")], count(self.disabled));
        webhooks.sample(&[("state", "paused")], count(self.paused));
        let help = "Messages of webhooks that were given up and not delivered since.";
        text.gauge("grid_batch_webhook_failed_messages", help, count(self.given_up));
    }
}

fn open_states<T>(value: impl Fn() -> T) -> BTreeMap<BatchState, T> {
    let states = BatchState::ALL.into_iter().filter(|state| !state.is_terminal());
    states.map(|state| (state, value())).collect()
}

fn by_service(mut depths: Vec<QueueDepth>, most: usize) -> BTreeMap<String, u64> {
    depths.sort_by_key(|depth| Reverse(depth.open));
    let mut services = BTreeMap::new();
    for (number, depth) in depths.into_iter().enumerate() {
        // A service may have the same name as the label of the others.
        let name = if number < most { depth.service_id.to_string() } else { OTHERS.to_owned() };
        *services.entry(name).or_default() += depth.open;
    }
    services
}

#[cfg(test)]
mod tests {
    use grid_batch_api::MetricsFormat;
    use grid_batch_core::Timestamp;
    use grid_batch_core::events::EventFilter;
    use grid_batch_core::queries::OpenState;
    use grid_batch_core::webhooks::WebhookId;

    use super::*;

    fn depth(service: &str, open: u64) -> QueueDepth {
        QueueDepth { service_id: service.parse().unwrap(), open }
    }

    fn queues(depths: Vec<QueueDepth>, most: usize) -> Queues {
        let in_doubt = OpenState { batches: 2, longest: Duration::from_secs(90) };
        let oldest = Some(Duration::from_secs(100));
        Queues {
            claims: 3,
            states: OpenStates {
                states: [(BatchState::InDoubt, in_doubt)].into(),
                waits: [("evidence", 1), ("held", 1)].into(),
                held: 1,
                oldest,
            },
            open: depths.iter().map(|depth| depth.open).sum(),
            services: by_service(depths, most),
            webhooks: WebhookCounts::default(),
            read_at: Instant::now(),
        }
    }

    #[test]
    fn webhooks_are_counted_by_state() {
        let webhook = |attempts, disabled_at, failed| Webhook {
            id: WebhookId(1),
            url: "https://example.com".to_owned(),
            filter: EventFilter::default(),
            created_at: Timestamp::from_micros(0),
            attempts,
            next_try_at: None,
            last_error: None,
            disabled_at,
            paused_at: None,
            previous_secret_until: None,
            missed_at: None,
            failed,
        };
        let gone = Some(Timestamp::from_micros(1));
        let paused = Webhook { paused_at: gone, ..webhook(2, None, 1) };
        let webhooks = [webhook(0, None, 0), webhook(2, None, 3), webhook(2, gone, 4), paused];
        let expected =
            WebhookCounts { delivering: 1, failing: 1, disabled: 1, paused: 1, given_up: 8 };
        assert_eq!(WebhookCounts::of(&webhooks), expected);
    }

    #[test]
    fn services_beyond_the_limit_are_one() {
        let depths = vec![depth("a", 1), depth("b", 7), depth("c", 2), depth("other", 9)];
        let services = queues(depths, 2).services;
        assert_eq!(services, [("b".to_owned(), 7), ("other".to_owned(), 12)].into());
    }

    #[test]
    fn batches_without_a_lane_are_new() {
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        queues(vec![depth("a", 5)], 10).write(&mut text);
        let text = text.finish();
        for line in [
            "grid_batch_service_open_batches{service=\"a\"} 5\n",
            "grid_batch_oldest_open_batch_seconds 100\n",
            "grid_batch_waiting_batches{reason=\"behind\"} 3\n",
            "grid_batch_waiting_batches{reason=\"evidence\"} 1\n",
            "grid_batch_waiting_batches{reason=\"lane\"} 0\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let states = queues(vec![depth("a", 5)], 10).by_state();
        assert_eq!((states[&BatchState::New], states[&BatchState::InDoubt]), (3, 2));
        assert!(queues(Vec::new(), 10).by_reason().keys().eq(&COUNTED_REASONS), "no other reason");
        assert_eq!(queues(Vec::new(), 10).longest()[&BatchState::Pending], 0.0);
    }
}
