use std::{ffi::OsStr, time::Duration};

use crate::MonitorOptionsError;

/// Parses the value of a variable as a duration: seconds, or a number with a unit.
pub(crate) fn duration(
    variable: &'static str,
    value: &OsStr,
) -> Result<Duration, MonitorOptionsError> {
    let parsed = value.to_str().map(str::trim).and_then(parse);
    parsed.filter(|duration| !duration.is_zero()).ok_or_else(|| MonitorOptionsError::Variable {
        variable,
        value: value.to_string_lossy().into_owned(),
        rule: "a duration above zero: seconds, or a number with a unit, such as 500ms, 2s or 1m",
    })
}

fn parse(text: &str) -> Option<Duration> {
    match text.parse() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_duration(text).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_seconds_or_has_a_unit() {
        let durations =
            [("2", 2_000), ("0.25", 250), ("500ms", 500), (" 2s ", 2_000), ("1m", 60_000)];
        for (text, millis) in durations {
            let duration = duration("NAME", text.as_ref());
            assert_eq!(duration, Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_an_error() {
        for text in ["", "0", "0s", "-1", "soon", "1 fortnight", "inf", "NaN", "1e300"] {
            assert!(duration("NAME", text.as_ref()).is_err(), "{text}");
        }
        assert_eq!(
            duration("NAME", "soon".as_ref()).unwrap_err().to_string(),
            "NAME is \"soon\"; it must be a duration above zero: seconds, or a number with a unit, \
             such as 500ms, 2s or 1m"
        );
    }
}
