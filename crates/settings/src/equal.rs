use std::collections::BTreeMap;

use grid_batch_core::claims::InstanceId;

use crate::SettingValues;

/// The values of the settings that must be equal on all instances, without secrets, by name. Instances record them, and
/// compare theirs.
#[derive(Debug)]
pub struct EqualSettings(BTreeMap<&'static str, String>);

impl SettingValues {
    /// Those of the settings that must be equal on all instances.
    pub fn equal(&self) -> EqualSettings {
        EqualSettings(self.equal_on_all_instances())
    }
}

impl EqualSettings {
    /// The settings as they are recorded: texts by name in an object of JSON.
    pub fn recorded(&self) -> String {
        serde_json::json!(self.0).to_string()
    }

    /// In words, each setting that another instance has recorded with another value. What only one of them knows is left
    /// out: it may run another release.
    pub fn differences(&self, recorded: &[(InstanceId, String)]) -> Vec<String> {
        let mut differences = Vec::new();
        for (instance, settings) in recorded {
            let settings: BTreeMap<String, String> =
                serde_json::from_str(settings).unwrap_or_default();
            let both =
                self.0.iter().filter_map(|(name, own)| Some((name, own, settings.get(*name)?)));
            let different = both.filter(|(_, own, other)| own != other);
            differences.extend(different.map(|(name, own, other)| {
                let (own, other) = (shown(own), shown(other));
                format!("{name} is {own} here, and {other} on the instance {instance}")
            }));
        }
        differences
    }
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "not set" } else { value }
}
