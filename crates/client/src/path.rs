use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that need no encoding in a part of a path or a query.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A path with parameters.
pub(crate) fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut target = path.to_owned();
    for (number, (name, value)) in parameters.iter().enumerate() {
        target.push(if number == 0 { '?' } else { '&' });
        target.push_str(name);
        target.push('=');
        target.extend(utf8_percent_encode(value, ENCODED));
    }
    target
}

/// The parameters that have a value.
pub fn given<'a, const N: usize>(
    parameters: [(&'static str, Option<&'a str>); N],
) -> Vec<(&'static str, &'a str)> {
    parameters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// A text as one part of the path of a URL, such as the id of a service.
pub fn path_segment(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded() {
        let target = with_query("/v1/batches", &[("service_id", "a::b"), ("label", "a b&c")]);
        assert_eq!(target, "/v1/batches?service_id=a%3A%3Ab&label=a%20b%26c");
        assert_eq!(with_query("/v1/services", &[]), "/v1/services");
        assert_eq!(path_segment("a::b/c"), "a%3A%3Ab%2Fc");
    }
}
