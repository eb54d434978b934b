//! The events and errors that a client declares, and decoding by them.

use alloy_dyn_abi::{DynSolError, DynSolEvent, DynSolValue, Specifier};
use alloy_json_abi::{Error, Event};
use alloy_primitives::{B256, Selector};
use grid_batch_core::Excerpt;
use grid_batch_withdrawals::{Decoded, EventLog};

use super::{
    limits::{self, LONGEST_DATA},
    parse::parse_bytes,
    shown, types,
};

/// How many events and errors a client may declare for a call.
const MOST_DECLARATIONS: usize = 50;

/// A declared event or error.
enum Declaration {
    Event(Event, DynSolEvent),
    Error(Error, DynSolError),
}

impl Declaration {
    /// Reads a declaration. One without a keyword is of an event.
    fn parse(text: &str) -> Result<Self, String> {
        let text = types::readable(text)?;
        let is_error =
            text.strip_prefix("error").is_some_and(|rest| rest.starts_with(char::is_whitespace));
        if is_error { Self::parse_error(text) } else { Self::parse_event(text) }
    }

    fn parse_event(text: &str) -> Result<Self, String> {
        let event = Event::parse(text).map_err(|_| {
            "it is no event or error, such as event Paid(address indexed to, uint256 amount); members of tuples \
             have no names"
                .to_owned()
        })?;
        if event.anonymous {
            return Err("an anonymous event cannot be recognized".to_owned());
        }
        for input in &event.inputs {
            limits::check(&types::resolve(input, input.selector_type())?)?;
        }
        let form =
            event.resolve().map_err(|_| "it has more than 3 indexed parameters".to_owned())?;
        Ok(Self::Event(event, form))
    }

    fn parse_error(text: &str) -> Result<Self, String> {
        let error = Error::parse(text).map_err(|_| {
            "it is no error, such as error TooLate(uint256 deadline); members of tuples have no names".to_owned()
        })?;
        for input in &error.inputs {
            limits::check(&types::resolve(input, input.selector_type())?)?;
        }
        let form = error.resolve().map_err(|error| error.to_string())?;
        Ok(Self::Error(error, form))
    }

    fn decode_event(&self, topics: &[B256], data: &[u8]) -> Option<Decoded> {
        let Self::Event(event, form) = self else { return None };
        let decoded = form.decode_log_parts(topics.iter().copied(), data).ok()?;
        if limits::overlap(&decoded.body, data) {
            return None;
        }
        let (mut indexed, mut body) = (decoded.indexed.into_iter(), decoded.body.into_iter());
        let values: Option<Vec<DynSolValue>> = event
            .inputs
            .iter()
            .map(|input| if input.indexed { indexed.next() } else { body.next() })
            .collect();
        let names = event.inputs.iter().map(|input| input.name.as_str());
        Some(Decoded { name: event.name.clone(), values: shown::named(names, &values?) })
    }

    fn decode_error(&self, data: &[u8]) -> Option<Decoded> {
        let Self::Error(error, form) = self else { return None };
        let decoded = form.decode_error(data).ok()?;
        if limits::overlap(&decoded.body, data) {
            return None;
        }
        let names = error.inputs.iter().map(|input| input.name.as_str());
        Some(Decoded { name: error.name.clone(), values: shown::named(names, &decoded.body) })
    }
}

/// Checks the declarations of a client. The result is how they are stored.
pub(super) fn checked(abi: &[String]) -> Result<Vec<String>, String> {
    if abi.len() > MOST_DECLARATIONS {
        let count = abi.len();
        return Err(format!("there are {count} declarations; the maximum is {MOST_DECLARATIONS}"));
    }
    abi.iter().enumerate().map(|(at, text)| checked_one(at, text)).collect()
}

fn checked_one(at: usize, text: &str) -> Result<String, String> {
    let parsed = Declaration::parse(text);
    parsed.map_err(|rule| format!("abi[{at}] {}: {rule}", Excerpt::of(text)))?;
    Ok(text.trim().to_owned())
}

/// The events, each decoded by the first declaration that fits.
pub(super) fn decode_events(abi: &[String], logs: &[EventLog]) -> Vec<Option<Decoded>> {
    let declarations: Vec<Declaration> = declarations(abi).collect();
    logs.iter().map(|log| decode_event(&declarations, log)).collect()
}

fn decode_event(declarations: &[Declaration], log: &EventLog) -> Option<Decoded> {
    let topics: Vec<B256> =
        log.topics.iter().map(|topic| topic.parse().ok()).collect::<Option<_>>()?;
    let data = parse_bytes(&log.data).ok().filter(|data| data.len() <= LONGEST_DATA)?;
    declarations.iter().find_map(|declaration| declaration.decode_event(&topics, &data))
}

/// The error in the data that a reverted call returned, decoded by the first declaration that fits.
pub(crate) fn decode_error(abi: &[String], data: &[u8]) -> Option<Decoded> {
    if data.len() < Selector::len_bytes() || data.len() > LONGEST_DATA {
        return None;
    }
    declarations(abi).find_map(|declaration| declaration.decode_error(data))
}

/// Stored declarations were checked, so one that cannot be read now is of an earlier release.
fn declarations(abi: &[String]) -> impl Iterator<Item = Declaration> {
    abi.iter().filter_map(|text| Declaration::parse(text).ok())
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use alloy_primitives::{U256, hex, keccak256};
    use proptest::{collection::vec, prelude::*};

    fn decoded_event(abi: &[String], log: &EventLog) -> Option<Decoded> {
        decode_events(abi, slice::from_ref(log)).remove(0)
    }

    const TRANSFER: &str =
        "event Transfer(address indexed from, address indexed to, uint256 value)";
    const TRANSFER_TOPIC: &str =
        "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
    const FROM: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    const TO: &str = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359";

    fn owned(abi: &[&str]) -> Vec<String> {
        abi.iter().map(|text| (*text).to_owned()).collect()
    }

    fn topic_of(address: &str) -> String {
        format!("0x{:0>64}", address[2..].to_lowercase())
    }

    fn words(numbers: &[u64]) -> String {
        numbers.iter().map(|number| format!("{number:064x}")).collect()
    }

    fn log(topics: &[String], data: &str) -> EventLog {
        EventLog { address: TO.to_owned(), topics: topics.to_vec(), data: format!("0x{data}") }
    }

    fn transfer() -> EventLog {
        let topics = [TRANSFER_TOPIC.to_owned(), topic_of(FROM), topic_of(TO)];
        log(&topics, &words(&[258]))
    }

    fn shown(decoded: &Decoded) -> String {
        let values = decoded.values.iter().map(|(name, value)| format!("{name}={value}"));
        format!("{} {}", decoded.name, values.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn transfer_of_a_token_is_decoded() {
        let expected = format!("Transfer from={FROM} to={TO} value=258");
        for text in [
            TRANSFER,
            "Transfer(address indexed from, address indexed to, uint256 value)",
            " event Transfer(address indexed from, address indexed to, uint value) ; ",
        ] {
            let decoded = decoded_event(&owned(&["error Other()", text]), &transfer()).unwrap();
            assert_eq!(shown(&decoded), expected, "{text}");
        }
        let decoded = decoded_event(
            &owned(&["Transfer(address indexed,address indexed,uint256)"]),
            &transfer(),
        );
        assert_eq!(shown(&decoded.unwrap()), format!("Transfer 0={FROM} 1={TO} 2=258"));
    }

    #[test]
    fn number_of_indexed_parameters_decides() {
        let nft = "event Transfer(address indexed from, address indexed to, uint256 indexed id)";
        let other = EventLog {
            topics: [transfer().topics, vec![format!("0x{:064x}", 7)]].concat(),
            data: "0x".to_owned(),
            ..transfer()
        };
        for abi in [owned(&[TRANSFER, nft]), owned(&[nft, TRANSFER])] {
            let decoded = decoded_event(&abi, &other).unwrap();
            assert_eq!(shown(&decoded), format!("Transfer from={FROM} id=7 to={TO}"));
            assert!(decoded_event(&abi, &transfer()).unwrap().values.contains_key("value"));
        }
    }

    #[test]
    fn values_of_any_length_are_decoded() {
        let declaration = "event E(string indexed name, uint8[] items, (bool,string) pair)";
        let topics = [
            hex::encode_prefixed(keccak256("E(string,uint8[],(bool,string))")),
            hex::encode_prefixed(keccak256("name")),
        ];
        let data = format!("{}{:0<64}", words(&[64, 160, 2, 1, 2, 1, 64, 2]), hex::encode("hi"));
        let decoded = decoded_event(&owned(&[declaration]), &log(&topics, &data)).unwrap();
        let expected = format!("E items=[1, 2] name={} pair=(true, \"hi\")", topics[1]);
        assert_eq!(shown(&decoded), expected);
    }

    #[test]
    fn other_logs_are_not_decoded() {
        let [event, from, to] = transfer().topics.try_into().unwrap();
        for log in [
            log(&[event.clone(), from.clone()], &words(&[258])),
            log(&[event.clone(), from.clone(), to.clone(), to.clone()], ""),
            log(&[to.clone(), from.clone(), to.clone()], &words(&[258])),
            log(&[event.clone(), from.clone(), "0x".to_owned()], &words(&[258])),
            log(&[event.clone(), from.clone(), to.clone()], ""),
            log(&[event.clone(), from.clone(), to.clone()], "…"),
            log(&[event, from, to], &words(&[0; 257])),
            log(&[], ""),
        ] {
            assert_eq!(decoded_event(&owned(&[TRANSFER]), &log), None, "{log:?}");
        }
        assert_eq!(decoded_event(&[], &transfer()), None);
        assert_eq!(decoded_event(&owned(&["not a declaration"]), &transfer()), None);
    }

    #[test]
    fn data_with_overlapping_arrays_is_not_decoded() {
        let abi = owned(&["error E(uint256[][] lists)"]);
        let error = |numbers: &[u64]| {
            let selector = hex::encode(&keccak256("E(uint256[][])")[..4]);
            hex::decode(format!("{selector}{}", words(numbers))).unwrap()
        };
        let decoded = decode_error(&abi, &error(&[32, 2, 64, 128, 1, 7, 1, 8])).unwrap();
        assert_eq!(shown(&decoded), "E lists=[[7], [8]]");
        let list = [&[3_u64][..], &[5; 3]].concat();
        let overlapping = [&[32, 9][..], &[9 * 32; 9], &list].concat();
        assert_eq!(decode_error(&abi, &error(&overlapping)), None);
    }

    /// The error is one of ERC-6093.
    #[test]
    fn custom_error_is_decoded() {
        let declaration =
            "error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)";
        let data = format!("e450d38c{}{}", &topic_of(FROM)[2..], words(&[1, 2]));
        let data = hex::decode(data).unwrap();
        let abi = owned(&[TRANSFER, "error Other(uint256)", declaration]);
        let decoded = decode_error(&abi, &data).unwrap();
        let expected = format!("ERC20InsufficientBalance balance=1 needed=2 sender={FROM}");
        assert_eq!(shown(&decoded), expected);
        for data in [&data[..3], &data[..90], &[], &[0; 100]] {
            assert_eq!(decode_error(&abi, data), None);
        }
        assert_eq!(decode_error(&owned(&["error E()"]), &keccak256("E()")[..4]).unwrap().name, "E");
    }

    #[test]
    fn declarations_are_stored_as_given() {
        let abi = owned(&[" event E(bool) ", "F(bool indexed)", "error G(bool)"]);
        assert_eq!(
            checked(&abi),
            Ok(owned(&["event E(bool)", "F(bool indexed)", "error G(bool)"]))
        );
        assert_eq!(checked(&[]), Ok(vec![]));
    }

    #[test]
    fn other_declarations_are_refused() {
        for (text, expected) in [
            ("", "abi[1] \"\": it is no event or error"),
            ("function f()", "it is no event or error"),
            ("event E(bool", "it is no event or error"),
            ("event E((bool a) b)", "members of tuples have no names"),
            ("error E(bool) anonymous", "it is no error"),
            ("event E(bool) anonymous", "an anonymous event cannot be recognized"),
            ("event E(IERC20 token)", "\"IERC20\" is not a type of the ABI"),
            ("error E(uint08)", "\"uint08\" is not a type of the ABI"),
            ("event E(Token.Kind kind)", "names with a dot"),
            ("error E(bool[257])", "more than 256 values"),
            (
                "event E(bool indexed, bool indexed, bool indexed, bool indexed)",
                "more than 3 indexed parameters",
            ),
        ] {
            let error = checked(&owned(&[TRANSFER, text])).unwrap_err();
            assert!(error.starts_with("abi[1] ") && error.contains(expected), "{text}: {error}");
        }
        assert_eq!(checked(&vec![TRANSFER.to_owned(); 50]).map(|abi| abi.len()), Ok(50));
        let error = checked(&vec![TRANSFER.to_owned(); 51]).unwrap_err();
        assert_eq!(error, "there are 51 declarations; the maximum is 50");
    }

    const DECLARATIONS: &str = "((event|error) )?[A-Z]\\(((uint8|int256|bytes[0-9]{0,2}|bool|address|string|\
                                \\((bool|string|uint8\\[\\]),int\\))(\\[[0-9]{0,3}\\]){0,3}( indexed)?,?){0,3}\\)|\\PC{0,20}";

    proptest! {
        #[test]
        fn any_data_is_decoded_or_not(
            text in DECLARATIONS,
            topics in vec(any::<[u8; 32]>(), 0..4),
            numbers in vec(0..200_u64, 0..12),
            rest in vec(any::<u8>(), 0..40),
        ) {
            let data = numbers.iter().flat_map(|number| U256::from(*number).to_be_bytes::<32>());
            let data: Vec<u8> = data.chain(rest).collect();
            match Declaration::parse(&text) {
                Ok(Declaration::Event(event, form)) => {
                    let own = form.topic_0().unwrap_or_default();
                    let topics = topics.into_iter().map(B256::from);
                    let topics: Vec<B256> = std::iter::once(own).chain(topics).collect();
                    let topics: Vec<String> = topics.iter().map(ToString::to_string).collect();
                    if let Some(decoded) = decoded_event(&[text], &log(&topics, &hex::encode(data))) {
                        prop_assert_eq!(decoded.values.len(), event.inputs.len());
                    }
                }
                Ok(Declaration::Error(error, form)) => {
                    let data = [form.selector().as_slice(), &data].concat();
                    if let Some(decoded) = decode_error(&[text], &data) {
                        prop_assert_eq!(decoded.values.len(), error.inputs.len());
                    }
                }
                Err(rule) => prop_assert!(!rule.is_empty()),
            }
        }
    }
}
