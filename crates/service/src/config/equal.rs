use grid_batch_settings::EqualSettings;

use super::Config;

impl Config {
    /// The settings that the database keeps of each instance, which compares them.
    pub fn equal_settings(&self) -> EqualSettings {
        self.settings.equal()
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::claims::InstanceId;

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
        let recorded = [(InstanceId::new("b"), other.equal_settings().recorded())];
        assert_eq!(
            own.equal_settings().differences(&recorded),
            [
                "poll.hold_after is \"5m\" here, and \"2m\" on the instance b",
                "services.*.strategy is not set here, and *=\"serial\" on the instance b",
            ]
        );
        assert!(
            own.equal_settings()
                .differences(&[(InstanceId::new("a"), own.equal_settings().recorded())])
                .is_empty()
        );
        let of_another_release = [(InstanceId::new("c"), r#"{"new.setting": "1"}"#.to_owned())];
        assert!(own.equal_settings().differences(&of_another_release).is_empty());
    }

    #[test]
    fn secrets_are_not_recorded() {
        let config = config(&[("GRID_BATCH_DATABASE", "postgresql://user:hidden@host/name")]);
        assert!(!config.equal_settings().recorded().contains("hidden"));
    }
}
