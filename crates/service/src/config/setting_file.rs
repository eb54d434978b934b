//! Settings whose value is in a file of its own, such as a mounted secret.

use std::{fs, path::PathBuf};

use grid_batch_settings::{ConfigError, Form, GivenValue, Origin, Setting, SettingTable};

/// The values of one source, with those of the files that it names. A value that the source gives itself
/// comes with an empty file name, so that it overrides the file of an earlier source.
pub(super) fn with_files(
    table: &SettingTable,
    values: Vec<GivenValue>,
) -> Result<Vec<GivenValue>, ConfigError> {
    let is_given = |name: &str| {
        values.iter().any(|value| value.setting.name == name && !value.text.is_empty())
    };
    let mut all = Vec::new();
    for value in &values {
        if let Some(target) = table.value_of(value.setting) {
            if value.text.is_empty() {
                continue;
            }
            if is_given(target.name) {
                let rule = format!(
                    "{} and {} are both given; give one of them",
                    target.name, value.setting.name
                );
                return Err(ConfigError::Conflict { origin: value.origin.clone(), rule });
            }
            all.push(read(target, value)?);
        } else if let Some(setting) = table.file_of(value.setting)
            && !is_given(setting.name)
        {
            all.push(setting.given(Origin::Default, ""));
        }
    }
    let added: Vec<&str> = all.iter().map(|value| value.setting.name).collect();
    let is_added = |value: &GivenValue| added.contains(&value.setting.name);
    let own: Vec<GivenValue> = values.into_iter().filter(|value| !is_added(value)).collect();
    all.extend(own);
    Ok(all)
}

fn read(target: &'static Setting, named: &GivenValue) -> Result<GivenValue, ConfigError> {
    let GivenValue { setting, origin, text: path } = named;
    let failed = |message: String| ConfigError::SettingFile {
        origin: origin.clone(),
        name: setting.name,
        file: PathBuf::from(path),
        message,
    };
    let content = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let lines: Vec<&str> = content.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = match (target.form, lines.as_slice()) {
        (_, []) => return Err(failed("it is empty".to_owned())),
        (Form::List, lines) => lines.join(","),
        (_, [line]) => (*line).to_owned(),
        _ => return Err(failed("it has more than one line".to_owned())),
    };
    Ok(GivenValue { setting: target, origin: origin.clone(), text })
}
