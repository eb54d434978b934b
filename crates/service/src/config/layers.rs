//! Values from the defaults, the file, the environment and the command line.

use std::{collections::HashMap, fmt, num::NonZero};

use super::{
    ConfigError, Origin,
    ledger_type::{KNOWN_LEDGERS, LedgerType},
    secret::{NOT_SHOWN, PLACEHOLDER, may_hold_secret},
    setting::{PREFIX, SETTINGS, Setting},
    value::SettingValue,
};

/// A setting's value, not parsed yet, and where it was given.
#[derive(Clone)]
pub(super) struct GivenValue {
    pub(super) setting: &'static Setting,
    pub(super) origin: Origin,
    pub(super) text: String,
}

/// The text may hold a secret.
impl fmt::Debug for GivenValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.setting.name, self.origin)
    }
}

/// The effective value of each setting, and the types of ledgers that they can name.
#[derive(Debug, Clone)]
pub(super) struct Layers {
    values: HashMap<&'static str, GivenValue>,
    ledgers: Vec<LedgerType>,
}

impl Layers {
    pub(super) fn defaults() -> Self {
        let default = |setting: &'static Setting| {
            let text = setting.default.to_owned();
            (setting.name, GivenValue { setting, origin: Origin::Default, text })
        };
        let values = SETTINGS.iter().map(default).collect();
        Self { values, ledgers: KNOWN_LEDGERS.to_vec() }
    }

    /// The same with more types of ledgers.
    pub(super) fn with_ledgers(mut self, ledgers: &[LedgerType]) -> Self {
        self.ledgers.extend_from_slice(ledgers);
        self
    }

    /// The types of ledgers that can be named.
    pub(super) fn ledgers(&self) -> &[LedgerType] {
        &self.ledgers
    }

    /// Replaces values by those of a later source.
    pub(super) fn override_with(mut self, values: Vec<GivenValue>) -> Self {
        self.values.extend(values.into_iter().map(|value| (value.setting.name, value)));
        self
    }

    /// The value of this setting.
    pub(super) fn get<T: SettingValue>(&self, name: &str) -> Result<T, ConfigError> {
        let given = self.given(name);
        T::parse(&given.text).map_err(|rule| {
            let value = T::redacted(&given.text);
            ConfigError::Value { origin: given.origin.clone(), name: name.to_owned(), value, rule }
        })
    }

    /// A value that was printed without its secret cannot be used.
    pub(super) fn check_placeholders(&self) -> Result<(), ConfigError> {
        let values = SETTINGS.iter().map(|setting| self.given(setting.name));
        let mut values = values.filter(|given| given.setting.may_hold_secret());
        match values.find(|given| given.text.contains(PLACEHOLDER)) {
            None => Ok(()),
            Some(GivenValue { setting, origin, .. }) => Err(ConfigError::Placeholder {
                origin: origin.clone(),
                name: setting.name,
                variable: setting.variable(),
            }),
        }
    }

    /// The error for a value that breaks this rule.
    pub(super) fn invalid(&self, name: &str, rule: String) -> ConfigError {
        let given = self.given(name);
        let value = match may_hold_secret(&given.text) {
            true => NOT_SHOWN.to_owned(),
            false => format!("{:?}", given.text),
        };
        ConfigError::Value { origin: given.origin.clone(), name: name.to_owned(), value, rule }
    }

    /// The value of a setting that is a count above zero.
    pub(super) fn get_size(&self, name: &str) -> Result<usize, ConfigError> {
        self.get::<NonZero<usize>>(name).map(NonZero::get)
    }

    pub(super) fn given(&self, name: &str) -> &GivenValue {
        self.values.get(name).expect("every setting that is read is in SETTINGS")
    }

    /// The error for a setting that contradicts another one.
    pub(super) fn conflict(&self, name: &str, rule: String) -> ConfigError {
        ConfigError::Conflict { origin: self.given(name).origin.clone(), rule }
    }
}

/// Variables without our prefix that are read too.
const ALIASES: &[(&str, &str)] = &[("MAXIMUM_GAS_PRICE", "evm.maximum_gas_price")];

/// Reads the environment. A variable with our prefix that is no setting is an error: its name is
/// probably misspelt.
pub(super) fn read_environment(
    variables: impl Iterator<Item = (String, String)>,
) -> Result<Vec<GivenValue>, ConfigError> {
    let mut values = Vec::new();
    let mut values_of_aliases = Vec::new();
    for (variable, text) in variables {
        if let Some(setting) = aliased_setting(&variable) {
            let origin = Origin::Variable(variable);
            values_of_aliases.push(GivenValue { setting, origin, text });
            continue;
        }
        let Some(rest) = variable.strip_prefix(PREFIX) else { continue };
        if is_other_variable(rest) {
            continue;
        }
        let setting = SETTINGS.iter().find(|setting| setting.variable() == variable);
        let origin = Origin::Variable(variable.clone());
        let Some(setting) = setting else {
            let nearest = nearest_setting(&rest.to_lowercase().replacen('_', ".", 1))
                .and_then(|name| Setting::named(&name).map(Setting::variable));
            return Err(ConfigError::UnknownSetting { origin, name: variable, nearest });
        };
        values.push(GivenValue { setting, origin, text });
    }
    // A variable with our prefix overrides its alias.
    values_of_aliases.append(&mut values);
    Ok(values_of_aliases)
}

/// Whether this is a variable of ours that is no setting: the file's name, or one of our tests.
fn is_other_variable(name: &str) -> bool {
    name == "CONFIG" || name.starts_with("TEST_")
}

fn aliased_setting(variable: &str) -> Option<&'static Setting> {
    let (_, name) = ALIASES.iter().find(|(alias, _)| *alias == variable)?;
    Setting::named(name)
}

/// The setting with the most similar name, if one is similar.
pub(super) fn nearest_setting(name: &str) -> Option<String> {
    let distance = |setting: &&Setting| edit_distance(name, setting.name);
    let nearest = SETTINGS.iter().min_by_key(distance)?;
    (distance(&nearest) <= nearest.name.len() / 3).then(|| nearest.name.to_owned())
}

/// The Levenshtein distance.
pub(super) fn edit_distance(left: &str, right: &str) -> usize {
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
