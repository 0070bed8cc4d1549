//! The resource's side: refusing holders that overslept.
