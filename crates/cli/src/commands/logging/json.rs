//! Lines for programs: a JSON object with `ts`, `level`, `target`, `message` and `fields`.

use std::{
    io::{self, Write},
    time::SystemTime,
};

use env_logger::fmt::Formatter;
use humantime::format_rfc3339_millis;
use log::{
    Record,
    kv::{Error, Key, Value, VisitSource},
};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use super::text::is_escaped;

pub(super) fn write(out: &mut Formatter, record: &Record<'_>) -> io::Result<()> {
    let time = format_rfc3339_millis(SystemTime::now()).to_string();
    writeln!(out, "{}", object(&time, record)?)
}

#[derive(Serialize)]
struct Line<'a> {
    ts: &'a str,
    level: &'a str,
    target: &'a str,
    message: String,
    #[serde(skip_serializing_if = "Fields::is_empty")]
    fields: Fields,
}

fn object(ts: &str, record: &Record<'_>) -> serde_json::Result<String> {
    let mut fields = Fields::default();
    // The visitor never fails.
    let _ = record.key_values().visit(&mut fields);
    let (level, target) = (record.level().as_str(), record.target());
    let line = Line { ts, level, target, message: record.args().to_string(), fields };
    Ok(escape(&serde_json::to_string(&line)?))
}

/// Escapes further characters of JSON, so that a line that is shown as it is cannot end or change its direction.
fn escape(json: &str) -> String {
    let mut escaped = String::new();
    for c in json.chars() {
        if is_escaped(c) {
            let mut units = [0; 2];
            let units = c.encode_utf16(&mut units).iter();
            escaped.extend(units.map(|unit| format!("\\u{unit:04x}")));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// The members of an object, each key once.
#[derive(Default)]
struct Fields(Vec<(String, Json)>);

impl Fields {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'kvs> VisitSource<'kvs> for Fields {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        if self.0.iter().all(|(known, _)| known != key.as_str()) {
            self.0.push((key.as_str().to_owned(), json_of(&value)));
        }
        Ok(())
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// Numbers and booleans as such, everything else as a text.
fn json_of(value: &Value<'_>) -> Json {
    let finite = || value.to_f64().filter(|number| number.is_finite());
    let text = value.to_borrowed_str().map(Json::from);
    text.or_else(|| value.to_bool().map(Json::from))
        .or_else(|| value.to_u64().map(Json::from))
        .or_else(|| value.to_i64().map(Json::from))
        .or_else(|| finite().map(Json::from))
        .unwrap_or_else(|| Json::from(value.to_string()))
}

#[cfg(test)]
mod tests {
    use log::{Level, kv::ToValue};
    use serde_json::json;

    use super::*;

    fn parsed(message: &str, pairs: &[(&str, Value<'_>)]) -> serde_json::Value {
        let args = format_args!("{message}");
        let record =
            Record::builder().level(Level::Info).target("t").args(args).key_values(&pairs).build();
        let line = object("2026-01-01T00:00:00.000Z", &record).unwrap();
        assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn record_is_an_object_with_its_fields() {
        let pairs = [
            ("count", 7u64.to_value()),
            ("change", (-7i64).to_value()),
            ("ratio", 0.5f64.to_value()),
            ("held", true.to_value()),
            ("message", "from the ledger".to_value()),
        ];
        assert_eq!(
            parsed("done", &pairs),
            json!({
                "ts": "2026-01-01T00:00:00.000Z", "level": "INFO", "target": "t", "message": "done",
                "fields": {
                    "count": 7, "change": -7, "ratio": 0.5, "held": true,
                    "message": "from the ledger",
                },
            })
        );
        assert_eq!(parsed("done", &[]).get("fields"), None);
    }

    #[test]
    fn every_text_and_number_is_valid_json() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..2_000 {
            let mut text = || -> String { (0..rng.usize(..12)).map(|_| rng.char(..)).collect() };
            let (message, key, value) = (text(), text(), text());
            let fields = parsed(&message, &[(key.as_str(), value.as_str().to_value())]);
            assert_eq!(fields["message"], message.as_str());
            assert_eq!(fields["fields"][&key], value.as_str());
            let (number, bits) = (rng.i64(..), f64::from_bits(rng.u64(..)));
            let numbers = parsed("", &[("i", number.to_value()), ("f", bits.to_value())]);
            assert_eq!(numbers["fields"]["i"], number);
            if bits.is_finite() {
                let parsed = numbers["fields"]["f"].as_f64().unwrap();
                // The parser of the test may round the last digit.
                assert!((parsed - bits).abs() <= bits.abs() * 1e-9 + f64::MIN_POSITIVE);
            }
        }
    }

    #[test]
    fn control_characters_and_repeated_keys_are_harmless() {
        for code in 0..0x100 {
            let text = char::from(u8::try_from(code).unwrap()).to_string();
            assert_eq!(parsed(&text, &[])["message"], text.as_str());
        }
        let pairs = [("a", 1u64.to_value()), ("a", 2u64.to_value())];
        assert_eq!(parsed("", &pairs)["fields"], json!({ "a": 1 }));
        let odd = [("n", f64::NAN.to_value()), ("max", u128::MAX.to_value())];
        assert_eq!(parsed("", &odd)["fields"]["max"], u128::MAX.to_string());
    }
}
