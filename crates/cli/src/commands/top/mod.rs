//! `top`: a live view of a running server.

mod draw;
#[cfg(test)]
mod fixtures;
mod key;
mod line;
mod press;
mod rates;
mod reading;
mod screen;
mod selection;
mod state;
mod terminal;
mod view;
mod worker;

use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use clap::Args;

use self::{
    draw::{Size, draw, full_height},
    line::Line,
    rates::EventFeed,
    reading::Reading,
    view::{Answer, View},
};
use crate::commands::{
    arguments::{ServerArgs, parse_duration},
    failure::Failure,
    print::print_stdout,
    remote::{Server, terminal_width},
};

/// Shows a running server: its services by age and depth, rates, what is held and why
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Time between two readings of the server
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_interval)]
    interval: Duration,
    /// Prints the view once, as text, after two readings of the server, which give the rates
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn run(args: &TopArgs) -> Result<ExitCode, Failure> {
    let server = || Server::of(&args.server);
    if args.once {
        return print_once(&server()?, args.interval);
    }
    screen::run(server()?, server()?, args.interval)
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)?;
    let shortest = Duration::from_millis(100);
    if interval < shortest {
        Err("the shortest interval is 100ms".to_owned())
    } else {
        Ok(interval)
    }
}

/// Wider than any line, for output that is not a terminal.
const UNCUT: usize = 10_000;

fn print_once(server: &Server, interval: Duration) -> Result<ExitCode, Failure> {
    let mut feed = EventFeed::default();
    Reading::take(server, &mut feed)?;
    thread::sleep(interval);
    let reading = Reading::take(server, &mut feed)?;
    let mut view = View::new(server.client.name(), interval);
    let now = Instant::now();
    view.apply(Answer::Reading(Ok(Box::new(reading))), now);
    let size = Size { width: terminal_width().unwrap_or(UNCUT), height: full_height(&view) };
    let mut lines = draw(&view, size, now);
    // The last line has the keys.
    lines.pop();
    lines.iter().map(Line::text).for_each(|line| print_stdout(line.trim_end()));
    Ok(ExitCode::SUCCESS)
}
