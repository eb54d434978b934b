use grid_batch_core::claims::InstanceId;

use super::Config;

impl Config {
    /// What the database keeps of the settings of an instance.
    pub(crate) fn recorded_settings(&self) -> String {
        self.settings.recorded()
    }

    /// Each difference to the settings that other instances have recorded, in words.
    pub fn differing_settings(&self, recorded: &[(InstanceId, String)]) -> Vec<String> {
        self.settings.differences(recorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variables: &[(&str, &str)]) -> Config {
        let variables = variables.iter().map(|(name, text)| ((*name).into(), (*text).into()));
        Config::load(None, variables, Vec::new()).unwrap()
    }

    #[test]
    fn difference_names_setting_values_and_instance() {
        let own = config(&[("GRID_BATCH_POLL_HOLD_AFTER", "5m")]);
        let other = config(&[
            ("GRID_BATCH_SERVICES_STRATEGY", "serial"),
            ("GRID_BATCH_POLL_INTERVAL", "7s"),
        ]);
        let recorded = [(InstanceId::new("b"), other.recorded_settings())];
        assert_eq!(
            own.differing_settings(&recorded),
            [
                "poll.hold_after is \"5m\" here, and \"2m\" on the instance b",
                "services.*.strategy is not set here, and *=\"serial\" on the instance b",
            ]
        );
        assert!(
            own.differing_settings(&[(InstanceId::new("a"), own.recorded_settings())]).is_empty()
        );
        let of_another_release = [(InstanceId::new("c"), r#"{"new.setting": "1"}"#.to_owned())];
        assert!(own.differing_settings(&of_another_release).is_empty());
    }

    #[test]
    fn secrets_are_not_recorded() {
        let config = config(&[("GRID_BATCH_DATABASE", "postgresql://user:hidden@host/name")]);
        assert!(!config.recorded_settings().contains("hidden"));
    }
}
