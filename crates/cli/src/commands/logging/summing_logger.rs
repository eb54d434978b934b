use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use env_logger::Logger;
use grid_batch_core::InternalError;
use grid_batch_support::{PeriodicThread, lock};
use log::{
    Level, Log, Metadata, Record,
    kv::{Key, ToValue, Value},
};

use super::repeated::{MessageKey, RepeatedLines, Summary};

/// A logger that sums up lines that are repeated often, so that a thousand services that fail in the same
/// way do not fill the disk. Records of the levels `debug` and `trace` are all logged.
pub(super) struct SummingLogger {
    state: Arc<SummingState>,
    /// Logs the summaries.
    _thread: Option<PeriodicThread>,
}

struct SummingState {
    inner: Logger,
    /// `None`: all lines are logged.
    lines: Option<Mutex<RepeatedLines>>,
}

impl SummingLogger {
    const CHECK_INTERVAL: Duration = Duration::from_secs(1);

    /// Logs up to `repeats` lines with the same message in a window of time; all of them if it is 0.
    pub(super) fn start(inner: Logger, repeats: u32) -> Result<Self, InternalError> {
        let lines = (repeats > 0).then(|| Mutex::new(RepeatedLines::new(repeats)));
        let sums_up = lines.is_some();
        let state = Arc::new(SummingState { inner, lines });
        let shared = Arc::clone(&state);
        let thread = sums_up.then(|| {
            PeriodicThread::start("log-summaries", Self::CHECK_INTERVAL, move || {
                shared.log_summaries(false);
            })
        });
        Ok(Self { state, _thread: thread.transpose()? })
    }
}

impl Log for SummingLogger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.state.inner.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if self.state.inner.matches(record) && self.state.admits(record) {
            self.state.inner.log(record);
        }
    }

    fn flush(&self) {
        self.state.log_summaries(true);
        self.state.inner.flush();
    }
}

impl SummingState {
    fn admits(&self, record: &Record<'_>) -> bool {
        // Each error is about something else that an operator must see.
        let is_summed = matches!(record.level(), Level::Warn | Level::Info);
        let Some(lines) = self.lines.as_ref().filter(|_| is_summed) else { return true };
        let key = MessageKey {
            level: record.level(),
            target: record.target().to_owned(),
            message: record.args().to_string(),
        };
        let service = record.key_values().get(Key::from_str("service"));
        let service = service.map(|service| service.to_string());
        lock(lines).admit(key, service.as_deref(), Instant::now())
    }

    fn log_summaries(&self, all: bool) {
        let Some(lines) = &self.lines else { return };
        let summaries = lock(lines).end_windows(Instant::now(), all);
        summaries.iter().for_each(|summary| self.log_summary(summary));
    }

    fn log_summary(&self, Summary { key, times, seconds, services }: &Summary) {
        let fields: [(&str, Value<'_>); 2] =
            [("repeated", times.to_value()), ("seconds", seconds.to_value())];
        let of_services = match services.as_str() {
            "" => String::new(),
            services => format!(", for services {services}"),
        };
        let message = &key.message;
        self.inner.log(
            &Record::builder()
                .level(key.level)
                .target(&key.target)
                .key_values(&fields.as_slice())
                .args(format_args!("{message}: repeated {times} times in {seconds} s{of_services}"))
                .build(),
        );
    }
}
