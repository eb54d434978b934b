use std::{fmt, path::PathBuf};

use crate::{
    ConfigError, Form, NOT_SHOWN, Origin, Setting, SettingValue, may_hold_secret,
    secret::PLACEHOLDER, setting::ANY_KEY,
};

/// A setting's value, not parsed yet, and where it was given.
#[derive(Clone)]
pub struct GivenValue {
    /// The setting.
    pub setting: &'static Setting,
    /// The key, if the setting has a value for each key.
    pub key: Option<String>,
    /// Where the value was given.
    pub origin: Origin,
    /// The value.
    pub text: String,
    /// Whether the key was read from a list. A comma or `=` in a password makes a key of a part of it, so that errors do
    /// not show the keys of settings that may hold a secret.
    pub is_from_list: bool,
    /// The file that contained the value, if a file was named in place of it.
    pub file: Option<PathBuf>,
}

/// The text may hold a secret.
impl fmt::Debug for GivenValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.name(), self.origin)
    }
}

impl GivenValue {
    /// The name of the setting, with the key.
    pub fn name(&self) -> String {
        let hides_key = self.is_from_list && self.setting.may_hold_secret;
        match &self.key {
            Some(key) if !hides_key => self.setting.name.replace(ANY_KEY, &format!(".{key:?}.")),
            _ => self.setting.name.to_owned(),
        }
    }

    /// The value.
    pub fn get<T: SettingValue>(&self) -> Result<T, ConfigError> {
        self.parse(T::parse, T::redacted)
    }

    /// The value as this function reads it. Its error is the rule that the text breaks.
    pub fn get_with<T>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        let redacted = match self.setting.form {
            Form::List => Vec::<String>::redacted,
            _ => String::redacted,
        };
        self.parse(parse, redacted)
    }

    fn parse<T>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, String>,
        redacted: fn(&str) -> String,
    ) -> Result<T, ConfigError> {
        parse(&self.text).map_err(|rule| {
            let value = match self.setting.form {
                Form::Secret => NOT_SHOWN.to_owned(),
                _ => redacted(&self.text),
            };
            ConfigError::Value { origin: self.origin.clone(), name: self.name(), value, rule }
        })
    }

    /// The error for a value that breaks this rule.
    pub fn invalid(&self, rule: String) -> ConfigError {
        let is_secret = self.setting.form == Form::Secret || may_hold_secret(&self.text);
        let value = if is_secret { NOT_SHOWN.to_owned() } else { format!("{:?}", self.text) };
        ConfigError::Value { origin: self.origin.clone(), name: self.name(), value, rule }
    }

    /// The error for a value that contradicts another one.
    pub fn conflict(&self, rule: String) -> ConfigError {
        ConfigError::Conflict { origin: self.origin.clone(), rule }
    }

    /// An error for a value out of its range, and for one that was printed without its secret.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.setting.may_hold_secret && self.text.contains(PLACEHOLDER) {
            return Err(ConfigError::Placeholder {
                origin: self.origin.clone(),
                name: self.name(),
                variable: self.setting.variable(),
            });
        }
        self.setting.check_range(self)
    }
}
