//! Bodies that are compressed, read as what they were before; what is passed on stays as it came.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::brotli::Brotli;
use super::zstd::Zstd;

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
    Brotli(Box<Brotli>),
    Zstd(Box<Zstd>),
}

impl Encoding {
    /// The encoding of this name; `None` where we cannot undo it.
    pub(super) fn named(name: &str) -> Option<Encoding> {
        match name.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Some(Encoding::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
            "deflate" => Some(Encoding::Undecided(Vec::new())),
            "br" => Some(Encoding::Brotli(Box::default())),
            "zstd" => Some(Encoding::Zstd(Box::default())),
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
            // What can be said is said at once: an event must not wait for the next one.
            let (written, plain) = match self {
                Encoding::Gzip(decoder) => (decoder.write_all(piece).and_then(|()| decoder.flush()), decoder.get_mut()),
                Encoding::Zlib(decoder) => (decoder.write_all(piece).and_then(|()| decoder.flush()), decoder.get_mut()),
                Encoding::Deflate(decoder) => {
                    (decoder.write_all(piece).and_then(|()| decoder.flush()), decoder.get_mut())
                }
                Encoding::Brotli(brotli) => return brotli.decode(data, take),
                Encoding::Zstd(zstd) => return zstd.decode(data, take),
                Encoding::Undecided(_) => return Ok(()),
            };
            let more = if plain.is_empty() { More::Wanted } else { take(plain) };
            plain.clear();
            written?;
            if more == More::Unwanted {
                break;
            }
        }
        Ok(())
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
        let table = [
            ("gzip", gzip.finish().unwrap()),
            ("Deflate", zlib.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
            // As Node writes it, and as `zstd --check` does.
            ("br", hex("1bdf2ef8a5d2e6ba904982394c3bd0c23d2da168d011319f0980")),
            ("zstd", hex(ZSTD)),
        ];
        for (name, data) in table {
            for size in [1, 7, data.len()] {
                assert_eq!(decoded(name, &data, size).unwrap(), text, "{name} in pieces of {size}");
            }
        }
        assert!(Encoding::named("compress").is_none() && Encoding::named("gzip, gzip").is_none());
        for name in ["gzip", "br", "zstd"] {
            assert!(decoded(name, b"not compressed at all", 100).is_err(), "{name}");
        }
        // One frame after the other is one body.
        let second = hex("28b52ffd04583100007365636f6e6437005e4d");
        let both = [text, b"second".to_vec()].concat();
        assert_eq!(decoded("zstd", &[hex(ZSTD), second.clone()].concat(), 5).unwrap(), both);
        // And what stands in a frame to be skipped is none of it, wherever that stands.
        let skipped = [hex("5f2a4d180a000000"), vec![b'?'; 10]].concat();
        let nothing = hex("502a4d1800000000");
        let data = [&skipped, &hex(ZSTD), &nothing, &skipped, &second, &skipped].map(Vec::as_slice).concat();
        for size in [1, 7, data.len()] {
            assert_eq!(decoded("zstd", &data, size).unwrap(), both, "in pieces of {size}");
        }
    }

    const ZSTD: &str = "28b52ffd64e02d050100886f6e6520616e642069732074687265652c0400ab2e280ee005398f33ae7001401fba42";

    fn hex(digits: &str) -> Vec<u8> {
        let (pairs, _) = digits.as_bytes().as_chunks::<2>();
        pairs.iter().map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn an_event_is_there_as_soon_as_it_was_flushed() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut flushed = |event: &str| {
            gzip.write_all(event.as_bytes()).unwrap();
            gzip.flush().unwrap();
            std::mem::take(gzip.get_mut())
        };
        let events = ["data: 1\n\n", "data: 2\n\n"];
        let table = [
            ("gzip", events.map(&mut flushed)),
            // As Node flushes it.
            ("br", [hex("0b0480646174613a20310a0a"), hex("4000805f4a41a608d1241830")]),
        ];
        for (name, data) in table {
            let mut encoding = Encoding::named(name).unwrap();
            for (data, event) in data.iter().zip(events) {
                let mut plain = Vec::new();
                encoding
                    .decode(data, &mut |some| {
                        plain.extend_from_slice(some);
                        More::Wanted
                    })
                    .unwrap();
                assert_eq!(String::from_utf8(plain).unwrap(), event, "{name}");
            }
        }
    }

    #[test]
    fn nothing_more_is_decompressed_than_is_wanted() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&vec![0; 64 << 20]).unwrap();
        // The same 64 MiB in 106 bytes.
        let brotli = "cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd1fffffffe09f0088c30200ddfb3ffeffffc13f0110870500baf77ffcffff837f02200e0b0074effff8ffff07ff04401c1600e8defff1ffff0ffe0980382c00d0bdffcbffff3ffc1300715800a07bff07";
        // And in 512 blocks of four bytes, with one after them that no frame may have: nobody comes that far.
        let zstd = [hex("28b52ffd0038"), hex("02001000").repeat(512), hex("060000")].concat();
        for (name, data) in [("gzip", gzip.finish().unwrap()), ("br", hex(brotli)), ("zstd", zstd)] {
            let (mut encoding, mut taken) = (Encoding::named(name).unwrap(), 0);
            let take = &mut |some: &[u8]| {
                taken += some.len();
                More::Unwanted
            };
            encoding.decode(&data, take).unwrap();
            assert!(taken < 2 << 20, "{name}: {taken}");
        }
    }
}
