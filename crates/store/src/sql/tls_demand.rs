//! Whether connections to PostgreSQL must be encrypted.

/// Options of libpq, the variables that it reads for those which the URL does not have, and the values with which it
/// accepts only encrypted connections.
const OPTIONS: [(&str, &str, &[&str]); 5] = [
    ("sslmode", "PGSSLMODE", &["require", "verify-ca", "verify-full"]),
    ("sslrootcert", "PGSSLROOTCERT", &["system"]),
    ("sslnegotiation", "PGSSLNEGOTIATION", &["direct"]),
    ("sslcertmode", "PGSSLCERTMODE", &["require"]),
    ("channel_binding", "PGCHANNELBINDING", &["require"]),
];

/// What demands TLS, such as `sslmode=require`: a parameter of a URL, or a variable. libpq alone reads service files.
pub(super) fn tls_demand(
    parameters: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    OPTIONS.iter().find_map(|(option, name, demanding)| {
        let (source, value) = match last_value(parameters, option) {
            Some(value) => (*option, value.to_owned()),
            None => (*name, variable(name)?),
        };
        demanding.contains(&value.as_str()).then(|| format!("{source}={value}"))
    })
}

/// The value that counts: the last one.
fn last_value<'a>(parameters: &'a str, option: &str) -> Option<&'a str> {
    let pairs = parameters.split('&').filter_map(|parameter| parameter.split_once('='));
    let mut values = pairs.filter_map(|(name, value)| match (name, value) {
        // Older names that libpq translates.
        ("ssl", "true") | ("requiressl", "1") if option == "sslmode" => Some("require"),
        ("requiressl", _) if option == "sslmode" => Some("prefer"),
        _ => (name == option).then_some(value),
    });
    values.next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(parameters: &str, variables: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| variables.iter().find(|(known, _)| *known == name);
        tls_demand(parameters, |name| variable(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn each_way_to_demand_tls_is_found() {
        for parameter in [
            "sslmode=require",
            "sslmode=verify-ca",
            "sslmode=verify-full",
            "sslrootcert=system",
            "sslnegotiation=direct",
            "sslcertmode=require",
            "channel_binding=require",
        ] {
            let parameters = format!("user=u&{parameter}&sslcert=c");
            assert_eq!(demand(&parameters, &[]).as_deref(), Some(parameter));
        }
        for old_name in ["ssl=true", "requiressl=1"] {
            assert_eq!(demand(old_name, &[]).as_deref(), Some("sslmode=require"));
        }
    }

    #[test]
    fn other_values_do_not_demand_tls() {
        for parameters in [
            "",
            "sslmode=prefer",
            "sslmode=disable&sslrootcert=ca.pem",
            "sslmode=require&sslmode=prefer",
            "ssl=false",
            "sslmode=require&requiressl=0",
            "user=sslmode",
            "sslnegotiation=postgres&channel_binding=prefer&sslcertmode=allow",
        ] {
            assert_eq!(demand(parameters, &[]), None, "{parameters}");
        }
    }

    #[test]
    fn variable_counts_only_without_a_parameter() {
        let variables = [("PGSSLMODE", "verify-full"), ("PGCHANNELBINDING", "prefer")];
        assert_eq!(demand("", &variables).as_deref(), Some("PGSSLMODE=verify-full"));
        assert_eq!(demand("sslmode=disable", &variables), None);
    }
}
