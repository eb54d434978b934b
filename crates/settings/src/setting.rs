use std::{borrow::Cow, time::Duration};

use crate::{ConfigError, GivenValue, Origin, redact_secrets, secret::PLACEHOLDER};

/// One setting. [`settings!`](crate::settings) declares it.
///
/// The environment variable and the flag follow from the name: `poll.interval` is `GRID_BATCH_POLL_INTERVAL` and
/// `--poll-interval`.
///
/// A setting with `*` in its name has a value for each key: `services.*.strategy` is the key `strategy` in the sections
/// `[services."KEY"]` of the file. Its variable `GRID_BATCH_SERVICES_STRATEGY` and its flag `--services-strategy` are
/// lists of `KEY=VALUE`, where `VALUE` alone is for the key `*`.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The name: a section of the file, a dot, and the key; or only a key.
    pub name: &'static str,
    /// How the value is written in the file.
    pub form: Form,
    /// The default, in the syntax of an environment variable.
    pub default: &'static str,
    /// What the setting does and, after an empty line, why and when to change it.
    docs: Docs,
    /// What the value can be, if only the running program knows: the end of the help.
    choices: &'static str,
    /// Whether all instances of a database must have the same value.
    pub equal: bool,
    /// Another environment variable that is read too.
    pub alias: Option<&'static str>,
    /// Whether a value may hold a secret, such as a password in a URL.
    pub may_hold_secret: bool,
    /// Whether a list can be given as one text: it has mostly one item.
    pub may_be_one_text: bool,
    /// Whether the help of commands shows it, because most servers need it.
    pub is_common: bool,
    range: Range,
    /// How a value that may hold a secret is shown.
    redact: Redact,
}

type Redact = fn(&str) -> Cow<'_, str>;

/// How a value is written in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A text in quotes.
    Text,
    /// A text in quotes that is a secret, or a URL with one.
    Secret,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// A list of texts in brackets.
    List,
}

/// The lines of the comment of a setting.
type Docs = &'static [&'static str];

/// The smallest and the largest value of a setting: one outside is refused, because it is a mistake.
#[derive(Debug, Clone, Copy)]
enum Range {
    Any,
    Numbers { minimum: u64, maximum: u64 },
    Longest(Duration),
}

impl Setting {
    const fn new(form: Form, name: &'static str, default: &'static str, docs: Docs) -> Self {
        Self {
            name,
            form,
            default,
            docs,
            choices: "",
            equal: false,
            alias: None,
            may_hold_secret: matches!(form, Form::Secret),
            may_be_one_text: false,
            is_common: false,
            range: Range::Any,
            redact: redact_secrets,
        }
    }

    /// A text.
    pub const fn text(name: &'static str, default: &'static str, docs: Docs) -> Self {
        Self::new(Form::Text, name, default, docs)
    }

    /// A text that is a secret, or a URL with one. Errors do not show it. It is printed as `***`, and a URL without its
    /// secrets.
    pub const fn secret(name: &'static str, default: &'static str, docs: Docs) -> Self {
        Self::new(Form::Secret, name, default, docs)
    }

    /// A number.
    pub const fn number(name: &'static str, default: &'static str, docs: Docs) -> Self {
        Self::new(Form::Number, name, default, docs)
    }

    /// `true` or `false`.
    pub const fn switch(name: &'static str, default: &'static str, docs: Docs) -> Self {
        Self::new(Form::Bool, name, default, docs)
    }

    /// A list of texts. The default is in the syntax of an environment variable, with commas.
    pub const fn list(name: &'static str, default: &'static str, docs: Docs) -> Self {
        Self::new(Form::List, name, default, docs)
    }

    /// All instances of a database must have the same value.
    #[must_use]
    pub const fn equal(self) -> Self {
        Self { equal: true, ..self }
    }

    /// A number may only be in this range.
    #[must_use]
    pub const fn between(self, minimum: u64, maximum: u64) -> Self {
        Self { range: Range::Numbers { minimum, maximum }, ..self }
    }

    /// A time may not be longer, because the server would stand still for as long.
    #[must_use]
    pub const fn at_most(self, longest: Duration) -> Self {
        Self { range: Range::Longest(longest), ..self }
    }

    /// A value may hold a secret: it is printed without it, and files with it are checked.
    #[must_use]
    pub const fn with_secrets(self) -> Self {
        Self { may_hold_secret: true, ..self }
    }

    /// A value, or an item of a list, may hold a secret, which this function replaces by `***` where it is shown.
    #[must_use]
    pub const fn redacted_by(self, redact: fn(&str) -> Cow<'_, str>) -> Self {
        Self { may_hold_secret: true, redact, ..self }
    }

    /// Another environment variable that is read too.
    #[must_use]
    pub const fn alias(self, variable: &'static str) -> Self {
        Self { alias: Some(variable), ..self }
    }

    /// A list has mostly one item, which can be given as a text.
    #[must_use]
    pub const fn or_one_text(self) -> Self {
        Self { may_be_one_text: true, ..self }
    }

    /// The help of commands shows it, because most servers need it.
    #[must_use]
    pub const fn common(self) -> Self {
        Self { is_common: true, ..self }
    }

    /// Ends the help with what the value can be.
    #[must_use]
    pub const fn with_choices(self, choices: &'static str) -> Self {
        Self { choices, ..self }
    }

    /// What the setting does: one line for `--help`.
    pub fn help(&self) -> String {
        let text = self.paragraph(0);
        let help = text.strip_suffix('.').unwrap_or(&text);
        if self.choices.is_empty() { help.to_owned() } else { format!("{help}: {}", self.choices) }
    }

    /// Why and when to change it.
    pub fn when(&self) -> String {
        self.paragraph(1)
    }

    fn paragraph(&self, number: usize) -> String {
        let lines = self.docs.split(|line| line.is_empty()).nth(number).unwrap_or_default();
        lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
    }

    /// Whether only tests set it: no document and no help names it.
    pub fn is_for_tests(&self) -> bool {
        self.name.starts_with("testing.")
    }

    /// Whether it has a value for each key.
    pub fn has_keys(&self) -> bool {
        self.name.contains(ANY_KEY)
    }

    /// Whether a file can be named that contains the value: `{ file = "PATH" }` in the file, the variable with `_FILE`
    /// and the flag with `-file` at its end. So are secrets mounted, and long lists kept.
    pub fn may_be_in_file(&self) -> bool {
        self.may_hold_secret || self.form == Form::List
    }

    /// The name of the environment variable.
    pub fn variable(&self) -> String {
        variable_of(self.name)
    }

    /// The prefix of all our environment variables.
    pub const PREFIX: &str = "GRID_BATCH_";

    /// The flag, without its dashes.
    pub fn flag(&self) -> String {
        flag_of(self.name)
    }

    /// The section of the file, and the key in it.
    pub fn section_and_key(&self) -> (&'static str, &'static str) {
        self.name.rsplit_once('.').unwrap_or(("", self.name))
    }

    /// When to change it, as sentences.
    pub fn guidance(&self) -> String {
        let rule = if self.equal { " It must be equal on all instances." } else { "" };
        format!("{}{rule}", self.when())
    }

    /// This value, which was given there.
    pub fn given(&'static self, origin: Origin, text: impl Into<String>) -> GivenValue {
        let text = text.into();
        GivenValue { setting: self, key: None, origin, text, is_from_list: false, file: None }
    }

    /// This value without its secrets.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let is_url = text.contains("://");
        match self.form {
            _ if !self.may_hold_secret || text.is_empty() => Cow::Borrowed(text),
            Form::Secret if !is_url => Cow::Borrowed(PLACEHOLDER),
            _ => (self.redact)(text),
        }
    }

    /// An error if the value is out of range.
    pub(crate) fn check_range(&self, given: &GivenValue) -> Result<(), ConfigError> {
        match self.range {
            Range::Any => Ok(()),
            // The value follows from another setting.
            _ if given.text.is_empty() && self.default.is_empty() => Ok(()),
            Range::Numbers { minimum, maximum } => {
                let number = given.text.parse::<u64>();
                if number.is_ok_and(|number| (minimum..=maximum).contains(&number)) {
                    return Ok(());
                }
                let rule = format!("it must be a number from {minimum} to {maximum}");
                Err(given.invalid(rule))
            }
            Range::Longest(longest) => {
                if given.get::<Duration>()? <= longest {
                    return Ok(());
                }
                let longest = humantime::format_duration(longest);
                Err(given.invalid(format!("it must be at most {longest}")))
            }
        }
    }
}

/// Stands for the key in the name of a setting that has a value for each key.
pub(crate) const ANY_KEY: &str = ".*.";

/// The variable of a setting with this name.
pub(crate) fn variable_of(name: &str) -> String {
    format!("{}{}", Setting::PREFIX, name.replace(ANY_KEY, ".").replace('.', "_").to_uppercase())
}

/// The flag of a setting with this name, without its dashes.
pub(crate) fn flag_of(name: &str) -> String {
    name.replace(ANY_KEY, ".").replace(['.', '_'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_and_flag_follow_from_the_name() {
        const SETTING: &Setting = &Setting::text("poll.trigger_gap", "5ms", &[]);
        assert_eq!(SETTING.variable(), "GRID_BATCH_POLL_TRIGGER_GAP");
        assert_eq!(SETTING.flag(), "poll-trigger-gap");
        assert_eq!(SETTING.section_and_key(), ("poll", "trigger_gap"));
        const WITH_KEYS: &Setting = &Setting::text("services.*.strategy", "", &[]);
        assert!(WITH_KEYS.has_keys() && !SETTING.has_keys());
        assert_eq!(WITH_KEYS.variable(), "GRID_BATCH_SERVICES_STRATEGY");
        assert_eq!(WITH_KEYS.flag(), "services-strategy");
    }
}
