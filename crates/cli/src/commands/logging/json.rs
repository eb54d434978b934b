//! Lines for programs: a JSON object with `ts`, `level`, `target`, `message` and `fields`.

use std::{
    fmt::{self, Write as _},
    io::Write,
    time::SystemTime,
};

use env_logger::fmt::Formatter;
use humantime::format_rfc3339_millis;
use log::{
    Record,
    kv::{Error, Key, Value, VisitSource},
};

pub(super) fn write(out: &mut Formatter, record: &Record<'_>) -> std::io::Result<()> {
    let time = format_rfc3339_millis(SystemTime::now()).to_string();
    writeln!(out, "{}", object(&time, record))
}

fn object(time: &str, record: &Record<'_>) -> String {
    let message = record.args().to_string();
    let mut object = format!(
        "{{\"ts\":{},\"level\":{},\"target\":{},\"message\":{}",
        Quoted(time),
        Quoted(record.level().as_str()),
        Quoted(record.target()),
        Quoted(&message)
    );
    let mut fields = Fields::default();
    // The visitor never fails.
    let _ = record.key_values().visit(&mut fields);
    if !fields.text.is_empty() {
        object.push_str(",\"fields\":{");
        object.push_str(&fields.text);
        object.push('}');
    }
    object.push('}');
    object
}

/// The members of an object, each key once.
#[derive(Default)]
struct Fields {
    text: String,
    keys: Vec<String>,
}

impl<'kvs> VisitSource<'kvs> for Fields {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        if self.keys.iter().any(|known| known == key.as_str()) {
            return Ok(());
        }
        if !self.text.is_empty() {
            self.text.push(',');
        }
        write!(self.text, "{}:{}", Quoted(key.as_str()), JsonValue(&value))?;
        self.keys.push(key.as_str().to_owned());
        Ok(())
    }
}

/// Numbers and booleans as such, everything else as a text.
struct JsonValue<'a, 'kvs>(&'a Value<'kvs>);

impl fmt::Display for JsonValue<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        if let Some(text) = value.to_borrowed_str() {
            return write!(f, "{}", Quoted(text));
        }
        if let Some(yes) = value.to_bool() {
            return write!(f, "{yes}");
        }
        if let Some(number) = value.to_u64() {
            return write!(f, "{number}");
        }
        if let Some(number) = value.to_i64() {
            return write!(f, "{number}");
        }
        match value.to_f64().filter(|number| number.is_finite()) {
            Some(number) => write!(f, "{number:?}"),
            None => write!(f, "{}", Quoted(&value.to_string())),
        }
    }
}

/// A JSON string.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                // Escaped, so that a line that is shown as it is cannot end or change its direction.
                _ if c.escape_debug().len() > 1 && c != '\'' => escape(c, f)?,
                _ => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

fn escape(c: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut units = [0; 2];
    c.encode_utf16(&mut units).iter().try_for_each(|unit| write!(f, "\\u{unit:04x}"))
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
        let line = object("2026-01-01T00:00:00.000Z", &record);
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
