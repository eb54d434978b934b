//! `top`: a live view of a running server.

mod draw;
mod explanation;
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

use clap::{Arg, ArgAction, ArgMatches, Command};
use humantime::parse_duration;

use self::{
    draw::{Size, draw, full_height},
    line::Line,
    rates::EventFeed,
    reading::Reading,
    view::{Answer, View},
};
use crate::commands::{
    failure::Failure,
    print::print_stdout,
    remote::{Server, server_flags, terminal_width},
};

pub(crate) fn command() -> Command {
    Command::new("top")
        .about("Shows a running server: its services by age and depth, rates, what is held and why")
        .arg(
            Arg::new("interval")
                .long("interval")
                .value_name("TIME")
                .value_parser(parse_interval)
                .default_value("2s")
                .help("Time between two readings of the server"),
        )
        .arg(Arg::new("once").long("once").action(ArgAction::SetTrue).help(
            "Prints the view once, as text, after two readings of the server, which give the rates",
        ))
        .args(server_flags())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let interval = matches.get_one("interval").copied().unwrap_or(Duration::from_secs(2));
    let server = || Server::of(matches);
    if matches.get_flag("once") {
        return print_once(&server()?, interval);
    }
    screen::run(server()?, server()?, interval)
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text).map_err(|error| error.to_string())?;
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
