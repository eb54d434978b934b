use grid_batch_settings::{ConfigError, Origin, Setting, SettingName, SettingTable, SourceValues};

use super::ledger_type::without_adapter;

/// Reads the environment: the values of aliases, and those of variables with our prefix, which override them. A
/// variable with our prefix that is no setting is an error: its name is probably misspelt.
pub(super) fn read(
    table: &SettingTable,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<[SourceValues; 2], ConfigError> {
    let names: Vec<(String, SettingName)> = table.names().map(|it| (it.variable(), it)).collect();
    let mut of_aliases = SourceValues::default();
    let mut values = SourceValues::default();
    for (variable, text) in variables {
        if let Some(setting) = table.iter().find(|it| it.alias == Some(variable.as_str())) {
            let given = setting.given(Origin::Variable(variable.clone()), text);
            of_aliases.add_given(&variable, given)?;
            continue;
        }
        let Some(rest) = variable.strip_prefix(Setting::PREFIX) else { continue };
        if is_other_variable(rest) {
            continue;
        }
        let origin = Origin::Variable(variable.clone());
        let Some((_, name)) = names.iter().find(|(name, _)| *name == variable) else {
            if let Some(ledger) = without_adapter(rest.split('_').next().unwrap_or(rest)) {
                return Err(ConfigError::NoAdapter { origin, name: variable, ledger });
            }
            let nearest = table.nearest(&rest.to_lowercase().replacen('_', ".", 1));
            let nearest = nearest.map(Setting::variable);
            return Err(ConfigError::UnknownSetting { origin, name: variable, nearest });
        };
        values.add(name, origin, text)?;
    }
    Ok([of_aliases, values])
}

/// Whether a variable with our prefix is not a setting: it names the configuration file, or is for our tests.
fn is_other_variable(name: &str) -> bool {
    name == "CONFIG" || name.starts_with("TEST_")
}
