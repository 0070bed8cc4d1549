//! The sigmalock.v1 API: its shapes, and its server over a node.
