//! What becomes of the first seeds of every kind of world, a line each: for machines to be compared.

#[path = "../tests/wasm/seeds.rs"]
mod seeds;

fn main() {
    print!("{}", seeds::told());
}
