//! A migration that is added must be built in.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations");
}
