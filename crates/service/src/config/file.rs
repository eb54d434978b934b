//! The configuration file.

use std::{fs, io, path::Path};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    ConfigError, Origin,
    layers::{GivenValue, nearest_setting},
    ledger_table::{LedgerTables, line_at},
    secret::{NOT_SHOWN, may_hold_secret},
    setting::{Form, SETTINGS, Setting},
};

/// What a file gives.
#[derive(Default)]
pub(super) struct FileContent {
    pub(super) values: Vec<GivenValue>,
    /// The sections of registered ledgers.
    pub(super) tables: LedgerTables,
}

/// Reads the file. If it does not exist it gives no values, unless it is `required`.
pub(super) fn read(file: &Path, required: bool) -> Result<FileContent, ConfigError> {
    match fs::read_to_string(file) {
        Ok(text) => parse(file, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !required => {
            Ok(FileContent::default())
        }
        Err(error) => {
            Err(ConfigError::Unreadable { file: file.to_owned(), message: error.to_string() })
        }
    }
}

fn parse(file: &Path, text: &str) -> Result<FileContent, ConfigError> {
    let source = SourceFile { file, text };
    let table = DeTable::parse(text).map_err(|error| ConfigError::Toml {
        origin: source.origin(error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    let (mut values, mut tables) = (Vec::new(), Vec::new());
    for (key, value) in table.get_ref() {
        match value.get_ref() {
            DeValue::Table(section) if is_section(key.get_ref()) => {
                for (inner, value) in section {
                    let name = format!("{}.{}", key.get_ref(), inner.get_ref());
                    if key.get_ref() == "ledger" && value.get_ref().is_table() {
                        let line = line_at(text, inner.span().start);
                        tables.push((inner.get_ref().to_string(), line));
                        continue;
                    }
                    values.push(source.value(&name, inner.span().start, value)?);
                }
            }
            _ => values.push(source.value(key.get_ref(), key.span().start, value)?),
        }
    }
    Ok(FileContent { values, tables: LedgerTables::of_file(file, text, tables) })
}

fn is_section(name: &str) -> bool {
    SETTINGS
        .iter()
        .any(|setting| setting.name.split_once('.').is_some_and(|(section, _)| section == name))
}

struct SourceFile<'a> {
    file: &'a Path,
    text: &'a str,
}

impl SourceFile<'_> {
    fn origin(&self, position: usize) -> Origin {
        Origin::File { file: self.file.to_owned(), line: line_at(self.text, position) }
    }

    fn value(
        &self,
        name: &str,
        position: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<GivenValue, ConfigError> {
        let origin = self.origin(position);
        let Some(setting) = Setting::named(name) else {
            let nearest = nearest_setting(name);
            return Err(ConfigError::UnknownSetting { origin, name: name.to_owned(), nearest });
        };
        match as_text(setting, value.get_ref()) {
            Some(text) => Ok(GivenValue { setting, origin, text }),
            None => {
                let written = self.text.get(value.span()).unwrap_or_default();
                let first_line = written.lines().next().unwrap_or_default();
                let value = match setting.form {
                    Form::Secret => NOT_SHOWN.to_owned(),
                    _ if may_hold_secret(first_line) => NOT_SHOWN.to_owned(),
                    _ => first_line.to_owned(),
                };
                let rule = rule(setting.form).to_owned();
                Err(ConfigError::Value { origin, name: name.to_owned(), value, rule })
            }
        }
    }
}

/// The value in the syntax of an environment variable; `None` if it has another type.
fn as_text(setting: &Setting, value: &DeValue<'_>) -> Option<String> {
    match (setting.form, value) {
        (Form::Text | Form::Secret, DeValue::String(text)) => Some(text.to_string()),
        // Most servers listen at one address.
        (Form::List, DeValue::String(text)) if setting.name == "listen" => Some(text.to_string()),
        (Form::Number, DeValue::Integer(number)) if number.radix() == 10 => {
            Some(number.as_str().to_owned())
        }
        (Form::Bool, DeValue::Boolean(value)) => Some(value.to_string()),
        (Form::List, DeValue::Array(values)) => {
            let texts: Option<Vec<&str>> = values.iter().map(|v| v.get_ref().as_str()).collect();
            texts.map(|texts| texts.join(","))
        }
        _ => None,
    }
}

fn rule(form: Form) -> &'static str {
    match form {
        Form::Text | Form::Secret => "it must be a text in quotes",
        Form::Number => "it must be a number without quotes",
        Form::Bool => "it must be true or false, without quotes",
        Form::List => "it must be a list of texts in brackets",
    }
}
