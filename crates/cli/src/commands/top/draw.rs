//! What is on the screen: lines from a view.

use std::time::{Duration, Instant};

use grid_batch_core::queries::WaitReason;

use super::{
    line::{Line, Style},
    press::KEYS,
    reading::{HeldReading, Parts, Reading, ServiceReading},
    selection::first_shown,
    state::state,
    view::{Input, Pane, ReadFailure, Sort, View},
};
use crate::commands::{
    columns::{columns, fit},
    operator::rough,
    remote::explanation_lines,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// The headline, the counts, instances, nodes, and the title of the list.
const ABOVE: usize = 5;
/// The headings of a table.
const HEADINGS: usize = 1;
/// What ends the wait of the selected service or batch.
const ENDS: usize = 1;
/// A smaller window has no line for it: entries of the list are more useful.
const LOWEST_WITH_ENDS: usize = 12;
/// The keys, a question or a message.
const BELOW: usize = 1;

/// How many entries of a list fit.
pub(super) fn rows(view: &View, size: Size) -> usize {
    let failure = usize::from(view.failure.is_some());
    size.height.saturating_sub(ABOVE + failure + HEADINGS + ends_lines(size) + BELOW)
}

fn ends_lines(size: Size) -> usize {
    if size.height < LOWEST_WITH_ENDS { 0 } else { ENDS }
}

/// The height at which all entries fit.
pub(super) fn full_height(view: &View) -> usize {
    ABOVE + HEADINGS + ENDS + BELOW + view.listed_services().len().max(1)
}

/// The lines of the screen: as many as it is high, none wider than it.
pub(super) fn draw(view: &View, size: Size, now: Instant) -> Vec<Line> {
    let mut lines = vec![headline(view, now)];
    lines.extend(failure(view));
    match &view.reading {
        Some((reading, _)) => {
            lines.push(counts(reading));
            lines.push(parts("instances", &reading.instances));
            lines.push(parts("nodes", &reading.nodes));
        }
        None => lines.extend(vec![Line::default(); 3]),
    }
    lines.push(what_is_listed(view));
    lines.extend(pane(view, size, now));
    let above = size.height.saturating_sub(ends_lines(size) + BELOW);
    lines.truncate(above);
    lines.resize(above, Line::default());
    if ends_lines(size) > 0 {
        lines.push(ends(view));
    }
    lines.push(last_line(view, size.width));
    lines.into_iter().map(|line| line.cut(size.width)).collect()
}

fn headline(view: &View, now: Instant) -> Line {
    let line =
        Line::new("grid-batch top", Style::Bold).with(format!("  {}  ", view.server), Style::Plain);
    let age = view.reading_age(now);
    let values = match &view.reading {
        Some(_) => format!("; values of {} ago", rough(age)),
        None => String::new(),
    };
    match &view.failure {
        Some((failure, since)) => {
            let what = match failure {
                ReadFailure::NoAnswer(_) => "NO ANSWER",
                ReadFailure::Refused(_) => "REFUSED",
            };
            let time = rough(now.saturating_duration_since(*since));
            line.with(format!("{what} for {time}{values}"), Style::Problem)
        }
        None if age > view.late_after => {
            line.with(format!("NO ANSWER yet{values}"), Style::Problem)
        }
        None if view.reading.is_none() => line.with("waits for an answer", Style::Plain),
        None => line.with(format!("read {} ago", rough(age)), Style::Plain),
    }
}

/// Why the server cannot be read.
fn failure(view: &View) -> Option<Line> {
    let (ReadFailure::NoAnswer(error) | ReadFailure::Refused(error), _) = view.failure.as_ref()?;
    Some(Line::new(error, Style::Problem))
}

fn counts(reading: &Reading) -> Line {
    let more = if reading.more_services { "more than " } else { "" };
    let oldest = reading.oldest().map_or_else(|| "-".to_owned(), rough);
    let rate = |rate: fn(&super::rates::Rates) -> f64| match &reading.rates {
        Some(rates) => {
            format!("{:.1}/s{}", rate(rates), if rates.is_sample { " (sample)" } else { "" })
        }
        None => "-".to_owned(),
    };
    let submitted = rate(|rates| rates.submitted);
    let committed = rate(|rates| rates.committed);
    let line = Line::plain(format!(
        "open {more}{}   submitted {submitted}   committed {committed}   oldest {oldest}   ",
        reading.open()
    ));
    let more = if reading.more_held { "more than " } else { "" };
    let style = if reading.held.is_empty() { Style::Plain } else { Style::Problem };
    line.with(format!("held {more}{}", reading.held.len()), style)
}

fn parts(name: &str, Parts { count, problems }: &Parts) -> Line {
    let line = Line::plain(format!("{name} {count}"));
    match problems.len() {
        0 => line.with("   no problem", Style::Plain),
        1 => line.with(format!("   {}", problems.join("")), Style::Problem),
        count => line.with(format!("   {count} problems: {}", problems.join("; ")), Style::Problem),
    }
}

fn what_is_listed(view: &View) -> Line {
    let filter = match view.filter.as_str() {
        "" => String::new(),
        filter => format!(" that contain \"{filter}\""),
    };
    let text = match &view.pane {
        Pane::Services => {
            let count = view.listed_services().len();
            let plural = if count == 1 { "service" } else { "services" };
            format!("{count} {plural} with open batches{filter}, sorted by {}", view.sort.name())
        }
        Pane::Held => {
            let count = view.listed_held().len();
            let plural = if count == 1 { "batch" } else { "batches" };
            format!("{count} held {plural}{filter}, the longest held first")
        }
        Pane::Explanation { of, .. } => format!("Why {of} waits"),
        Pane::Help { .. } => "Keys".to_owned(),
    };
    Line::new(text, Style::Faint)
}

fn pane(view: &View, size: Size, now: Instant) -> Vec<Line> {
    match &view.pane {
        Pane::Services => services(view, size, now),
        Pane::Held => held(view, size, now),
        Pane::Explanation { explanation, scroll, .. } => {
            let width = size.width.saturating_sub(2).max(1);
            let lines = match explanation {
                Some(Ok(told)) => explanation_lines(told, width),
                Some(Err(error)) => vec![format!("The server gave no explanation: {error}")],
                None => vec!["The server is asked…".to_owned()],
            };
            text(&lines, *scroll, rows(view, size) + HEADINGS)
        }
        Pane::Help { scroll, .. } => text(&help(), *scroll, rows(view, size) + HEADINGS),
    }
}

fn help() -> Vec<String> {
    let keys = KEYS.iter().map(|(key, what)| format!("{key:<18}{what}"));
    let words = [
        "",
        "DEPTH     open batches of the service",
        "OLDEST    the age of the oldest of them",
        "RATE      recent batches committed per second",
        "held      waits for an operator's decision: h lists why",
        "stopped   an invalid batch stops those after it until an operator decides",
        "failing   the last attempt to submit a batch failed; it is tried again",
        "paused    starts no new submission until it is resumed",
        "(sample)  too many events to read all: the rates are from part of the time",
    ];
    keys.chain(words.map(str::to_owned)).collect()
}

/// A text that is scrolled at most to its last page.
fn text(lines: &[String], scroll: usize, rows: usize) -> Vec<Line> {
    let first = scroll.min(lines.len().saturating_sub(rows));
    let mut shown: Vec<Line> =
        lines.iter().skip(first).take(rows).map(|line| Line::plain(format!("  {line}"))).collect();
    let below = lines.len().saturating_sub(first + rows);
    if below > 0 && rows > 1 {
        shown.pop();
        shown.push(Line::new(format!("  … {} more lines", below + 1), Style::Faint));
    }
    shown
}

fn services(view: &View, size: Size, now: Instant) -> Vec<Line> {
    let services = view.listed_services();
    let Some((reading, _)) = &view.reading else { return Vec::new() };
    if services.is_empty() {
        let none = if view.filter.is_empty() {
            "No service has an open batch."
        } else {
            "No service matches."
        };
        return vec![Line::plain(none)];
    }
    let widest = services.iter().map(|service| columns(&service.id)).max().unwrap_or(0);
    let width = widest.clamp(7, (size.width / 3).max(7));
    let heading = |sort: Sort| {
        let mark = if sort == view.sort { "*" } else { "" };
        format!("{}{mark}", sort.name())
    };
    let mut lines = vec![Line::new(
        format!(
            "  {}  {:>6}  {:>8}  {:>7}  {}",
            fit(&heading(Sort::Service), width),
            heading(Sort::Depth),
            heading(Sort::Age),
            heading(Sort::Rate),
            heading(Sort::State),
        ),
        Style::Bold,
    )];
    let selected = view.services.position(services.iter().map(|service| service.id.as_str()));
    let rows = rows(view, size);
    let first = first_shown(selected, rows, services.len());
    let age = view.reading_age(now);
    for (position, service) in services.iter().enumerate().skip(first).take(rows) {
        lines.push(service_line(service, reading, age, width, position == selected));
    }
    lines
}

fn service_line(
    service: &ServiceReading,
    reading: &Reading,
    reading_age: Duration,
    width: usize,
    is_selected: bool,
) -> Line {
    let rate = match &reading.rates {
        Some(rates) => {
            format!("{:.1}/s", rates.of_services.get(&service.id).copied().unwrap_or(0.0))
        }
        None => "-".to_owned(),
    };
    let oldest = match service.open {
        0 => "-".to_owned(),
        _ => rough(service.age + reading_age),
    };
    let state = state(service, reading);
    let style = if state.needs_operator() {
        Style::Problem
    } else if state.is_running() {
        Style::Plain
    } else {
        Style::Warning
    };
    let columns =
        format!("{}  {:>6}  {oldest:>8}  {rate:>7}  ", fit(&service.id, width), service.open);
    selectable(columns, is_selected).with(state.text, style)
}

fn held(view: &View, size: Size, now: Instant) -> Vec<Line> {
    let held = view.listed_held();
    if held.is_empty() {
        let none =
            if view.filter.is_empty() { "No batch is held." } else { "No held batch matches." };
        return vec![Line::plain(none)];
    }
    let widest = held.iter().map(|batch| columns(&batch.service)).max().unwrap_or(0);
    let width = widest.clamp(7, (size.width / 3).max(7));
    let mut lines = vec![Line::new(
        format!("  {}  {}  {:>8}  WHY", fit("SERVICE", width), fit("BATCH", 12), "HELD FOR"),
        Style::Bold,
    )];
    let selected = view.held.position(held.iter().map(|batch| batch.id.as_str()));
    let rows = rows(view, size);
    let first = first_shown(selected, rows, held.len());
    let age = view.reading_age(now);
    for (position, batch) in held.iter().enumerate().skip(first).take(rows) {
        lines.push(held_line(batch, age, width, position == selected));
    }
    lines
}

fn held_line(batch: &HeldReading, reading_age: Duration, width: usize, is_selected: bool) -> Line {
    let since = batch.since.map(|since| rough(since + reading_age)).unwrap_or_default();
    let id = batch.id.get(..12).unwrap_or(&batch.id);
    let columns = format!("{}  {}  {since:>8}  ", fit(&batch.service, width), fit(id, 12));
    selectable(columns, is_selected).with(&batch.reason, Style::Plain)
}

/// What ends the wait of the selected service, or of the selected batch.
fn ends(view: &View) -> Line {
    let Some((reading, _)) = &view.reading else { return Line::default() };
    let of_selected = match view.pane {
        Pane::Services => {
            let services = view.listed_services();
            let selected = view.services.position(services.iter().map(|it| it.id.as_str()));
            services.get(selected).and_then(|service| state(service, reading).ends)
        }
        Pane::Held => {
            (!view.listed_held().is_empty()).then(|| WaitReason::Held.about().ends.to_owned())
        }
        Pane::Explanation { .. } | Pane::Help { .. } => None,
    };
    of_selected
        .map_or_else(Line::default, |ends| Line::new(format!("> ends: {ends}"), Style::Faint))
}

fn selectable(columns: String, is_selected: bool) -> Line {
    if is_selected {
        Line::new(format!("> {columns}"), Style::Selected)
    } else {
        Line::plain(format!("  {columns}"))
    }
}

/// A question, a message, or the keys.
fn last_line(view: &View, width: usize) -> Line {
    match (&view.input, &view.message) {
        (Some(Input::Filter { .. }), _) => question("Filter: ", &view.filter, width),
        (Some(Input::Reason { verb, service, text }), _) => {
            let room = width.saturating_sub(48).max(8);
            let service = fit(service, room.min(columns(service)));
            question(&format!("Why {} {service}? (Esc: no) ", verb.name()), text, width)
        }
        (None, Some((message, true))) => Line::new(message, Style::Problem),
        (None, Some((message, false))) => Line::plain(message),
        (None, None) => Line::new(keys_of(&view.pane), Style::Faint),
    }
}

fn keys_of(pane: &Pane) -> &'static str {
    match pane {
        Pane::Services => "s sort  / filter  p pause or resume  e explain  h held  ? help  q quit",
        Pane::Held => "/ filter  e explain  h services  ? help  q quit",
        Pane::Explanation { .. } | Pane::Help { .. } => "Up, Down scroll  Esc back  q quit",
    }
}

/// The end of the typed text is always visible.
fn question(question: &str, typed: &str, width: usize) -> Line {
    let room = width.saturating_sub(columns(question) + 1);
    let mut shown = typed;
    while columns(shown) > room {
        let mut characters = shown.chars();
        characters.next();
        shown = characters.as_str();
    }
    Line::new(question, Style::Bold).with(shown, Style::Plain).with("_", Style::Faint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::top::{
        fixtures::view,
        key::Key,
        view::{Answer, Subject},
    };

    const USUAL: Size = Size { width: 80, height: 24 };

    fn texts(view: &View, size: Size) -> Vec<String> {
        draw(view, size, Instant::now()).iter().map(Line::text).collect()
    }

    #[test]
    fn frame_of_a_usual_terminal() {
        let lines = texts(&view(), USUAL);
        let expected = [
            "grid-batch top  http://127.0.0.1:8080  read 0 s ago",
            "open 924   submitted 12.5/s   committed 12.0/s   oldest 66 min   held 1",
            "instances 2   second: drains",
            "nodes 2   http://two: does not answer",
            "4 services with open batches, sorted by OLDEST",
            "  SERVICE     DEPTH   OLDEST*     RATE  STATE",
            "> c::old         17    66 min    0.0/s  running",
            "  c::held         2     8 min    0.0/s  held: nothing proves that it was applie…",
            "  c::paused       5     2 min    0.0/s  paused: the update 表",
            "  c::busy       900       3 s   11.5/s  running",
        ];
        assert_eq!(lines[..expected.len()], expected);
        assert!(lines[expected.len()..23].iter().all(String::is_empty), "{lines:#?}");
        assert!(lines[23].starts_with("s sort  / filter  p pause"), "{lines:#?}");
    }

    #[test]
    fn every_pane_fits_every_size() {
        let mut view = view();
        let long = "a reason that goes on 表表表 ".repeat(40);
        for keys in ["", "h", "?", "?e", "\u{1b}hp", "/"] {
            keys.chars().for_each(|key| {
                view.press(if key == '\u{1b}' { Key::Escape } else { Key::Character(key) });
            });
            view.press(Key::Pasted(long.clone()));
            let of = Subject::Service("c::old".to_owned());
            let explanation = Ok(serde_json::json!({"text": long}));
            view.apply(Answer::Explanation { of, explanation }, Instant::now());
            for (width, height) in [(80, 24), (120, 40), (40, 10), (10, 3), (1, 1), (0, 0)] {
                let lines = texts(&view, Size { width, height });
                assert_eq!(lines.len(), height.max(1));
                assert!(lines.iter().all(|line| columns(line) <= width), "{width}: {lines:#?}");
            }
        }
    }

    #[test]
    fn larger_windows_show_more() {
        let mut view = view();
        let mut reading = crate::commands::top::fixtures::reading();
        let service = reading.services[0].clone();
        reading.services.extend(
            (0..100)
                .map(|number| ServiceReading { id: format!("c::{number:03}"), ..service.clone() }),
        );
        view.apply(Answer::Reading(Ok(Box::new(reading))), Instant::now());
        let listed = |size| texts(&view, size).iter().filter(|line| line.contains("c::")).count();
        assert_eq!(listed(USUAL), 16);
        assert_eq!(listed(Size { width: 120, height: 40 }), 32);
        let reason = "nothing proves that it was applied";
        assert!(texts(&view, Size { width: 120, height: 40 }).iter().any(|it| it.contains(reason)));
    }

    #[test]
    fn selected_service_is_shown_in_a_long_list() {
        let mut view = view();
        view.press(Key::End);
        let lines = texts(&view, Size { width: 80, height: 9 });
        assert_eq!(
            lines.iter().filter(|line| line.starts_with("> c::busy")).count(),
            1,
            "{lines:#?}"
        );
    }

    #[test]
    fn server_without_an_answer_is_told() {
        let mut view = view();
        let now = Instant::now();
        let headline = |view: &View, seconds| {
            let lines = draw(view, USUAL, now + Duration::from_secs(seconds));
            lines.iter().map(Line::text).take(2).collect::<Vec<_>>().join("\n")
        };
        assert!(headline(&view, 8).contains("NO ANSWER yet; values of 8 s ago\nopen 924 "));
        let failure = ReadFailure::NoAnswer("connection refused".to_owned());
        view.apply(Answer::Reading(Err(failure)), now);
        let told = "NO ANSWER for 9 s; values of 9 s ago\nconnection refused";
        assert!(headline(&view, 9).ends_with(told), "{}", headline(&view, 9));
        let failure = ReadFailure::Refused("the token has expired".to_owned());
        view.apply(Answer::Reading(Err(failure)), now);
        assert!(headline(&view, 9).contains("REFUSED for 9 s"));
        assert!(texts(&view, USUAL)[7].starts_with("> c::old"));
        let fresh = View::new("http://a".to_owned(), Duration::from_secs(2));
        assert_eq!(headline(&fresh, 0), "grid-batch top  http://a  waits for an answer\n");
    }

    #[test]
    fn help_has_every_key_and_is_scrolled() {
        let mut view = view();
        view.press(Key::Character('?'));
        let lines = texts(&view, Size { width: 80, height: 40 });
        for (key, what) in KEYS {
            assert!(lines.iter().any(|line| line.contains(key) && line.contains(what)), "{key}");
        }
        let small = Size { width: 80, height: 12 };
        assert!(texts(&view, small)[9].contains("more lines"));
        (0..100).for_each(|_| {
            view.press(Key::Down);
        });
        assert!(texts(&view, small)[9].contains("(sample)"));
    }

    #[test]
    fn what_ends_the_selected_wait_is_told() {
        let mut view = view();
        let ends = |view: &View| texts(view, USUAL)[22].clone();
        assert_eq!(ends(&view), "", "the service runs");
        view.press(Key::Down);
        let held =
            "> ends: an operator's decision, a final status of the ledger, or, unless `until…";
        assert_eq!(ends(&view), held);
        view.press(Key::Down);
        assert!(ends(&view).starts_with("> ends: a `resume` by an operator"), "{}", ends(&view));
        view.press(Key::Character('h'));
        assert_eq!(ends(&view), held);
        view.press(Key::Character('?'));
        assert_eq!(ends(&view), "");
    }
}
