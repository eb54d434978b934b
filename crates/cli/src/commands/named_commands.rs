//! Every command that a page, an alert or a message names works as it is typed: `grid-batch` in backticks or in a block is
//! followed by a whole command, with placeholders in capitals.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::FromArgMatches;
use grid_batch_core::batches::StoredBatch;
use grid_batch_core::operators::OperatorVerb;
use grid_batch_core::queries::{ActionTarget, PossibleAction, WaitReason};
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use super::{Program, program};

const PREFIX: &str = "grid-batch ";

/// What stands for each placeholder, also in the format strings of messages.
const SAMPLES: &[(&[&str], &str)] = &[
    (&["BATCH", "ID", "WITHDRAWAL", "id"], "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"),
    (&["SERVICE", "service", "service_id"], "abcde-01234::gs01"),
    (&["N", "NONCE", "FIRST", "nonce", "first", "start"], "7"),
    (&["LAST", "last"], "9"),
    (&["ADDRESS"], "0x5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"),
    (&["URL", "DATABASE_URL"], "sqlite://grid-batch.db"),
    (&["FILE", "INSTANCE", "NAME", "RULE", "TEXT"], "text"),
];

/// A command, and where it stands.
#[derive(Debug)]
struct Named {
    place: String,
    command: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder with this ending.
fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    let (mut folders, mut found) = (vec![root().join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().unwrap().ends_with(ending) {
                let place = path.strip_prefix(root()).unwrap().display().to_string();
                found.push((place, fs::read_to_string(path).unwrap()));
            }
        }
    }
    found
}

/// The texts between backticks that begin with the program's name.
fn spans(place: &str, text: &str) -> Vec<Named> {
    let spans = text.split('`').skip(1).step_by(2).filter(|span| span.starts_with(PREFIX));
    let named = |span: &str| {
        let command = span.split_whitespace().collect::<Vec<_>>().join(" ");
        Named { place: place.to_owned(), command }
    };
    spans.map(named).collect()
}

/// The commands of a page: spans, and lines of blocks.
fn of_page(place: &str, page: &str) -> Vec<Named> {
    let page = page.replace("\\\n", " ");
    let (mut text, mut commands, mut is_block) = (String::new(), Vec::new(), false);
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            text.push_str(&format!("{line}\n"));
        } else if let Some(command) = of_line(line) {
            commands.push(Named { place: place.to_owned(), command });
        }
    }
    commands.extend(spans(place, &text));
    commands
}

/// The command of a line of a shell, after variables and without what follows the command.
fn of_line(line: &str) -> Option<String> {
    let line = line.trim();
    let command = match line.split_once("$(") {
        Some((_, command)) => command,
        None => {
            let is_variable = |word: &&str| word.contains('=') && !word.starts_with(PREFIX);
            let words = line.split(' ').skip_while(is_variable).collect::<Vec<_>>();
            return words.join(" ").strip_prefix(PREFIX).map(end_of_command);
        }
    };
    command.strip_prefix(PREFIX).map(end_of_command)
}

/// The command without a comment, a pipe, a redirection and what follows.
fn end_of_command(rest: &str) -> String {
    let mut quote = None;
    let end = rest.char_indices().find(|(at, it)| {
        match quote {
            Some(open) if open == *it => quote = None,
            None if matches!(it, '\'' | '"') => quote = Some(*it),
            _ => {}
        }
        let is_comment = *it == '#' && rest[..*at].ends_with(' ');
        quote.is_none() && (matches!(it, '|' | '>' | '&' | ';' | ')') || is_comment)
    });
    format!("{PREFIX}{}", &rest[..end.map_or(rest.len(), |(at, _)| at)])
}

/// The string literals of a source, without its tests.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let (mut literals, mut rest) = (Vec::new(), source);
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let after = &rest[at + 1..];
        rest = match rest.as_bytes()[at] {
            b'/' if after.starts_with('/') => after.split_once('\n').map_or("", |(_, rest)| rest),
            b'/' => after,
            // A character, or a lifetime.
            b'\'' => match after.strip_prefix('\\') {
                Some(escaped) => &escaped[escaped.find('\'').map_or(0, |end| end + 1)..],
                None => match after.char_indices().nth(1) {
                    Some((end, '\'')) => &after[end + 1..],
                    _ => after,
                },
            },
            _ if rest[..at].ends_with(['r', '#']) => {
                let hashes = rest[..at].len() - rest[..at].trim_end_matches('#').len();
                let (literal, rest) =
                    after.split_once(&format!("\"{}", "#".repeat(hashes))).unwrap();
                literals.push(literal.to_owned());
                rest
            }
            _ => {
                let (literal, rest) = of_literal(after);
                literals.push(literal);
                rest
            }
        };
    }
    literals
}

/// The text up to the end of a literal, and what follows it.
fn of_literal(text: &str) -> (String, &str) {
    let (mut literal, mut characters) = (String::new(), text.char_indices());
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (literal, &text[at + 1..]),
            '\\' => match characters.next() {
                // The lines of a message are joined.
                Some((at, '\n')) => {
                    let spaces = text[at + 1..].chars().take_while(|it| it.is_whitespace()).count();
                    characters.by_ref().take(spaces).for_each(drop);
                }
                Some((_, escaped)) => literal.push(if escaped == 'n' { '\n' } else { escaped }),
                None => {}
            },
            character => literal.push(character),
        }
    }
    (literal, "")
}

/// The commands of a source of the program. One that is not in backticks is an error: its end is not seen.
fn of_source(program: &clap::Command, place: &str, source: &str) -> Vec<Named> {
    let mut commands = Vec::new();
    for literal in literals(source) {
        for outside in literal.split('`').step_by(2).filter(|it| !it.starts_with(PREFIX)) {
            for after in outside.split(PREFIX).skip(1) {
                let word = after.split(|it: char| !it.is_alphanumeric() && it != '-').next();
                let is_command = program.find_subcommand(word.unwrap()).is_some();
                assert!(!is_command, "{place}: put the command in backticks: {outside}");
            }
        }
        commands.extend(spans(place, &literal));
        // The dashboard shows a command as an element of its own.
        if place.ends_with(".js") && literal.starts_with(PREFIX) {
            commands.push(Named { place: place.to_owned(), command: literal });
        }
    }
    commands
}

/// The words of a command, as a shell splits them, with samples for placeholders.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in command.chars() {
        match (quote, character) {
            (Some(open), it) if open == it => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (_, it) => word.get_or_insert_default().push(it),
        }
    }
    words.extend(word);
    words.iter().map(|word| with_samples(word)).collect()
}

fn with_samples(word: &str) -> String {
    let word = word.strip_suffix("...").filter(|it| !it.is_empty()).unwrap_or(word);
    let parts = word.split_inclusive(['-', '@', '=']).map(|part| {
        let name = part.trim_end_matches(['-', '@', '=']);
        let end = &part[name.len()..];
        let inner = name.trim_start_matches(['$', '{']).trim_end_matches('}');
        let sample = SAMPLES.iter().find(|(names, _)| {
            let is_placeholder = inner.len() < name.len() || !inner.contains(char::is_lowercase);
            is_placeholder && names.contains(&inner)
        });
        format!("{}{end}", sample.map_or(name, |(_, sample)| sample))
    });
    parts.collect()
}

/// Why a command does not work as it is typed.
fn problem(program: &mut clap::Command, command: &str) -> Option<String> {
    let mut words = words(command);
    if words[1].starts_with("webhook") {
        // The id of a webhook is a number.
        words.iter_mut().filter(|word| word.starts_with("5a5a")).for_each(|it| *it = "1".into());
    }
    let decides = ["decide", "resubmit"].contains(&words[1].as_str());
    if decides && !words.iter().any(|word| word == "--attempt" || word.contains('@')) {
        return Some("it needs an attempt".to_owned());
    }
    let parsed = program.try_get_matches_from_mut(&words);
    let parsed = parsed.and_then(|matches| Program::from_arg_matches(&matches));
    let error = parsed.err().filter(clap::Error::use_stderr)?;
    Some(error.to_string().split("\n\n").next().unwrap().to_owned())
}

#[test]
fn commands_that_are_named_work_as_they_are_typed() {
    let (mut program, mut named) = (program(), Vec::new());
    for (place, page) in files("docs", ".md").iter().chain(&files("deploy", ".yml")) {
        // The reference has the help of commands in blocks.
        let is_text = place.ends_with("commands.md") || !place.ends_with(".md");
        named.extend(if is_text { spans(place, page) } else { of_page(place, page) });
    }
    let count = named.len();
    assert!(count > 150, "the pages name only {count} commands");
    let sources = files("crates", ".rs").into_iter().filter(|(place, _)| {
        place.contains("/src/") && !place.ends_with("tests.rs") && !place.ends_with(file!())
    });
    for (place, source) in sources.chain(files("crates/api/src", ".js")) {
        named.extend(of_source(&program, &place, &source));
    }
    assert!(named.len() > count + 20, "the sources name only {} commands", named.len() - count);
    let problems = named.iter().filter_map(|Named { place, command }| {
        Some(format!("{place}: {command}\n    {}", problem(&mut program, command)?))
    });
    let problems: Vec<String> = problems.collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// What `actions` of an explanation can be.
#[test]
fn commands_of_possible_actions_work_as_they_are_typed() {
    let service: ServiceId = "abcde-01234::gs01".parse().unwrap();
    let batch =
        StoredBatch::new(service.clone(), ItemId::from_bytes([7; 64]), Timestamp::from_micros(1));
    let mut program = program();
    for verb in WaitReason::examples().iter().flat_map(|reason| reason.about().actions) {
        let targets = match verb {
            OperatorVerb::Resume => {
                vec![ActionTarget::Service(&service), ActionTarget::AllServices]
            }
            _ => vec![ActionTarget::Batch(&batch)],
        };
        for target in targets {
            let command = PossibleAction { verb: *verb, target }.to_string();
            assert_eq!(problem(&mut program, &command), None, "{command}");
        }
    }
}

#[test]
fn incomplete_commands_are_found() {
    let mut program = program();
    for command in [
        "grid-batch end_committed",
        "grid-batch retry SERVICE",
        "grid-batch show",
        "grid-batch resubmit BATCH --reason TEXT",
        "grid-batch decide ... invalid",
        "grid-batch webhooks failed UNKNOWN",
    ] {
        assert!(problem(&mut program, command).is_some(), "{command}");
    }
    let line = "A=1 grid-batch retry 'a b' --reason \"c; d\" # why";
    let command = of_line(line).unwrap();
    assert_eq!(words(&command), ["grid-batch", "retry", "a b", "--reason", "c; d"]);
    let source = r#"fn a() { let b = '"'; "see `grid-batch \
        top`" } // "no literal""#;
    let named = of_source(&program, "a", source);
    assert_eq!(named.iter().map(|it| it.command.as_str()).collect::<Vec<_>>(), ["grid-batch top"]);
}
