use grid_batch_settings::{ConfigError, GivenValue, Origin, Setting, SettingTable};

use super::ledger_type::without_adapter;

/// Reads the environment. A variable with our prefix that is no setting is an error: its name is
/// probably misspelt.
pub(super) fn read(
    table: &SettingTable,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<Vec<GivenValue>, ConfigError> {
    let mut values = Vec::new();
    let mut values_of_aliases = Vec::new();
    for (variable, text) in variables {
        if let Some(setting) = table.iter().find(|it| it.alias == Some(variable.as_str())) {
            values_of_aliases.push(setting.given(Origin::Variable(variable), text));
            continue;
        }
        let Some(rest) = variable.strip_prefix(Setting::PREFIX) else { continue };
        if is_other_variable(rest) {
            continue;
        }
        let origin = Origin::Variable(variable.clone());
        let Some(setting) = table.iter().find(|setting| setting.variable() == variable) else {
            if let Some(ledger) = without_adapter(rest.split('_').next().unwrap_or(rest)) {
                return Err(ConfigError::NoAdapter { origin, name: variable, ledger });
            }
            let nearest = table.nearest(&rest.to_lowercase().replacen('_', ".", 1));
            let nearest = nearest.map(Setting::variable);
            return Err(ConfigError::UnknownSetting { origin, name: variable, nearest });
        };
        values.push(setting.given(origin, text));
    }
    // A variable with our prefix overrides its alias.
    values_of_aliases.append(&mut values);
    Ok(values_of_aliases)
}

/// Whether a variable with our prefix is not a setting: it names the configuration file, or is for our tests.
fn is_other_variable(name: &str) -> bool {
    name == "CONFIG" || name.starts_with("TEST_")
}
