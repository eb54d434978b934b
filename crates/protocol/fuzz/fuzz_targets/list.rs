#![no_main]

#[path = "../../tests/protocol/invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    invariants::check_invariants(body);
});
