use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_protocol::{
    CylinderToken, PublicKeyError, SignatureError, SigningKey, TokenError, TokenPart,
};
use proptest::prelude::*;

use crate::fixtures;

const HEADER: &str = r#"{"alg":"secp256k1","typ":"cylinder+jwt"}"#;

fn key() -> SigningKey {
    SigningKey::from_bytes([0x11; 32]).expect("the number is in range")
}

fn claims() -> String {
    format!(r#"{{"iss":"{}"}}"#, key().public_key())
}

/// A token with these parts, signed with the test key.
fn signed(header: &str, claims: &str) -> String {
    let [header, claims] = [header, claims].map(|json| BASE64_STANDARD.encode(json));
    let signed = format!("{header}.{claims}");
    let signature = BASE64_STANDARD.encode(key().sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

fn refusal(token: &str) -> TokenError {
    CylinderToken::verify(token).expect_err(token)
}

#[test]
fn token_is_equal_to_that_of_cylinder() {
    let fixture = fixtures::read_text("cylinder/token.txt");
    let (token, public_key) = fixture.trim_end().split_once('\n').unwrap();
    let issuer = CylinderToken::verify(token).unwrap();
    assert_eq!(issuer.to_string(), public_key);
    assert_eq!(CylinderToken::new(&key()).as_str(), token);
}

#[test]
fn other_claims_and_another_order_are_accepted() {
    let header = r#"{ "typ": "cylinder+jwt", "alg": "secp256k1", "kid": 1 }"#;
    let claims = claims().replace('}', r#","exp":1,"aud":["a"]}"#);
    let issuer = CylinderToken::verify(&signed(header, &claims));
    assert_eq!(issuer, Ok(key().public_key()));
}

#[test]
fn token_must_have_three_parts() {
    let token = signed(HEADER, &claims());
    let two = token.rsplit_once('.').unwrap().0;
    assert_eq!(refusal(""), TokenError::Parts { count: 1 });
    assert_eq!(refusal(two), TokenError::Parts { count: 2 });
    assert_eq!(refusal(&format!("{token}.")), TokenError::Parts { count: 4 });
}

#[test]
fn parts_must_be_standard_base64_with_padding() {
    let token = signed(HEADER, &claims());
    for (at, part) in
        [TokenPart::Header, TokenPart::Claims, TokenPart::Signature].into_iter().enumerate()
    {
        for make_invalid in [
            |part: &str| part.trim_end_matches('=').to_owned(),
            |part: &str| format!("{part} "),
            |part: &str| format!("-{}", &part[1..]),
        ] {
            let mut parts: Vec<_> = token.split('.').map(str::to_owned).collect();
            let invalid = make_invalid(&parts[at]);
            if invalid != parts[at] {
                parts[at] = invalid;
                assert_eq!(refusal(&parts.join(".")), TokenError::Base64 { part });
            }
        }
    }
}

#[test]
fn header_and_claims_must_be_objects() {
    for text in ["", "[\"secp256k1\",\"cylinder+jwt\"]", "{\"iss\":", "\u{7f}"] {
        let part = TokenPart::Header;
        assert_eq!(refusal(&signed(text, &claims())), TokenError::Json { part });
        let part = TokenPart::Claims;
        assert_eq!(refusal(&signed(HEADER, text)), TokenError::Json { part });
    }
}

#[test]
fn token_of_another_type_is_refused() {
    let plain = HEADER.replace("cylinder+jwt", "JWT");
    assert_eq!(refusal(&signed(&plain, &claims())), TokenError::Type);
    let unsigned = HEADER.replace("secp256k1", "none");
    assert_eq!(refusal(&signed(&unsigned, &claims())), TokenError::Algorithm);
}

#[test]
fn issuer_must_be_a_key() {
    assert_eq!(refusal(&signed(HEADER, "{}")), TokenError::NoIssuer);
    assert_eq!(refusal(&signed(HEADER, r#"{"iss":7}"#)), TokenError::NoIssuer);
    assert!(matches!(
        refusal(&signed(HEADER, r#"{"iss":"me"}"#)),
        TokenError::Issuer(PublicKeyError::Text { .. })
    ));
}

#[test]
fn token_must_be_signed_by_its_issuer() {
    let mallory = SigningKey::from_seed(666).public_key();
    let claims = format!(r#"{{"iss":"{mallory}"}}"#);
    assert_eq!(
        refusal(&signed(HEADER, &claims)),
        TokenError::Signature(SignatureError::Wrong { key: mallory })
    );
    let token = signed(HEADER, &claims);
    let signed = token.rsplit_once('.').unwrap().0;
    let short = format!("{signed}.{}", BASE64_STANDARD.encode([1; 63]));
    assert_eq!(refusal(&short), TokenError::SignatureLength { length: 63 });
}

#[test]
fn debug_does_not_show_the_token() {
    let token = CylinderToken::new(&key());
    let shown = format!("{token:?}");
    assert_eq!(shown, format!("CylinderToken(issuer {})", key().public_key()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn arbitrary_text_is_refused(text in prop_oneof!["\\PC*", "[A-Za-z0-9+/=]*\\.[A-Za-z0-9+/=]*\\.[A-Za-z0-9+/=]*"]) {
        prop_assert!(!refusal(&text).to_string().is_empty());
    }

    #[test]
    fn arbitrary_header_and_claims_are_refused(header in "\\PC*", claims in "\\PC*") {
        refusal(&signed(&header, &claims));
    }

    #[test]
    fn changed_byte_is_refused(at: prop::sample::Index, byte in 0..128u8) {
        let token = signed(HEADER, &claims());
        let mut changed = token.clone().into_bytes();
        *at.get_mut(&mut changed) = byte;
        let changed = String::from_utf8(changed).unwrap();
        prop_assert!(changed == token || CylinderToken::verify(&changed).is_err());
    }
}
