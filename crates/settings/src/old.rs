//! Names of settings that were used in earlier releases.

use std::fmt;

use crate::{Origin, Setting};

/// A setting of an earlier release.
#[derive(Debug, Clone, Copy)]
pub struct OldSetting {
    /// Its name.
    pub name: &'static str,
    /// What its value is now.
    pub now: Now,
}

/// What the value of an old setting is now.
#[derive(Debug, Clone, Copy)]
pub enum Now {
    /// The value of the setting with this name.
    Renamed(&'static str),
    /// The value of the setting with this name, once this function has rewritten it.
    Rewritten(&'static str, fn(&str) -> String),
    /// It has no effect, for this reason.
    Nothing(&'static str),
}

impl OldSetting {
    /// The setting that has its value now.
    pub fn new_name(&self) -> Option<&'static str> {
        match self.now {
            Now::Renamed(name) | Now::Rewritten(name, _) => Some(name),
            Now::Nothing(_) => None,
        }
    }

    pub(crate) fn rewritten(&self, text: String) -> String {
        match self.now {
            Now::Rewritten(_, rewrite) => rewrite(&text),
            Now::Renamed(_) | Now::Nothing(_) => text,
        }
    }
}

/// A value that was given under an old name: a warning.
#[derive(Debug, Clone)]
pub struct OldName {
    /// Where it was given.
    pub origin: Origin,
    name: String,
    advice: String,
}

impl OldName {
    pub(crate) fn new(
        origin: &Origin,
        old: &OldSetting,
        new: Option<&Setting>,
        is_file: bool,
    ) -> Self {
        let advice = match (new, old.now) {
            (Some(setting), _) => format!("use {}", written(origin, setting, is_file)),
            (None, Now::Nothing(reason)) => format!("it has no effect any more: {reason}"),
            (None, _) => "it has no effect".to_owned(),
        };
        let suffix = if is_file { "_file" } else { "" };
        Self { origin: origin.clone(), name: format!("{}{suffix}", old.name), advice }
    }

    /// The name of a setting with `_file` at its end, in the configuration file.
    pub(crate) fn of_file(origin: &Origin, setting: &Setting) -> Self {
        let advice = format!("use {}", written(origin, setting, true));
        Self { origin: origin.clone(), name: format!("{}_file", setting.name), advice }
    }
}

impl fmt::Display for OldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} is the name of a setting of earlier releases; {}",
            self.origin, self.name, self.advice
        )
    }
}

/// How the setting is written where the old one was given.
fn written(origin: &Origin, setting: &Setting, is_file: bool) -> String {
    match origin {
        Origin::Variable(_) => {
            format!("{}{}", setting.variable(), if is_file { "_FILE" } else { "" })
        }
        Origin::Flag(_) => format!("--{}{}", setting.flag(), if is_file { "-file" } else { "" }),
        Origin::File { .. } | Origin::Default => {
            format!("{}{}", setting.name, if is_file { " = { file = \"PATH\" }" } else { "" })
        }
    }
}
