//! Strings looked at eight bytes at a time.

/// The same byte eight times.
pub(crate) const fn eight(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The bytes of a word that mean something inside a string: a quote, a backslash, a control character. Each has its highest
/// bit set. The lowest of them is right; those above it may be set by a borrow.
#[inline(always)]
pub(crate) const fn special(word: u64) -> u64 {
    (zero(word ^ eight(b'"')) | zero(word ^ eight(b'\\')) | word.wrapping_sub(eight(b' ')) & !word) & eight(0x80)
}

#[inline(always)]
const fn zero(bytes: u64) -> u64 {
    bytes.wrapping_sub(eight(1)) & !bytes
}
