//! Bodies that are compressed with `zstd`.

use std::fmt;
use std::io;

use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

use super::encoding::More;

/// How much is given at once.
const BUFFER: usize = 64 << 10;

/// How far back a frame may refer: what RFC 9659 allows on the web.
const WINDOW: u64 = 8 << 20;

/// Undoes `zstd`. What a frame may still refer to is given when the frame ends, or when it can refer to it no more.
pub(super) struct Zstd {
    decoder: FrameDecoder,
    in_frame: bool,
    /// What has come of a block that is not complete.
    input: Vec<u8>,
    plain: Vec<u8>,
}

impl Default for Zstd {
    fn default() -> Zstd {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW);
        Zstd { decoder, in_frame: false, input: Vec::new(), plain: vec![0; BUFFER] }
    }
}

impl Zstd {
    /// Decompresses some more, and gives what it was until nobody wants more.
    pub(super) fn decode(&mut self, data: &[u8], take: &mut dyn FnMut(&[u8]) -> More) -> io::Result<()> {
        self.input.extend_from_slice(data);
        loop {
            if !self.in_frame {
                let mut rest = &self.input[..];
                match self.decoder.reset(&mut rest) {
                    Ok(()) => self.in_frame = true,
                    Err(error) if is_short(&error) => return Ok(()),
                    Err(error) => return Err(invalid(&error)),
                }
                let used = self.input.len() - rest.len();
                self.input.drain(..used);
            }
            let (used, written) =
                self.decoder.decode_from_to(&self.input, &mut self.plain).map_err(|error| invalid(&error))?;
            // It says four of a checksum that has not come whole.
            let used = if used > self.input.len() { 0 } else { used };
            self.input.drain(..used);
            if written > 0 && take(&self.plain[..written]) == More::Unwanted {
                return Ok(());
            }
            if used == 0 && written == 0 {
                if !self.decoder.is_finished() {
                    return Ok(());
                }
                self.in_frame = false;
            }
        }
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
        f.debug_struct("Zstd").field("in_frame", &self.in_frame).finish_non_exhaustive()
    }
}
