use proptest::{collection::vec, prelude::*};

use super::*;

fn prefix(text: &str) -> AddressPrefix {
    AddressPrefix::new(text)
}

fn access(reads: &[&str], writes: &[&str]) -> DeclaredAccess {
    let prefixes = |texts: &[&str]| texts.iter().map(|text| prefix(text)).collect::<Vec<_>>();
    DeclaredAccess::new(prefixes(reads), prefixes(writes), [])
}

#[test]
fn batches_that_only_read_do_not_conflict() {
    assert!(!access(&["aa"], &["01"]).conflicts_with(&access(&["aa"], &["02"])));
}

#[test]
fn a_write_conflicts_with_reads_and_writes_that_overlap() {
    let write = access(&[], &["aabb"]);
    for overlapping in ["", "aa", "aabb", "aabbcc"] {
        assert!(write.conflicts_with(&access(&[overlapping], &["01"])), "reads {overlapping:?}");
        assert!(write.conflicts_with(&access(&["01"], &[overlapping])), "writes {overlapping:?}");
    }
    for other in ["ab", "aacc", "aacc00"] {
        assert!(!write.conflicts_with(&access(&[other], &[other])), "{other:?}");
    }
}

#[test]
fn conflict_is_named_by_the_longer_address() {
    let address = |text: &str| Some(prefix(text));
    let one = access(&["cc"], &["aabb"]);
    assert_eq!(one.conflict_with(&access(&["aa"], &["01"])).cloned(), address("aabb"));
    assert_eq!(one.conflict_with(&access(&["01"], &["ccdd"])).cloned(), address("ccdd"));
    assert_eq!(one.conflict_with(&access(&["cc"], &["01"])), None, "both only read");
}

#[test]
fn everything_conflicts_with_every_batch() {
    let everything = DeclaredAccess::everything();
    assert!(everything.conflicts_with(&access(&["aa"], &[])));
    assert!(everything.conflicts_with(&access(&[], &["aa"])));
    assert!(everything.conflicts_with(&everything));
}

#[test]
fn covered_prefixes_are_left_out() {
    let access = access(&["aa", "aabb", "cc", "ccdd"], &["aa00", "aa", "aa"]);
    assert_eq!(access.writes(), [prefix("aa")]);
    assert_eq!(access.reads(), [prefix("cc")], "what is written may be read anyway");
}

#[test]
fn dependencies_are_in_order_and_distinct() {
    let id = |byte| ItemId::from_bytes([byte; 64]);
    let access = DeclaredAccess::new([], [], [id(2), id(1), id(2)]);
    assert_eq!(access.dependencies(), [id(1), id(2)]);
}

#[test]
fn excess_prefixes_become_their_longest_common_beginnings() {
    // 256 pairs and a single one: a pair differs in its last byte only.
    let pairs = (0..512u32).map(|n| prefix(&format!("1c{:04x}{:02x}", n / 2, n % 2)));
    let access = DeclaredAccess::new([], pairs.chain([prefix("ee00")]), []);
    assert_eq!(access.writes(), [prefix("1c00"), prefix("ee00")]);

    let pairs = (0..512u32).map(|n| prefix(&format!("1c{:04x}{:02x}", n / 2, n % 2)));
    let access = DeclaredAccess::new([], pairs, []);
    assert_eq!(access.writes().len(), 256);
    assert_eq!(access.writes()[7], prefix("1c0007"));
}

#[test]
fn prefixes_without_a_common_beginning_become_everything() {
    let different = (0..=u16::MAX).step_by(16).map(|n| prefix(&format!("{n:04x}")));
    let access = DeclaredAccess::new([], different, []);
    assert_eq!(access.writes().len(), 256);
    let all_first_bytes = (0..=u8::MAX).map(|n| prefix(&format!("{n:02x}")));
    assert_eq!(DeclaredAccess::new([], all_first_bytes, []).writes().len(), 256);
}

#[test]
fn encoding_of_many_prefixes_is_bounded() {
    let hashed =
        |n: u64| prefix(&format!("1cf126{:016x}{:048x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n));
    let access = DeclaredAccess::new((0..5_000).map(hashed), (5_000..9_000).map(hashed), []);
    assert!((200..=256).contains(&access.writes().len()), "{}", access.writes().len());
    assert!(access.encode().len() < 20_000, "{}", access.encode().len());
}

#[test]
fn encoding_is_as_documented() {
    let dependency = ItemId::from_bytes([7; 64]);
    let access = DeclaredAccess::new([prefix("1cf126")], [AddressPrefix::everything()], []);
    assert_eq!(access.encode(), [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
    let access = DeclaredAccess::new([prefix("1cf126")], [prefix("aa")], [dependency]);
    let mut expected = vec![1, 0, 0, 0, 1, 3, 0x1c, 0xf1, 0x26, 0, 0, 0, 1, 1, 0xaa, 0, 0, 0, 1];
    expected.extend([7; 64]);
    assert_eq!(access.encode(), expected);
    let access = DeclaredAccess::new([], [], ["tx-1".parse().unwrap()]);
    assert_eq!(access.encode(), b"\x02\0\0\0\0\0\0\0\0\0\0\0\x01\x04tx-1");
}

#[test]
fn errors_of_decoding_say_what_is_wrong() {
    let error = |bytes: &[u8]| DeclaredAccess::decode(bytes).unwrap_err().to_string();
    assert_eq!(error(&[]), "the stored declared access ends after 0 bytes, within a value");
    assert_eq!(
        error(&[3, 0]),
        "the stored declared access has version 3; this server reads versions up to 2"
    );
    assert_eq!(
        error(&[1, 0, 0, 0, 1, 36]),
        "the stored declared access has a prefix of 36 bytes; an address has 35"
    );
    let long = [DeclaredAccess::everything().encode(), vec![0, 0]].concat();
    assert_eq!(error(&long), "the stored declared access has 2 bytes after its last value");
    assert!(error(&[1, 255, 255, 255, 255, 0]).contains("ends after 6 bytes"));
}

/// Texts, many of which overlap.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![8 => "([0-2]{2}){0,3}", 1 => "[0-9a-fA-Fxé]{0,4}", 1 => "([0-9a-f]{2}){35,36}"]
}

fn prefixes_of(texts: &[String]) -> Vec<AddressPrefix> {
    texts.iter().map(|text| prefix(text)).collect()
}

fn any_access() -> impl Strategy<Value = DeclaredAccess> {
    let signature = any::<u8>().prop_map(|byte| ItemId::from_bytes([byte; 64]));
    let other = "[0-9a-f]{1,128}".prop_map(|text| text.parse::<ItemId>().unwrap());
    let ids = vec(prop_oneof![3 => signature, 1 => other], 0..4);
    (vec(text(), 0..8), vec(text(), 0..8), ids).prop_map(|(reads, writes, dependencies)| {
        DeclaredAccess::new(prefixes_of(&reads), prefixes_of(&writes), dependencies)
    })
}

/// Whether an address is covered by both lists. An address that is covered by two prefixes starts with both, so it is
/// enough to look at the longer one.
fn share_an_address(some: &[AddressPrefix], others: &[AddressPrefix]) -> bool {
    let pad = |prefix: &AddressPrefix| format!("{:0<70}", prefix.as_str());
    let has = |list: &[AddressPrefix], address: &str| {
        list.iter().any(|prefix| address.starts_with(prefix.as_str()))
    };
    let mut addresses = some.iter().chain(others).map(pad);
    addresses.any(|address| has(some, &address) && has(others, &address))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn conflict_is_an_address_that_one_writes_and_both_access(
        [reads, writes, other_reads, other_writes] in [(); 4].map(|()| vec(text(), 0..4)),
    ) {
        let [reads, writes, other_reads, other_writes] =
            [reads, writes, other_reads, other_writes].map(|texts| prefixes_of(&texts));
        let expected = share_an_address(&writes, &other_writes)
            || share_an_address(&writes, &other_reads)
            || share_an_address(&reads, &other_writes);
        let one = DeclaredAccess::new(reads, writes, []);
        let other = DeclaredAccess::new(other_reads, other_writes, []);
        prop_assert_eq!(one.conflicts_with(&other), expected);
        prop_assert_eq!(other.conflicts_with(&one), expected);
    }

    #[test]
    fn covered_prefixes_change_no_conflict(
        one in any_access(),
        other in any_access(),
        rest in "([0-9a-f]{2}){0,35}",
    ) {
        let below = |list: &[AddressPrefix]| -> Vec<AddressPrefix> {
            let below = list.iter().map(|it| prefix(&format!("{it:?}{rest}").replace('"', "")));
            below.chain(list.iter().cloned()).collect()
        };
        let more = DeclaredAccess::new(
            [below(one.reads()), below(one.writes())].concat(),
            below(one.writes()),
            one.dependencies().iter().copied(),
        );
        prop_assert_eq!(&more, &one);
        prop_assert_eq!(more.conflicts_with(&other), one.conflicts_with(&other));
    }

    #[test]
    fn encoding_round_trips(access in any_access()) {
        prop_assert_eq!(DeclaredAccess::decode(&access.encode()), Ok(access));
    }

    #[test]
    fn a_truncated_or_longer_encoding_is_an_error(access in any_access(), cut in 1..9usize) {
        let bytes = access.encode();
        prop_assert!(DeclaredAccess::decode(&bytes[..bytes.len().saturating_sub(cut)]).is_err());
        prop_assert!(DeclaredAccess::decode(&[bytes, vec![0; cut]].concat()).is_err());
    }

    #[test]
    fn garbage_is_an_error_or_an_access(garbage in vec(prop_oneof![0..4u8, any::<u8>()], 0..60)) {
        let with_version = [vec![1], garbage.clone()].concat();
        for bytes in [garbage, with_version] {
            if let Ok(access) = DeclaredAccess::decode(&bytes) {
                prop_assert_eq!(DeclaredAccess::decode(&access.encode()), Ok(access));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn bounded_access_covers_all_that_was_declared(
        texts in vec("([0-3]{2}){0,4}|([0-9a-f]{2}){2,35}", 200..900),
    ) {
        let declared = prefixes_of(&texts);
        for access in [
            DeclaredAccess::new(declared.clone(), [], []),
            DeclaredAccess::new([], declared.clone(), []),
        ] {
            let kept = [access.reads(), access.writes()].concat();
            prop_assert!(kept.len() <= DeclaredAccess::MOST_PREFIXES);
            for prefix in &declared {
                prop_assert!(kept.iter().any(|one| one.covers(prefix)), "{}", prefix);
            }
        }
    }
}
