//! Bodies that are compressed with `br`.

use std::fmt;
use std::io;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::encoding::More;

/// How much is decompressed before somebody takes it; a few bytes of `br` may become any amount.
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
    /// Decompresses some more, and gives what it was until nobody wants more.
    pub(super) fn decode(&mut self, data: &[u8], take: &mut dyn FnMut(&[u8]) -> More) -> io::Result<()> {
        let (mut left, mut used, mut total) = (data.len(), 0, 0);
        loop {
            if self.over {
                let after = || io::Error::new(io::ErrorKind::InvalidData, "something stands after the end of it");
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
            if written > 0 && take(&self.plain[..written]) == More::Unwanted {
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
