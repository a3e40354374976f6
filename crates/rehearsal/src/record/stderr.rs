//! What a server says to people, as far as it is kept.

use rehearsal_core::trace::What;

/// How much of a line is kept.
const WIDTH: usize = 4096;
/// How much of a session is kept.
const ALL: usize = 1024 * 1024;

/// Cuts stderr into lines, up to a limit.
#[derive(Debug, Default)]
pub(super) struct Stderr {
    line: Vec<u8>,
    kept: usize,
    full: bool,
}

impl Stderr {
    pub(super) fn cut(&mut self, bytes: &[u8], whats: &mut Vec<What>) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.extend(&rest[..end]);
            self.push(whats);
            rest = &rest[end + 1..];
        }
        self.extend(rest);
    }

    pub(super) fn end(&mut self, whats: &mut Vec<What>) {
        if !self.line.is_empty() {
            self.push(whats);
        }
    }

    fn extend(&mut self, more: &[u8]) {
        let room = WIDTH.saturating_sub(self.line.len());
        self.line.extend_from_slice(&more[..more.len().min(room)]);
    }

    fn push(&mut self, whats: &mut Vec<What>) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned();
        self.kept += text.len() + 1;
        if self.kept <= ALL {
            whats.push(What::Stderr { line: text });
        } else if !std::mem::replace(&mut self.full, true) {
            whats.push(What::Stderr { line: format!("(more than {ALL} bytes: what follows is not kept)") });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_kept_in_part_and_says_so() {
        let mut stderr = Stderr::default();
        let mut whats = Vec::new();
        let flood = [&[b'x'; 10_000][..], b"\n"].concat();
        (0..10_000).for_each(|_| stderr.cut(&flood, &mut whats));
        stderr.end(&mut whats);
        assert_eq!(whats.len(), ALL / (WIDTH + 1) + 1);
        let last = What::Stderr { line: "(more than 1048576 bytes: what follows is not kept)".into() };
        assert_eq!(whats.last(), Some(&last));
    }
}
