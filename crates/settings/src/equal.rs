use std::collections::BTreeMap;

use crate::SettingValues;

/// Settings that must be equal on all instances, by name and without secrets, and their comparison.
impl SettingValues {
    /// In words, each setting with another value than on the instance `other`. What only one of both knows is left out.
    pub fn differences(&self, other: &str, values: &BTreeMap<String, String>) -> Vec<String> {
        let equal = self.equal_on_all_instances();
        let both = equal.iter().filter_map(|(name, own)| Some((name, own, values.get(*name)?)));
        let different = both.filter(|(_, own, theirs)| own != theirs);
        let words = |(name, own, theirs): (&&str, &String, &String)| {
            format!("{name} is {} here, and {} on the instance {other}", shown(own), shown(theirs))
        };
        different.map(words).collect()
    }
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "not set" } else { value }
}
