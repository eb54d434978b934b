//! Recording what is logged.

use std::sync::Mutex;

use log::{Level, LevelFilter, Log, Metadata, Record, kv};

/// A logger that records lines as `LEVEL text key=value ...`, up to the level info.
///
/// The value of `elapsed_ms` is recorded as `..`, because it differs from run to run.
#[derive(Debug, Default)]
pub struct RecordingLog(Mutex<Vec<String>>);

impl RecordingLog {
    /// A logger without lines.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Makes this the logger of the process.
    pub fn install(&'static self) {
        log::set_logger(self).unwrap();
        log::set_max_level(LevelFilter::Info);
    }

    /// The lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Log for RecordingLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if record.level() <= Level::Info {
            let mut line = format!("{} {}", record.level(), record.args());
            record.key_values().visit(&mut AppendPairs(&mut line)).unwrap();
            self.0.lock().unwrap().push(line);
        }
    }

    fn flush(&self) {}
}

/// Appends key-value pairs to a line.
struct AppendPairs<'a>(&'a mut String);

impl<'kvs> kv::VisitSource<'kvs> for AppendPairs<'_> {
    fn visit_pair(&mut self, key: kv::Key<'kvs>, value: kv::Value<'kvs>) -> Result<(), kv::Error> {
        let value = if key.as_str() == "elapsed_ms" { "..".to_owned() } else { value.to_string() };
        self.0.push_str(&format!(" {key}={value}"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_level_text_and_pairs() {
        static LOG: RecordingLog = RecordingLog::new();
        LOG.install();
        log::info!(id = 7, elapsed_ms = 12; "done");
        log::debug!("not recorded");
        assert_eq!(LOG.lines(), ["INFO done id=7 elapsed_ms=.."]);
    }
}
