//! Finds the end of a request or response body, and its data within the framing.

/// How the end of a body is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After this number of bytes; 0 if there is no body.
    Length(u64),
    /// By a chunk of length 0.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

/// The longest line with a chunk size and its extensions, and the limit for all trailers together, in bytes.
const LINE_LIMIT: usize = 16 * 1024;

/// Parses the framing of a body that arrives in pieces of any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BodyParser {
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Data {
        left: u64,
    },
    UntilClose,
    /// In the digits of a chunk size.
    Size {
        size: u64,
        digits: u8,
    },
    /// Between the chunk size and the end of its line.
    Extension {
        size: u64,
        length: usize,
    },
    /// Before the line feed after the chunk size.
    SizeEnd {
        size: u64,
    },
    ChunkData {
        left: u64,
    },
    /// Before the line end after the data of a chunk.
    DataReturn,
    DataFeed,
    /// In a trailer line; `line` is its length so far.
    Trailer {
        line: usize,
        length: usize,
    },
    /// Before the line feed of a trailer line.
    TrailerFeed {
        line: usize,
        length: usize,
    },
    Done,
}

/// The framing of a chunk is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is not validly chunked: {0}")]
pub(super) struct BadChunk(&'static str);

impl BodyParser {
    pub(super) fn new(framing: Framing) -> BodyParser {
        let state = match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(left) => State::Data { left },
            Framing::Chunked => State::Size { size: 0, digits: 0 },
            Framing::UntilClose => State::UntilClose,
        };
        BodyParser { state }
    }

    /// True if the body is complete.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// True if the end of the connection is also the end of the body.
    pub(super) fn ends_with_connection(&self) -> bool {
        matches!(self.state, State::Done | State::UntilClose)
    }

    /// Returns how many bytes of the current chunk are still to come; `None` without chunks.
    pub(super) fn left_of_chunk(&self) -> Option<u64> {
        match self.state {
            State::ChunkData { left } => Some(left),
            State::DataReturn => Some(0),
            State::Data { .. }
            | State::UntilClose
            | State::Size { .. }
            | State::Extension { .. }
            | State::SizeEnd { .. }
            | State::DataFeed
            | State::Trailer { .. }
            | State::TrailerFeed { .. }
            | State::Done => None,
        }
    }

    /// Parses the next bytes: returns how many are framing, and how many after those are data.
    ///
    /// If both are 0, the body is complete or `bytes` is empty.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<BodyPiece, BadChunk> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let taken = |left: u64| usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - at);
            self.state = match self.state {
                State::Done => break,
                State::UntilClose => return Ok(BodyPiece { framing: at, data: bytes.len() - at }),
                State::Data { left } => {
                    let data = taken(left);
                    let left = left - data as u64;
                    self.state = if left == 0 { State::Done } else { State::Data { left } };
                    return Ok(BodyPiece { framing: at, data });
                }
                State::ChunkData { left } => {
                    let data = taken(left);
                    let left = left - data as u64;
                    self.state = if left == 0 { State::DataReturn } else { State::ChunkData { left } };
                    return Ok(BodyPiece { framing: at, data });
                }
                state => state.framing(*byte)?,
            };
            at += 1;
        }
        Ok(BodyPiece { framing: at, data: 0 })
    }
}

/// The next part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BodyPiece {
    /// The number of framing bytes.
    pub(super) framing: usize,
    /// The number of data bytes after them.
    pub(super) data: usize,
}

impl State {
    /// Returns the state after one byte of framing.
    fn framing(self, byte: u8) -> Result<State, BadChunk> {
        Ok(match (self, byte) {
            (State::Size { digits: 0, .. }, byte) if !byte.is_ascii_hexdigit() => {
                return Err(BadChunk("a chunk without a size"));
            }
            (State::Size { digits: 16.., .. }, byte) if byte.is_ascii_hexdigit() => {
                return Err(BadChunk("a chunk size of more than 16 digits"));
            }
            (State::Size { size, digits }, byte) => match char::from(byte).to_digit(16) {
                Some(digit) => State::Size { size: size * 16 + u64::from(digit), digits: digits + 1 },
                None => State::Extension { size, length: 0 }.framing(byte)?,
            },
            (State::Extension { size, .. }, b'\r') => State::SizeEnd { size },
            (State::Extension { length: 0, .. }, byte) if !matches!(byte, b';' | b' ' | b'\t') => {
                return Err(BadChunk("an invalid digit in the size of a chunk"));
            }
            (State::Extension { .. }, b'\n') => return Err(BadChunk("a line that ends without a carriage return")),
            (State::Extension { length: LINE_LIMIT.., .. }, _) => {
                return Err(BadChunk("an extension beyond the limit"));
            }
            (State::Extension { size, length }, _) => State::Extension { size, length: length + 1 },
            (State::SizeEnd { size: 0 }, b'\n') => State::Trailer { line: 0, length: 0 },
            (State::SizeEnd { size }, b'\n') => State::ChunkData { left: size },
            (State::DataReturn, b'\r') => State::DataFeed,
            (State::DataFeed, b'\n') => State::Size { size: 0, digits: 0 },
            (State::Trailer { line, length }, b'\r') => State::TrailerFeed { line, length },
            (State::Trailer { .. }, b'\n') => return Err(BadChunk("a line that ends without a carriage return")),
            (State::Trailer { length: LINE_LIMIT.., .. }, _) => return Err(BadChunk("trailers beyond the limit")),
            (State::Trailer { line, length }, _) => State::Trailer { line: line + 1, length: length + 1 },
            (State::TrailerFeed { line: 0, .. }, b'\n') => State::Done,
            (State::TrailerFeed { length, .. }, b'\n') => State::Trailer { line: 0, length },
            (State::SizeEnd { .. } | State::DataReturn | State::DataFeed | State::TrailerFeed { .. }, _) => {
                return Err(BadChunk("a chunk that is longer than its size"));
            }
            (state @ (State::Data { .. } | State::UntilClose | State::ChunkData { .. } | State::Done), _) => state,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads a body in pieces. Returns its data, the number of bytes after it, and whether it is complete.
    fn read(framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), BadChunk> {
        let mut body = BodyParser::new(framing);
        let (mut data, mut over) = (Vec::new(), 0);
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() && !body.is_done() {
                let BodyPiece { framing, data: length } = body.advance(rest)?;
                data.extend_from_slice(&rest[framing..framing + length]);
                rest = &rest[framing + length..];
            }
            over += rest.len();
        }
        Ok((data, over, body.is_done()))
    }

    #[test]
    fn a_body_with_a_length_ends_after_it() {
        assert_eq!(read(Framing::Length(3), &[b"ab", b"cde"]), Ok((b"abc".to_vec(), 2, true)));
        assert_eq!(read(Framing::Length(0), &[b"x"]), Ok((vec![], 1, true)));
        assert_eq!(read(Framing::Length(9), &[b"x"]), Ok((b"x".to_vec(), 0, false)));
    }

    #[test]
    fn a_body_without_a_length_ends_with_the_connection() {
        assert_eq!(read(Framing::UntilClose, &[b"ab", b"0\r\n\r\n"]), Ok((b"ab0\r\n\r\n".to_vec(), 0, false)));
    }

    #[test]
    fn chunks_with_extensions_and_trailers_are_parsed() {
        let text = b"4;a=\"b;c\"\r\nWiki\r\n00A \r\n0123456789\r\n0;last\r\nDate: x\r\nEtag: y\r\n\r\nNEXT";
        assert_eq!(read(Framing::Chunked, &[text]), Ok((b"Wiki0123456789".to_vec(), 4, true)));
        assert_eq!(read(Framing::Chunked, &[b"0\r\n\r\n"]), Ok((vec![], 0, true)));
        assert_eq!(read(Framing::Chunked, &[b"0\r\n"]), Ok((vec![], 0, false)));
    }

    #[test]
    fn an_invalid_chunk_is_refused() {
        let long = format!("1;{}\r\nx\r\n", "e".repeat(LINE_LIMIT));
        let trailers = format!("0\r\nX: {}\r\n\r\n", "e".repeat(LINE_LIMIT));
        let table = [
            ("\r\n", "a chunk without a size"),
            ("-1\r\n", "a chunk without a size"),
            (" 1\r\nx\r\n", "a chunk without a size"),
            ("0x1\r\nx\r\n", "an invalid digit in the size of a chunk"),
            ("11111111111111111\r\n", "a chunk size of more than 16 digits"),
            ("1\nx\r\n", "an invalid digit in the size of a chunk"),
            ("1;a\nx\r\n", "a line that ends without a carriage return"),
            ("1\r\nxy\r\n", "a chunk that is longer than its size"),
            ("1\r\rx", "a chunk that is longer than its size"),
            ("0\r\na\n\r\n", "a line that ends without a carriage return"),
            (&long, "an extension beyond the limit"),
            (&trailers, "trailers beyond the limit"),
        ];
        for (text, why) in table {
            assert_eq!(read(Framing::Chunked, &[text.as_bytes()]), Err(BadChunk(why)), "{text:.30}");
        }
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_gives_the_same_data(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..8),
            cuts in proptest::collection::vec(1..30usize, 0..40),
        ) {
            let mut bytes = Vec::new();
            for chunk in &chunks {
                bytes.extend_from_slice(format!("{:x};e\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\nT: 1\r\n\r\nleft over");
            let mut pieces = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            prop_assert_eq!(read(Framing::Chunked, &pieces), Ok((chunks.concat(), 9, true)));
        }

        #[test]
        fn any_bytes_are_parsed_without_panic(pieces: Vec<Vec<u8>>) {
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let _ = read(Framing::Chunked, &pieces);
        }
    }
}
