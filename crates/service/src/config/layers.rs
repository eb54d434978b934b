//! What file, environment and command line give, one over the other.

use std::collections::HashMap;

use crate::config::{
    ConfigError, Origin,
    setting::{PREFIX, SETTINGS, Setting},
    value::Value,
};

/// A value that somebody gave.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) setting: &'static Setting,
    pub(super) origin: Origin,
    pub(super) text: String,
}

/// The strongest value of each setting.
#[derive(Debug, Clone)]
pub(super) struct Layers(HashMap<&'static str, Given>);

impl Layers {
    /// The defaults.
    pub(super) fn new() -> Self {
        let default = |setting: &'static Setting| {
            let text = setting.default.to_owned();
            (setting.name, Given { setting, origin: Origin::Default, text })
        };
        Self(SETTINGS.iter().map(default).collect())
    }

    /// The same, with stronger values laid over.
    pub(super) fn over(mut self, stronger: Vec<Given>) -> Self {
        self.0.extend(stronger.into_iter().map(|given| (given.setting.name, given)));
        self
    }

    /// The value of the setting of this name.
    pub(super) fn read<T: Value>(&self, name: &str) -> Result<T, ConfigError> {
        let given = self.given(name);
        T::read(&given.text).map_err(|rule| {
            let value = T::shown(&given.text);
            ConfigError::Value { origin: given.origin.clone(), name: name.to_owned(), value, rule }
        })
    }

    pub(super) fn given(&self, name: &str) -> &Given {
        self.0.get(name).expect("what is read stands in the table of settings")
    }

    /// A value does not go with another one.
    pub(super) fn together(&self, name: &str, rule: String) -> ConfigError {
        ConfigError::Together { origin: self.given(name).origin.clone(), rule }
    }
}

/// Variables that have a name without our prefix as well.
const ALIASES: &[(&str, &str)] = &[("MAXIMUM_GAS_PRICE", "evm.maximum_gas_price")];

/// Variables of ours that are no settings: what names the file, and what is for tests.
fn is_no_setting(name: &str) -> bool {
    name == "CONFIG" || name.starts_with("TEST_")
}

/// What the environment gives. A variable with our prefix that is none of ours is an error: it is
/// misspelt.
pub(super) fn of_environment(
    variables: impl Iterator<Item = (String, String)>,
) -> Result<Vec<Given>, ConfigError> {
    let mut given = Vec::new();
    let mut by_alias = Vec::new();
    for (variable, text) in variables {
        if let Some(setting) = setting_of_alias(&variable) {
            by_alias.push(Given { setting, origin: Origin::Variable(variable), text });
            continue;
        }
        let Some(rest) = variable.strip_prefix(PREFIX) else { continue };
        if is_no_setting(rest) {
            continue;
        }
        let setting = SETTINGS.iter().find(|setting| setting.variable() == variable);
        let origin = Origin::Variable(variable.clone());
        let Some(setting) = setting else {
            let nearest = nearest(&rest.to_lowercase().replacen('_', ".", 1))
                .and_then(|name| Setting::named(&name).map(Setting::variable));
            return Err(ConfigError::Unknown { origin, name: variable, nearest });
        };
        given.push(Given { setting, origin, text });
    }
    // Our own name is the stronger one.
    Ok(by_alias.into_iter().chain(given).collect())
}

fn setting_of_alias(variable: &str) -> Option<&'static Setting> {
    let (_, name) = ALIASES.iter().find(|(alias, _)| *alias == variable)?;
    Setting::named(name)
}

/// The setting whose name is most like this one, if any is.
pub(super) fn nearest(name: &str) -> Option<String> {
    let distance = |setting: &&Setting| distance(name, setting.name);
    let nearest = SETTINGS.iter().min_by_key(distance)?;
    (distance(&nearest) <= nearest.name.len() / 3).then(|| nearest.name.to_owned())
}

/// How many characters must be added, removed or changed to make one of the other.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}
