//! Makes the shapes from the `.proto`, with nothing but cargo: no `protoc` is called.

use std::error::Error;

const PROTO: &str = "sigmalock/v1/sigmalock.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto/{PROTO}");
    let serving = std::env::var_os("CARGO_FEATURE_SERVER").is_some();
    let descriptors = protox::compile([PROTO], ["proto"])?;
    tonic_prost_build::configure()
        .build_server(serving)
        // Drawn as a picture of a conversation: rustdoc would take it for code.
        .disable_comments([".sigmalock.v1.Locks.Session"])
        .message_attribute(".", "#[derive(serde::Serialize)]")
        .enum_attribute(".", "#[derive(serde::Serialize)]")
        .compile_fds(descriptors)?;
    Ok(())
}
