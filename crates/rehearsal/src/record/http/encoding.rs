//! Bodies that are compressed, read as what they were before; what is passed on stays as it came.

use std::fmt;
use std::io::{self, Read as _, Write};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::errors::ReadFrameHeaderError::{self, SkipFrame};

/// How much is decompressed at once: it becomes a thousand times as much at most.
const PIECE: usize = 1024;

/// Undoes the `Content-Encoding` of a body, in whatever pieces it comes.
#[derive(Debug)]
pub(super) enum Encoding {
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
    /// `deflate` is the format of zlib, but some send what is inside it.
    Deflate(Box<DeflateDecoder<Vec<u8>>>),
    /// One of the two above; the first two bytes decide.
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

    /// Decompresses more data. Passes it to `take` in small pieces until that returns [`More::Unwanted`].
    pub(super) fn decode(&mut self, data: &[u8], take: &mut dyn FnMut(&[u8]) -> WantsMore) -> io::Result<()> {
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
            // Each piece is flushed at once: an event must not wait for the next one.
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
            let more = if plain.is_empty() { WantsMore::Wanted } else { take(plain) };
            plain.clear();
            written?;
            if more == WantsMore::Unwanted {
                break;
            }
        }
        Ok(())
    }
}

/// Whether the receiver of decompressed data needs more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantsMore {
    Wanted,
    Unwanted,
}

/// The size in bytes of one decompressed piece. A few bytes of `br` may decompress to any amount.
const BUFFER: usize = 64 << 10;

/// Undoes `br`.
pub(super) struct Brotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    plain: Vec<u8>,
    over: bool,
}

impl Default for Brotli {
    fn default() -> Brotli {
        let state = BrotliState::new(StandardAlloc::default(), StandardAlloc::default(), StandardAlloc::default());
        Brotli { state, plain: vec![0; BUFFER], over: false }
    }
}

impl Brotli {
    /// Decompresses more data. Passes it to `take` until that returns [`More::Unwanted`].
    pub(super) fn decode(&mut self, data: &[u8], take: &mut dyn FnMut(&[u8]) -> WantsMore) -> io::Result<()> {
        let (mut left, mut used, mut total) = (data.len(), 0, 0);
        loop {
            if self.over {
                let after = || io::Error::new(io::ErrorKind::InvalidData, "there is data after its end");
                return if left == 0 { Ok(()) } else { Err(after()) };
            }
            let (mut room, mut written) = (self.plain.len(), 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut used,
                data,
                &mut room,
                &mut written,
                &mut self.plain,
                &mut total,
                &mut self.state,
            );
            if written > 0 && take(&self.plain[..written]) == WantsMore::Unwanted {
                return Ok(());
            }
            match result {
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::NeedsMoreInput => return Ok(()),
                BrotliResult::ResultSuccess => self.over = true,
                BrotliResult::ResultFailure => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "corrupt brotli stream"));
                }
            }
        }
    }
}

impl fmt::Debug for Brotli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brotli").field("over", &self.over).finish_non_exhaustive()
    }
}

/// How far back a frame may refer: what RFC 9659 allows on the web.
const WINDOW: u64 = 8 << 20;

/// Undoes `zstd`. What a frame may still refer to is given when the frame ends, or when it can refer to it no more.
pub(super) struct Zstd {
    decoder: FrameDecoder,
    next: Next,
    /// The beginning of the next frame or block while it is incomplete.
    input: Vec<u8>,
    plain: Vec<u8>,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Frame,
    Block,
    /// This many bytes that are not content: a checksum or a skippable frame.
    Skipped(usize),
}

impl Default for Zstd {
    fn default() -> Zstd {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW);
        Zstd { decoder, next: Next::Frame, input: Vec::new(), plain: vec![0; BUFFER] }
    }
}

impl Zstd {
    /// Decompresses more data. Passes it to `take` until that returns [`More::Unwanted`].
    pub(super) fn decode(&mut self, data: &[u8], take: &mut dyn FnMut(&[u8]) -> WantsMore) -> io::Result<()> {
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(data);
        let mut rest = &input[..];
        let decoded = self.advance(&mut rest, take);
        let used = input.len() - rest.len();
        input.drain(..used);
        self.input = input;
        decoded
    }

    fn advance(&mut self, rest: &mut &[u8], take: &mut dyn FnMut(&[u8]) -> WantsMore) -> io::Result<()> {
        loop {
            let written = self.decoder.read(&mut self.plain)?;
            if written > 0 {
                match take(&self.plain[..written]) {
                    WantsMore::Wanted => continue,
                    WantsMore::Unwanted => return Ok(()),
                }
            }
            match self.next {
                Next::Frame => {
                    let mut after = *rest;
                    self.next = match self.decoder.reset(&mut after) {
                        Ok(()) => Next::Block,
                        Err(FrameDecoderError::ReadFrameHeaderError(SkipFrame { length, .. })) => {
                            Next::Skipped(length as usize)
                        }
                        Err(error) if is_short(&error) => return Ok(()),
                        Err(error) => return Err(invalid(&error)),
                    };
                    *rest = after;
                }
                Next::Block => {
                    // One at a time: the decoder takes all that it gets, and four bytes may become 128 KiB.
                    let Some(&[first, second, third]) = rest.first_chunk() else { return Ok(()) };
                    let block = BlockHeader(u32::from_le_bytes([first, second, third, 0]));
                    let some = &rest[..rest.len().min(3 + block.len())];
                    let (used, _) = self.decoder.decode_from_to(some, &mut []).map_err(|error| invalid(&error))?;
                    if used == 0 {
                        return Ok(());
                    }
                    *rest = &rest[used..];
                    if block.is_last() {
                        // The decoder is not finished where a checksum follows.
                        self.next = if self.decoder.is_finished() { Next::Frame } else { Next::Skipped(4) };
                    }
                }
                Next::Skipped(left) => {
                    let some = left.min(rest.len());
                    *rest = &rest[some..];
                    if some < left {
                        self.next = Next::Skipped(left - some);
                        return Ok(());
                    }
                    self.next = Next::Frame;
                }
            }
        }
    }
}

/// The header of a block: whether it is the last one, its type and its size.
#[derive(Clone, Copy, Debug)]
struct BlockHeader(u32);

impl BlockHeader {
    fn is_last(self) -> bool {
        self.0 & 1 == 1
    }

    /// Its length in the frame. For a byte that is repeated, the size is the number of repetitions.
    fn len(self) -> usize {
        let repeats = (self.0 >> 1) & 3 == 1;
        if repeats { 1 } else { (self.0 >> 3) as usize }
    }
}

/// Whether more bytes are needed to read the header of the frame.
fn is_short(error: &FrameDecoderError) -> bool {
    let FrameDecoderError::ReadFrameHeaderError(error) = error else { return false };
    match error {
        ReadFrameHeaderError::MagicNumberReadError(cause)
        | ReadFrameHeaderError::FrameDescriptorReadError(cause)
        | ReadFrameHeaderError::WindowDescriptorReadError(cause)
        | ReadFrameHeaderError::DictionaryIdReadError(cause)
        | ReadFrameHeaderError::FrameContentSizeReadError(cause) => cause.kind() == io::ErrorKind::UnexpectedEof,
        _ => false,
    }
}

fn invalid(error: &FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

impl fmt::Debug for Zstd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zstd").field("next", &self.next).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    fn decoded(name: &str, data: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let mut encoding = Encoding::named(name).unwrap();
        let mut plain = Vec::new();
        for piece in data.chunks(size) {
            encoding.decode(piece, &mut |some| {
                plain.extend_from_slice(some);
                WantsMore::Wanted
            })?;
        }
        Ok(plain)
    }

    #[test]
    fn a_compressed_body_is_decoded_in_pieces_of_any_size() {
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
        // The content of a skippable frame is ignored, wherever the frame is.
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
    fn an_event_is_decoded_when_it_was_flushed() {
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
                        WantsMore::Wanted
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
        // 64 MiB in 106 bytes.
        let brotli = "cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd1fffffffe09f0088c30200ddfb3ffeffffc13f0110870500baf77ffcffff837f02200e0b0074effff8ffff07ff04401c1600e8defff1ffff0ffe0980382c00d0bdffcbffff3ffc1300715800a07bff07";
        // 64 MiB in 512 blocks of four bytes, followed by an invalid block that is never reached.
        let zstd = [hex("28b52ffd0038"), hex("02001000").repeat(512), hex("060000")].concat();
        for (name, data) in [("gzip", gzip.finish().unwrap()), ("br", hex(brotli)), ("zstd", zstd)] {
            let (mut encoding, mut taken) = (Encoding::named(name).unwrap(), 0);
            let take = &mut |some: &[u8]| {
                taken += some.len();
                WantsMore::Unwanted
            };
            encoding.decode(&data, take).unwrap();
            assert!(taken < 2 << 20, "{name}: {taken}");
        }
    }
}
