//! Bytes in, bytes out.
