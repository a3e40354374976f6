//! Bodies that are compressed, read as what they were before; what is passed on stays as it came.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// How much is decompressed at once: it becomes a thousand times as much at most.
const PIECE: usize = 1024;

/// Undoes the `Content-Encoding` of a body, in whatever pieces it comes.
#[derive(Debug)]
pub(super) enum Encoding {
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
    /// `deflate` is the format of zlib, but some send what is inside it.
    Deflate(Box<DeflateDecoder<Vec<u8>>>),
    /// Of the two above; the first two bytes tell.
    Undecided(Vec<u8>),
}

impl Encoding {
    /// The encoding of this name; `None` where we cannot undo it.
    pub(super) fn named(name: &str) -> Option<Encoding> {
        match name.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Some(Encoding::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
            "deflate" => Some(Encoding::Undecided(Vec::new())),
            _ => None,
        }
    }

    /// Decompresses some more, and gives what it was, in pieces that are not large, until nobody wants more.
    pub(super) fn decode(&mut self, data: &[u8], take: &mut dyn FnMut(&[u8]) -> More) -> io::Result<()> {
        if let Encoding::Undecided(first) = self {
            first.extend_from_slice(data);
            let first = std::mem::take(first);
            let &[one, two, ..] = &first[..] else {
                *self = Encoding::Undecided(first);
                return Ok(());
            };
            let is_zlib = one & 0x0f == 8 && u16::from_be_bytes([one, two]).is_multiple_of(31);
            *self = match is_zlib {
                true => Encoding::Zlib(Box::new(ZlibDecoder::new(Vec::new()))),
                false => Encoding::Deflate(Box::new(DeflateDecoder::new(Vec::new()))),
            };
            return self.decode(&first, take);
        }
        for piece in data.chunks(PIECE) {
            let written = self.write(piece);
            let plain = self.plain();
            let more = if plain.is_empty() { More::Wanted } else { take(plain) };
            plain.clear();
            written?;
            if more == More::Unwanted {
                break;
            }
        }
        Ok(())
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        // What can be said is said at once: an event must not wait for the next one.
        match self {
            Encoding::Gzip(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
            Encoding::Zlib(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
            Encoding::Deflate(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
            Encoding::Undecided(_) => Ok(()),
        }
    }

    fn plain(&mut self) -> &mut Vec<u8> {
        match self {
            Encoding::Gzip(decoder) => decoder.get_mut(),
            Encoding::Zlib(decoder) => decoder.get_mut(),
            Encoding::Deflate(decoder) => decoder.get_mut(),
            Encoding::Undecided(first) => first,
        }
    }
}

/// Whether whoever takes what was decompressed wants more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    Wanted,
    Unwanted,
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn decoded(name: &str, data: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let mut encoding = Encoding::named(name).unwrap();
        let mut plain = Vec::new();
        for piece in data.chunks(size) {
            encoding.decode(piece, &mut |some| {
                plain.extend_from_slice(some);
                More::Wanted
            })?;
        }
        Ok(plain)
    }

    #[test]
    fn what_was_compressed_is_what_it_was_however_it_arrives() {
        let text = "one and one and one is three, ".repeat(400).into_bytes();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&text).unwrap();
        zlib.write_all(&text).unwrap();
        raw.write_all(&text).unwrap();
        let table =
            [("gzip", gzip.finish().unwrap()), ("Deflate", zlib.finish().unwrap()), ("deflate", raw.finish().unwrap())];
        for (name, data) in table {
            for size in [1, 7, data.len()] {
                assert_eq!(decoded(name, &data, size).unwrap(), text, "{name} in pieces of {size}");
            }
        }
        assert!(Encoding::named("br").is_none() && Encoding::named("gzip, gzip").is_none());
        assert!(decoded("gzip", b"not gzip at all", 100).is_err());
    }

    #[test]
    fn an_event_is_there_as_soon_as_it_was_flushed() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut encoding = Encoding::named("gzip").unwrap();
        for event in ["data: 1\n\n", "data: 2\n\n"] {
            gzip.write_all(event.as_bytes()).unwrap();
            gzip.flush().unwrap();
            let data = std::mem::take(gzip.get_mut());
            let mut plain = Vec::new();
            encoding
                .decode(&data, &mut |some| {
                    plain.extend_from_slice(some);
                    More::Wanted
                })
                .unwrap();
            assert_eq!(String::from_utf8(plain).unwrap(), event);
        }
    }

    #[test]
    fn nothing_more_is_decompressed_than_is_wanted() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&vec![0; 64 << 20]).unwrap();
        let (mut encoding, mut taken) = (Encoding::named("gzip").unwrap(), 0);
        let take = &mut |some: &[u8]| {
            taken += some.len();
            More::Unwanted
        };
        encoding.decode(&gzip.finish().unwrap(), take).unwrap();
        assert!(taken < 2 << 20, "{taken}");
    }
}
