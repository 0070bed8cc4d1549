//! Starting the user's own peer.
