use grid_batch_core::Excerpt;
use percent_encoding::percent_decode_str;

use crate::http::{ApiError, RequestError};

/// The decoded parameters of a query string.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, ApiError> {
        let pairs = text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let decode_pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        };
        pairs.map(decode_pair).collect::<Result<_, _>>().map(Self)
    }

    /// The value of a parameter. A repeated parameter must repeat its value: clients of Grid append
    /// the service id to a link that has it already.
    pub(crate) fn get(&self, name: &'static str) -> Result<Option<&str>, ApiError> {
        let mut values = self.0.iter().filter(|pair| pair.0 == name).map(|pair| pair.1.as_str());
        let first = values.next();
        if values.any(|other| Some(other) != first) {
            return Err(RequestError::ContradictoryParameter(name).into());
        }
        Ok(first)
    }

    /// All values of a parameter that is a list.
    pub(crate) fn get_all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|pair| pair.0 == name).map(|pair| pair.1.as_str()).collect()
    }

    /// Refuses unknown parameters: ignoring a filter would return too much.
    pub(crate) fn check_names(&self, known: &'static [&'static str]) -> Result<(), ApiError> {
        match self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => {
                Err(RequestError::UnknownParameter { name: Excerpt::of(name), known }.into())
            }
            None => Ok(()),
        }
    }

    /// All parameters except those of these names.
    pub(crate) fn without(&self, names: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        let others = self.0.iter().filter(|pair| !names.contains(&pair.0.as_str()));
        others.map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Decodes strictly, because a misread service id would be another service.
fn decode(text: &str) -> Result<String, ApiError> {
    let refused = || RequestError::QueryEncoding(Excerpt::of(text));
    let is_escape = |rest: &[u8]| rest.len() >= 2 && rest[..2].iter().all(u8::is_ascii_hexdigit);
    if !text.split('%').skip(1).all(|rest| is_escape(rest.as_bytes())) {
        return Err(refused().into());
    }
    let with_spaces = text.replace('+', " ");
    let decoded = percent_decode_str(&with_spaces).decode_utf8().map_err(|_| refused())?;
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_values_are_decoded() {
        let query = Query::parse(Some("id=a%2Cb&&wait&x=1+%C3%A9=")).unwrap();
        assert_eq!(query.get("id"), Ok(Some("a,b")));
        assert_eq!(query.get("wait"), Ok(Some("")));
        assert_eq!(query.get("x"), Ok(Some("1 é=")));
        assert_eq!(query.get("y"), Ok(None));
    }

    #[test]
    fn repeated_parameter_must_have_one_value() {
        let query = Query::parse(Some("a=1&b=1&a=1&b=2")).unwrap();
        assert_eq!(query.get("a"), Ok(Some("1")));
        assert_eq!(query.get("b"), Err(RequestError::ContradictoryParameter("b").into()));
    }

    #[test]
    fn unknown_parameters_are_refused() {
        let query = Query::parse(Some("a=1&b%3D=2&a=1")).unwrap();
        assert_eq!(query.check_names(&["a", "b="]), Ok(()));
        assert!(matches!(
            query.check_names(&["a"]),
            Err(error) if error.get::<RequestError>().is_some()
        ));
        assert_eq!(query.without(&["a"]).collect::<Vec<_>>(), [("b=", "2")]);
    }

    #[test]
    fn invalid_percent_encoding_is_refused() {
        for text in ["a=%", "a=%4", "a=%zz", "%é=1", "a=%ff", "a=%+1"] {
            assert!(
                matches!(
                    Query::parse(Some(text)),
                    Err(error) if error.get::<RequestError>().is_some()
                ),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_query_or_an_error(text in "[a%=&+0-9é,]{0,24}") {
            let _ = Query::parse(Some(&text));
        }

        #[test]
        fn encoded_value_is_decoded_to_itself(value in any::<String>()) {
            let text = percent_encoding::utf8_percent_encode(&value, percent_encoding::NON_ALPHANUMERIC);
            let query = Query::parse(Some(&format!("v={text}"))).unwrap();
            prop_assert_eq!(query.get("v"), Ok(Some(value.as_str())));
        }
    }
}
