#![no_main]

use grid_batch_protocol::CylinderToken;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(error) = CylinderToken::verify(text) {
        assert!(error.to_string().len() < 1_000);
    }
});
