use std::{fs, io, path::Path};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    ConfigError, Form, GivenValue, NOT_SHOWN, Origin, Setting, SettingTable, SourceValues,
    may_hold_secret,
};

impl SourceValues {
    /// Reads the configuration file. If it does not exist it gives no values, unless it is `required`.
    pub fn from_file(
        table: &SettingTable,
        file: &Path,
        required: bool,
    ) -> Result<Self, ConfigError> {
        match fs::read_to_string(file) {
            Ok(text) => parse(table, file, &text),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !required => {
                Ok(Self::default())
            }
            Err(error) => {
                Err(ConfigError::Unreadable { file: file.to_owned(), message: error.to_string() })
            }
        }
    }
}

fn parse(table: &SettingTable, file: &Path, text: &str) -> Result<SourceValues, ConfigError> {
    let source = SourceFile { table, file, text };
    let content = DeTable::parse(text).map_err(|error| ConfigError::Toml {
        origin: source.origin(error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    let mut values = SourceValues::default();
    source.add_section(&Section::default(), content.get_ref(), &mut values)?;
    Ok(values)
}

struct SourceFile<'a> {
    table: &'a SettingTable,
    file: &'a Path,
    text: &'a str,
}

/// A section of the file.
#[derive(Default)]
struct Section<'a> {
    /// What the names of the settings in it begin with.
    prefix: String,
    /// The key of its settings, in a section such as `[services."KEY"]`.
    key: Option<&'a str>,
}

impl SourceFile<'_> {
    fn origin(&self, position: usize) -> Origin {
        let before = self.text.as_bytes().iter().take(position);
        let line = before.filter(|byte| **byte == b'\n').count() + 1;
        Origin::File { file: self.file.to_owned(), line }
    }

    /// Adds the values of this section, and of the sections in it.
    fn add_section(
        &self,
        section: &Section<'_>,
        content: &DeTable<'_>,
        values: &mut SourceValues,
    ) -> Result<(), ConfigError> {
        let Section { prefix, key: section_key } = section;
        for (key, value) in content {
            let (position, key) = (key.span().start, key.get_ref().as_ref());
            let name = format!("{prefix}{key}");
            match value.get_ref() {
                DeValue::Table(inner) if self.table.has_section(&format!("{prefix}*")) => {
                    let inner_section = Section { prefix: format!("{prefix}*."), key: Some(key) };
                    self.add_section(&inner_section, inner, values)?;
                }
                DeValue::Table(inner) if self.table.has_section(&name) => {
                    let inner_section = Section { prefix: format!("{name}."), key: *section_key };
                    self.add_section(&inner_section, inner, values)?;
                }
                _ => self.add_value(section, &name, &Written { position, value }, values)?,
            }
        }
        Ok(())
    }

    fn add_value(
        &self,
        section: &Section<'_>,
        name: &str,
        written: &Written<'_>,
        values: &mut SourceValues,
    ) -> Result<(), ConfigError> {
        let origin = self.origin(written.position);
        let Some(found) = self.table.names().find(|it| it.name == name) else {
            if let Some(ledger) = self.table.without_adapter(name.split('.').next().unwrap_or(name))
            {
                return Err(ConfigError::NoAdapter { origin, name: name.to_owned(), ledger });
            }
            let nearest = self.table.nearest(name).map(|setting| setting.name.to_owned());
            return Err(ConfigError::UnknownSetting { origin, name: name.to_owned(), nearest });
        };
        let value = written.value.get_ref();
        let Some(setting) = found.setting.filter(|_| found.old.is_none() && !found.is_file) else {
            let text = any_text(value).unwrap_or_default();
            return values.add(&found, origin, text);
        };
        let key = section.key.map(str::to_owned);
        if let Some(path) = named_file(value).filter(|_| setting.may_be_in_file()) {
            return values.add_file(setting, key, origin, path);
        }
        match as_text(setting, value) {
            Some(text) => values.add_given(name, GivenValue { key, ..setting.given(origin, text) }),
            None => {
                let written = self.text.get(written.value.span()).unwrap_or_default();
                let first_line = written.lines().next().unwrap_or_default();
                let value = match setting.form {
                    Form::Secret => NOT_SHOWN.to_owned(),
                    _ if may_hold_secret(first_line)
                        || setting.redact(first_line) != first_line =>
                    {
                        NOT_SHOWN.to_owned()
                    }
                    _ => first_line.to_owned(),
                };
                let name = GivenValue { key, ..setting.given(origin.clone(), "") }.name();
                Err(ConfigError::Value { origin, name, value, rule: rule(setting.form).to_owned() })
            }
        }
    }
}

/// A value, and the position of its key in the file.
struct Written<'a> {
    position: usize,
    value: &'a Spanned<DeValue<'a>>,
}

/// The path in `{ file = "PATH" }`.
fn named_file<'a>(value: &'a DeValue<'_>) -> Option<&'a str> {
    let DeValue::Table(table) = value else { return None };
    let (key, path) = table.iter().next().filter(|_| table.len() == 1)?;
    if key.get_ref() != "file" {
        return None;
    }
    path.get_ref().as_str()
}

/// The value in the syntax of an environment variable; `None` if it has another type.
fn as_text(setting: &Setting, value: &DeValue<'_>) -> Option<String> {
    match (setting.form, value) {
        (Form::List, DeValue::String(_)) if setting.may_be_one_text => any_text(value),
        (Form::Text | Form::Secret, DeValue::String(_))
        | (Form::Number, DeValue::Integer(_))
        | (Form::Bool, DeValue::Boolean(_))
        | (Form::List, DeValue::Array(_)) => any_text(value),
        _ => None,
    }
}

fn any_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Boolean(value) => Some(value.to_string()),
        DeValue::Array(values) => {
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
