//! The loop of the view on a terminal.

use std::{
    io::{Read, stdin},
    process::ExitCode,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::{Duration, Instant},
};

use grid_batch_support::spawn_thread;
use signal_hook::{
    consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGWINCH},
    iterator::Signals,
};

use super::{
    draw::{draw, rows},
    key::{Key, KeyReader},
    press::Effect,
    terminal::Terminal,
    view::{Answer, Request, View},
    worker::{start_reader, start_requests},
};
use crate::commands::{failure::Failure, remote::Server};

/// What the loop waits for.
#[derive(Debug)]
enum ScreenEvent {
    Input(Vec<u8>),
    InputEnded,
    Signal(i32),
    Answer(Answer),
}

/// Ages are redrawn when nothing else happens.
const REDRAW: Duration = Duration::from_secs(1);
/// The bytes of one key arrive within this time.
const KEY_TIME: Duration = Duration::from_millis(50);

/// Shows the view until the user quits. It has two clients, so that an answer to a key does not wait for a reading.
pub(super) fn run(
    to_read: Server,
    to_request: Server,
    interval: Duration,
) -> Result<ExitCode, Failure> {
    let mut view = View::new(to_read.client.name(), interval);
    let mut terminal = Terminal::open()?;
    let (sender, events) = channel();
    start_input(sender.clone())?;
    start_signals(sender.clone())?;
    let read_again = start_reader(to_read, interval, answer_to(sender.clone()))?;
    let requests = start_requests(to_request, read_again, answer_to(sender))?;
    show(&mut view, &mut terminal, &events, &requests)
}

fn answer_to(sender: Sender<ScreenEvent>) -> impl Fn(Answer) + Send + 'static {
    // The view may have ended.
    move |answer| drop(sender.send(ScreenEvent::Answer(answer)))
}

fn show(
    view: &mut View,
    terminal: &mut Terminal,
    events: &Receiver<ScreenEvent>,
    requests: &Sender<Request>,
) -> Result<ExitCode, Failure> {
    let mut keys = KeyReader::default();
    loop {
        let size = terminal.size();
        view.rows = rows(view, size);
        terminal.show(&draw(view, size, Instant::now()), size)?;
        let time = if keys.is_incomplete() { KEY_TIME } else { REDRAW };
        let first = match events.recv_timeout(time) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(ExitCode::SUCCESS),
        };
        let pressed = if first.is_none() { keys.end() } else { None };
        if press(view, pressed, requests) {
            return Ok(ExitCode::SUCCESS);
        }
        for event in first.into_iter().chain(events.try_iter()) {
            let pressed = match event {
                ScreenEvent::Input(bytes) => keys.read(&bytes),
                ScreenEvent::InputEnded => return Ok(ExitCode::SUCCESS),
                ScreenEvent::Signal(SIGWINCH) => continue,
                ScreenEvent::Signal(SIGCONT) => {
                    terminal.reopen()?;
                    continue;
                }
                ScreenEvent::Signal(signal) => {
                    return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)));
                }
                ScreenEvent::Answer(answer) => {
                    view.apply(answer, Instant::now());
                    continue;
                }
            };
            if press(view, pressed, requests) {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

/// Returns whether a key quits.
fn press(view: &mut View, keys: impl IntoIterator<Item = Key>, requests: &Sender<Request>) -> bool {
    keys.into_iter().any(|key| match view.press(key) {
        Effect::None => false,
        Effect::Quit => true,
        Effect::Request(request) => requests.send(request).is_err(),
    })
}

/// Ends with the program: a read of the terminal cannot be interrupted.
fn start_input(events: Sender<ScreenEvent>) -> Result<(), Failure> {
    spawn_thread("keys", move || {
        let mut buffer = [0; 1024];
        loop {
            let event = match stdin().lock().read(&mut buffer) {
                Ok(0) | Err(_) => ScreenEvent::InputEnded,
                Ok(count) => ScreenEvent::Input(buffer.iter().take(count).copied().collect()),
            };
            let has_ended = matches!(event, ScreenEvent::InputEnded);
            if events.send(event).is_err() || has_ended {
                return;
            }
        }
    })?;
    Ok(())
}

fn start_signals(events: Sender<ScreenEvent>) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT])?;
    spawn_thread("signals", move || {
        for signal in signals.forever() {
            if events.send(ScreenEvent::Signal(signal)).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}
