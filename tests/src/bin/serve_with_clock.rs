//! A server on a machine whose time of day another process sets: the file that is named first contains
//! by how many seconds it is ahead. The other arguments are settings as the program `grid-batch serve`
//! takes them, and the environment counts too. It runs until it is killed.

use std::{env, error::Error, fs, io::Write, path::PathBuf, sync::Arc, thread};

use grid_batch_core::{Clock, MonotonicTime, SystemClock, Timestamp};
use grid_batch_service::{Config, SETTINGS, Server, SettingName};

/// The time of day is ahead by the number of seconds in the file. Without a number, it is right.
#[derive(Debug)]
struct FileClock(PathBuf);

impl Clock for FileClock {
    fn now(&self) -> Timestamp {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let ahead: i64 = text.trim().parse().unwrap_or_default();
        Timestamp::from_micros(SystemClock.now().as_micros() + ahead * 1_000_000)
    }

    fn monotonic(&self) -> MonotonicTime {
        SystemClock.monotonic()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let file = arguments.next().ok_or("usage: serve_with_clock CLOCK_FILE [--SETTING VALUE]...")?;
    let file_of_settings = env::var_os(Config::FILE_VARIABLE).map(PathBuf::from);
    let config = Config::load(file_of_settings.as_deref(), env::vars(), flags(arguments)?)?;
    let server = Server::start_with_clock(&config, Arc::new(FileClock(file.into())))?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "Accepting batches at {}/batches", server.url())?;
    stdout.flush()?;
    loop {
        thread::park();
    }
}

fn flags(mut arguments: impl Iterator<Item = String>) -> Result<Vec<(String, String)>, String> {
    let mut flags = Vec::new();
    while let Some(flag) = arguments.next() {
        let is_named = |it: &SettingName| flag.strip_prefix("--") == Some(&it.flag());
        let found = SETTINGS.names().find(is_named).ok_or(format!("{flag} is not a setting"))?;
        flags.push((found.name, arguments.next().ok_or(format!("{flag} has no value"))?));
    }
    Ok(flags)
}
