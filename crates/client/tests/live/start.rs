//! Starting the user's own peer, and what the clock does to guards. Each needs a process of its own.
