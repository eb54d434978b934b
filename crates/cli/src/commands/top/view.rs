use std::time::{Duration, Instant};

use serde_json::Value;

use super::{
    reading::{HeldReading, Reading, ServiceReading},
    selection::Selection,
    state::{rank, state},
};

/// What is shown, and how.
#[derive(Debug)]
pub(super) struct View {
    /// The URL of the server.
    pub(super) server: String,
    /// The last reading, and when it was taken.
    pub(super) reading: Option<(Reading, Instant)>,
    /// Why the server cannot be read, and since when.
    pub(super) failure: Option<(ReadFailure, Instant)>,
    /// The age at which values are late, although no reading has failed yet.
    pub(super) late_after: Duration,
    pub(super) pane: Pane,
    pub(super) sort: Sort,
    /// Only entries that contain this text are listed.
    pub(super) filter: String,
    pub(super) services: Selection,
    pub(super) held: Selection,
    /// The text that is being typed.
    pub(super) input: Option<Input>,
    /// The result of the last action, and whether it failed.
    pub(super) message: Option<(String, bool)>,
    /// How many rows a list or a text has on the screen.
    pub(super) rows: usize,
}

/// The content below the headline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pane {
    Services,
    Held,
    Explanation { of: Subject, explanation: Option<Explanation>, scroll: usize, under: Under },
    Help { scroll: usize, under: Under },
}

/// The list to which a text returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Under {
    Services,
    Held,
}

/// The column by which services are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Age,
    Rate,
    State,
    Service,
    Depth,
}

/// A text that is being typed at the lower edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    Filter { before: String },
    Reason { verb: Verb, service: String, text: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Pause,
    Resume,
}

/// The service or batch that is explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    Service(String),
    Batch { id: String, service: String },
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Service(service) => write!(f, "service {service}"),
            Self::Batch { id, service } => {
                write!(f, "batch {} of {service}", id.get(..12).unwrap_or(id))
            }
        }
    }
}

/// The server's explanation why a service or a batch waits, or why it gave none.
pub(super) type Explanation = Result<Value, String>;

/// A request to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    Explain(Subject),
    Act { verb: Verb, service: String, reason: String },
}

/// Why a reading has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadFailure {
    NoAnswer(String),
    Refused(String),
}

/// An answer from the server.
#[derive(Debug)]
pub(super) enum Answer {
    Reading(Result<Box<Reading>, ReadFailure>),
    Explanation { of: Subject, explanation: Explanation },
    Acted { verb: Verb, service: String, result: Result<(), String> },
}

impl View {
    /// Longer than the answers of a working server take.
    const USUAL_DELAY: Duration = Duration::from_secs(5);

    pub(super) fn new(server: String, interval: Duration) -> Self {
        Self {
            server,
            reading: None,
            failure: None,
            late_after: interval + Self::USUAL_DELAY,
            pane: Pane::Services,
            sort: Sort::Age,
            filter: String::new(),
            services: Selection::default(),
            held: Selection::default(),
            input: None,
            message: None,
            rows: 1,
        }
    }

    pub(super) fn apply(&mut self, answer: Answer, now: Instant) {
        match answer {
            Answer::Reading(Ok(reading)) => {
                self.reading = Some((*reading, now));
                self.failure = None;
            }
            Answer::Reading(Err(error)) => {
                let since = self.failure.take().map_or(now, |(_, since)| since);
                self.failure = Some((error, since));
            }
            Answer::Explanation { of, explanation } => self.explained(&of, explanation),
            Answer::Acted { verb, service, result } => {
                let done = format!("{service} is {}", verb.done());
                let failed = |error| format!("{service} is not {}: {error}", verb.done());
                let is_failure = result.is_err();
                self.message = Some((result.map_or_else(failed, |()| done), is_failure));
            }
        }
    }

    /// An answer that comes after its text was closed is not shown.
    fn explained(&mut self, answered: &Subject, answer: Explanation) {
        if let Pane::Explanation { of, explanation, .. } = &mut self.pane
            && of == answered
        {
            *explanation = Some(answer);
        }
    }

    /// The services that the filter selects, in their order.
    pub(super) fn listed_services(&self) -> Vec<&ServiceReading> {
        let Some((reading, _)) = &self.reading else { return Vec::new() };
        let selects = |service: &&ServiceReading| {
            self.filter.is_empty()
                || contains(&service.id, &self.filter)
                || contains(&state(service, reading).text, &self.filter)
        };
        let mut services: Vec<_> = reading.services.iter().filter(selects).collect();
        let rate = |service: &ServiceReading| {
            let rates = reading.rates.as_ref();
            rates.and_then(|rates| rates.of_services.get(&service.id)).copied().unwrap_or(0.0)
        };
        services.sort_by(|a, b| {
            let by_column = match self.sort {
                Sort::Age => b.age.cmp(&a.age),
                Sort::Depth => b.open.cmp(&a.open),
                Sort::Rate => rate(b).total_cmp(&rate(a)),
                Sort::State => rank(a).cmp(&rank(b)),
                Sort::Service => std::cmp::Ordering::Equal,
            };
            by_column.then_with(|| a.id.cmp(&b.id))
        });
        services
    }

    /// The held batches that the filter selects, the longest held first.
    pub(super) fn listed_held(&self) -> Vec<&HeldReading> {
        let Some((reading, _)) = &self.reading else { return Vec::new() };
        let selects = |batch: &&HeldReading| {
            let texts = [&batch.id, &batch.service, &batch.reason];
            self.filter.is_empty() || texts.into_iter().any(|text| contains(text, &self.filter))
        };
        let mut held: Vec<_> = reading.held.iter().filter(selects).collect();
        held.sort_by_key(|batch| std::cmp::Reverse(batch.since));
        held
    }

    pub(super) fn selected_service(&self) -> Option<&ServiceReading> {
        let services = self.listed_services();
        let position = self.services.position(services.iter().map(|service| service.id.as_str()));
        services.get(position).copied()
    }

    pub(super) fn selected_held(&self) -> Option<&HeldReading> {
        let held = self.listed_held();
        held.get(self.held.position(held.iter().map(|batch| batch.id.as_str()))).copied()
    }

    /// How long ago the values were read.
    pub(super) fn reading_age(&self, now: Instant) -> Duration {
        let taken = self.reading.as_ref().map_or(now, |(_, taken)| *taken);
        now.saturating_duration_since(taken)
    }
}

fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

impl Sort {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Age => Self::Rate,
            Self::Rate => Self::State,
            Self::State => Self::Service,
            Self::Service => Self::Depth,
            Self::Depth => Self::Age,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Age => "OLDEST",
            Self::Rate => "RATE",
            Self::State => "STATE",
            Self::Service => "SERVICE",
            Self::Depth => "DEPTH",
        }
    }
}

impl Verb {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Resume => "resumed",
        }
    }
}

impl Under {
    pub(super) fn pane(self) -> Pane {
        match self {
            Self::Services => Pane::Services,
            Self::Held => Pane::Held,
        }
    }
}
