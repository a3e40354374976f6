//! Bodies that are compressed with `zstd`.

use std::fmt;
use std::io::{self, Read as _};

use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::errors::ReadFrameHeaderError::{self, SkipFrame};

use super::encoding::More;

/// How much is given at once.
const BUFFER: usize = 64 << 10;

/// How far back a frame may refer: what RFC 9659 allows on the web.
const WINDOW: u64 = 8 << 20;

/// Undoes `zstd`. What a frame may still refer to is given when the frame ends, or when it can refer to it no more.
pub(super) struct Zstd {
    decoder: FrameDecoder,
    next: Next,
    /// What has come of the next thing while it is not complete.
    input: Vec<u8>,
    plain: Vec<u8>,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Frame,
    Block,
    /// So many bytes that are not content: a checksum, or what somebody else put there.
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
    /// Decompresses some more, and gives what it was until nobody wants more.
    pub(super) fn decode(&mut self, data: &[u8], take: &mut dyn FnMut(&[u8]) -> More) -> io::Result<()> {
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(data);
        let mut rest = &input[..];
        let decoded = self.advance(&mut rest, take);
        let used = input.len() - rest.len();
        input.drain(..used);
        self.input = input;
        decoded
    }

    fn advance(&mut self, rest: &mut &[u8], take: &mut dyn FnMut(&[u8]) -> More) -> io::Result<()> {
        loop {
            let written = self.decoder.read(&mut self.plain)?;
            if written > 0 {
                match take(&self.plain[..written]) {
                    More::Wanted => continue,
                    More::Unwanted => return Ok(()),
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

/// What stands before a block: whether it is the last one, of what kind it is, and its size.
#[derive(Clone, Copy, Debug)]
struct BlockHeader(u32);

impl BlockHeader {
    fn is_last(self) -> bool {
        self.0 & 1 == 1
    }

    /// How much there is of it in the frame; of a byte that is repeated the size says how often.
    fn len(self) -> usize {
        let repeats = (self.0 >> 1) & 3 == 1;
        if repeats { 1 } else { (self.0 >> 3) as usize }
    }
}

/// Whether more is needed to know what frame begins there.
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
