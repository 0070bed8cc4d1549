//! Distributed locks without coordination servers: the client library.
