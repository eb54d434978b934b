//! The configuration file.

use std::{fs, io, path::Path};

use grid_batch_settings::{
    ConfigError, Form, GivenValue, NOT_SHOWN, Origin, Setting, SettingTable, may_hold_secret,
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::ledger_type::without_adapter;

/// Reads the file. If it does not exist it gives no values, unless it is `required`.
pub(super) fn read(
    table: &SettingTable,
    file: &Path,
    required: bool,
) -> Result<Vec<GivenValue>, ConfigError> {
    match fs::read_to_string(file) {
        Ok(text) => parse(table, file, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !required => Ok(Vec::new()),
        Err(error) => {
            Err(ConfigError::Unreadable { file: file.to_owned(), message: error.to_string() })
        }
    }
}

fn parse(table: &SettingTable, file: &Path, text: &str) -> Result<Vec<GivenValue>, ConfigError> {
    let source = SourceFile { table, file, text };
    let content = DeTable::parse(text).map_err(|error| ConfigError::Toml {
        origin: source.origin(error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    let mut values = Vec::new();
    source.add_section("", content.get_ref(), &mut values)?;
    Ok(values)
}

struct SourceFile<'a> {
    table: &'a SettingTable,
    file: &'a Path,
    text: &'a str,
}

impl SourceFile<'_> {
    fn origin(&self, position: usize) -> Origin {
        let before = self.text.as_bytes().iter().take(position);
        let line = before.filter(|byte| **byte == b'\n').count() + 1;
        Origin::File { file: self.file.to_owned(), line }
    }

    /// Adds the values of this section, whose name ends with a dot, and of the sections in it.
    fn add_section(
        &self,
        section: &str,
        content: &DeTable<'_>,
        values: &mut Vec<GivenValue>,
    ) -> Result<(), ConfigError> {
        for (key, value) in content {
            let name = format!("{section}{}", key.get_ref());
            match value.get_ref() {
                DeValue::Table(inner) if self.table.has_section(&name) => {
                    self.add_section(&format!("{name}."), inner, values)?;
                }
                _ => values.push(self.value(&name, key.span().start, value)?),
            }
        }
        Ok(())
    }

    fn value(
        &self,
        name: &str,
        position: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<GivenValue, ConfigError> {
        let origin = self.origin(position);
        let Some(setting) = self.table.named(name) else {
            if let Some(ledger) = without_adapter(name.split('.').next().unwrap_or(name)) {
                return Err(ConfigError::NoAdapter { origin, name: name.to_owned(), ledger });
            }
            let nearest = self.table.nearest(name).map(|setting| setting.name.to_owned());
            return Err(ConfigError::UnknownSetting { origin, name: name.to_owned(), nearest });
        };
        match as_text(setting, value.get_ref()) {
            Some(text) => Ok(setting.given(origin, text)),
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
