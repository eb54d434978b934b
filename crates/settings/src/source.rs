//! The values of one source: the file, the environment or the command line.

use std::{
    collections::{HashMap, hash_map::Entry},
    fs,
    path::PathBuf,
};

use crate::{ConfigError, Form, GivenValue, OldName, Origin, Setting, SettingName};

/// The values of one source, each setting and key at most once.
#[derive(Debug, Default)]
pub struct SourceValues {
    pub(crate) values: HashMap<(&'static str, Option<String>), (String, GivenValue)>,
    /// Settings whose keys of earlier sources do not count: the source has the list of all keys.
    pub(crate) replaced: Vec<&'static str>,
    pub(crate) old_names: Vec<OldName>,
}

impl SourceValues {
    /// Adds a value that was given under this name, in the syntax of a variable.
    pub fn add(
        &mut self,
        name: &SettingName,
        origin: Origin,
        text: String,
    ) -> Result<(), ConfigError> {
        let SettingName { setting, old, is_file, .. } = *name;
        if let Some(old) = old {
            self.old_names.push(OldName::new(&origin, old, setting, is_file));
        } else if let (Some(setting), true, Origin::File { .. }) = (setting, is_file, &origin) {
            self.old_names.push(OldName::of_file(&origin, setting));
        }
        let Some(setting) = setting else { return Ok(()) };
        let (text, file) = match (is_file, text.as_str()) {
            (true, "") => return Ok(()),
            (true, path) => (content(setting, &origin, path)?, Some(PathBuf::from(path))),
            (false, _) => (text, None),
        };
        let text = match old {
            Some(old) => old.rewritten(text),
            None => text,
        };
        let given = GivenValue { file, ..setting.given(origin, text) };
        if setting.has_keys() {
            // Several old settings are one now: each has some of the keys.
            if old.is_none() {
                self.replaced.push(setting.name);
            }
            return entries(&given)?.into_iter().try_for_each(|it| self.add_given(&name.name, it));
        }
        if old.is_some() && given.text.is_empty() {
            return Ok(());
        }
        self.add_given(&name.name, given)
    }

    /// Adds the value that is in this file.
    pub fn add_file(
        &mut self,
        setting: &'static Setting,
        key: Option<String>,
        origin: Origin,
        path: &str,
    ) -> Result<(), ConfigError> {
        let text = content(setting, &origin, path)?;
        let file = Some(PathBuf::from(path));
        self.add_given(setting.name, GivenValue { key, file, ..setting.given(origin, text) })
    }

    /// Adds this value. The name is the one that it was given under.
    pub fn add_given(&mut self, name: &str, value: GivenValue) -> Result<(), ConfigError> {
        match self.values.entry((value.setting.name, value.key.clone())) {
            Entry::Vacant(entry) => {
                entry.insert((name.to_owned(), value));
                Ok(())
            }
            // A file that is named by an empty text is not named.
            Entry::Occupied(mut entry) if entry.get().1.text.is_empty() => {
                entry.insert((name.to_owned(), value));
                Ok(())
            }
            Entry::Occupied(_) if value.text.is_empty() => Ok(()),
            Entry::Occupied(entry) => {
                let first = &entry.get().0;
                let rule = format!("{first} and {name} are both given; give one of them");
                Err(value.conflict(rule))
            }
        }
    }
}

/// The values of the keys in a list of `KEY=VALUE`.
fn entries(list: &GivenValue) -> Result<Vec<GivenValue>, ConfigError> {
    let mut entries: Vec<GivenValue> = Vec::new();
    for item in list.text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (key, text) = match item.split_once('=') {
            Some((key, text)) => (key.trim(), text.trim()),
            None => ("*", item),
        };
        let same = entries.iter_mut().find(|entry| entry.key.as_deref() == Some(key));
        match same {
            Some(entry) if list.setting.form == Form::List => {
                entry.text.push(',');
                entry.text.push_str(text);
            }
            Some(entry) => {
                let key = if list.setting.may_hold_secret { "a key" } else { key };
                return Err(entry.conflict(format!("{} names {key} twice", list.setting.name)));
            }
            None => entries.push(GivenValue {
                key: Some(key.to_owned()),
                text: text.to_owned(),
                is_from_list: true,
                ..list.clone()
            }),
        }
    }
    Ok(entries)
}

/// The value in a file: one line, or an item in each line.
fn content(setting: &'static Setting, origin: &Origin, path: &str) -> Result<String, ConfigError> {
    let failed = |message: String| ConfigError::SettingFile {
        origin: origin.clone(),
        name: setting.name.to_owned(),
        file: PathBuf::from(path),
        message,
    };
    let content = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let lines: Vec<&str> = content.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.as_slice() {
        [] => Err(failed("it is empty".to_owned())),
        [line] => Ok((*line).to_owned()),
        lines if setting.form == Form::List || setting.has_keys() => Ok(lines.join(",")),
        _ => Err(failed("it has more than one line".to_owned())),
    }
}
