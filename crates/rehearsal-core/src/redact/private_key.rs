//! Where a private key begins and ends in a text.

use memchr::memmem;

/// What a private key begins with, whatever kind of key it is.
const BEGIN: &[u8] = b"-----BEGIN ";
/// What it ends with.
const END: &[u8] = b"-----END";
const DASHES: &[u8] = b"-----";

/// The first line of a private key: what stands under it is taken for one.
pub const PRIVATE_KEY: &str = "-----BEGIN PRIVATE KEY-----\n";

/// An edge of a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// `-----BEGIN RSA PRIVATE KEY-----`
    Begins,
    /// `-----END RSA PRIVATE KEY-----`
    Ends,
}

/// The last edge of a private key in a text: after [`Edge::Begins`] what comes next is inside of one.
pub fn last_edge(text: &[u8]) -> Option<Edge> {
    let begins = memmem::find_iter(text, BEGIN).filter(|start| body(text, *start).is_some()).last();
    let ends = memmem::rfind(text, END);
    match (begins, ends) {
        (Some(begins), Some(ends)) if begins < ends => Some(Edge::Ends),
        (Some(_), _) => Some(Edge::Begins),
        (None, Some(_)) => Some(Edge::Ends),
        (None, None) => None,
    }
}

/// Where the lines of a key begin whose first line begins at `start`, if it is private.
pub(super) fn body(text: &[u8], start: usize) -> Option<usize> {
    let label = text.get(start + BEGIN.len()..)?;
    let label = &label[..memmem::find(label, DASHES).unwrap_or(label.len())];
    let private = label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK");
    private.then(|| (start + BEGIN.len() + label.len() + DASHES.len()).min(text.len()))
}

/// Where the lines of a key end that begin at `body`.
pub(super) fn end(text: &[u8], body: usize) -> usize {
    memmem::find(&text[body..], END).map_or(text.len(), |offset| body + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_edge_says_what_comes_next() {
        let table = [
            ("key: -----BEGIN RSA PRIVATE KEY-----", Some(Edge::Begins)),
            ("-----BEGIN PGP PRIVATE KEY BLOCK-----", Some(Edge::Begins)),
            ("-----BEGIN EC PRIVATE KEY", Some(Edge::Begins)),
            ("-----BEGIN CERTIFICATE-----, not the PRIVATE KEY", None),
            ("-----BEGIN PRIVATE KEY----- x -----END PRIVATE KEY-----", Some(Edge::Ends)),
            ("-----END PRIVATE KEY----- -----BEGIN PRIVATE KEY-----", Some(Edge::Begins)),
            ("MIIEow", None),
        ];
        for (text, expected) in table {
            assert_eq!(last_edge(text.as_bytes()), expected, "{text}");
        }
    }
}
