//! Faults of a server on its own stdout and stderr.

use std::fs::File;
use std::io::{self, Write};

use bytes::{BufMut, Bytes, BytesMut};
use rehearsal_core::answer::fault::{Aftermath, Misdeed, Moment, half};

use super::write::LineWriter;
use crate::SendError;

/// Carries out a fault. After a fault that ends the connection, nothing more reaches the client.
pub(super) async fn misbehave(writer: &LineWriter, misdeed: Misdeed) -> Result<Aftermath, SendError> {
    match misdeed {
        Misdeed::Answer(answers) => {
            for answer in answers {
                writer.bytes(&line(&answer)).await?;
            }
        }
        Misdeed::Half(answer) => writer.bytes(&half(&answer)).await?,
        Misdeed::Disconnect { answer, moment } => {
            match moment {
                Moment::Before => {}
                Moment::During => writer.bytes(&half(&answer)).await?,
                Moment::After => writer.bytes(&line(&answer)).await?,
            }
            return hang_up(writer).await;
        }
        Misdeed::Noise(lines) => {
            for noise in lines {
                writer.bytes(&line(noise.as_bytes())).await?;
            }
        }
        Misdeed::Flood(bytes) => {
            // If the client does not read stderr, this write blocks. That is the fault; the runtime must not block with
            // it.
            let flooded = tokio::task::spawn_blocking(move || flood(&mut io::stderr().lock(), bytes)).await;
            // If the client closed stderr, the rest is not written.
            let _ = flooded;
        }
        Misdeed::Drip { answer, piece, pause } => writer.drip(&line(&answer), piece, pause).await?,
        Misdeed::Refuse(refused) => writer.bytes(&line(&refused.instead)).await?,
        Misdeed::Cut(answer) => {
            writer.bytes(&half(&answer)).await?;
            return hang_up(writer).await;
        }
        Misdeed::ContentType { answer, .. } => writer.bytes(&line(&answer)).await?,
    }
    Ok(Aftermath::GoesOn)
}

/// Returns the bytes with a line end.
fn line(bytes: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(bytes.len() + 1);
    line.put_slice(bytes);
    line.put_u8(b'\n');
    line.freeze()
}

/// Closes stdout for good: otherwise it stays open as long as the process runs.
async fn hang_up(writer: &LineWriter) -> Result<Aftermath, SendError> {
    writer.close().await;
    let closed = File::options().write(true).open("/dev/null").and_then(|null| Ok(nix::unistd::dup2_stdout(null)?));
    closed.map_err(|error| SendError::Failed { why: error.to_string() })?;
    Ok(Aftermath::Over)
}

/// Writes this number of bytes as lines.
fn flood(to: &mut impl Write, mut bytes: u64) -> io::Result<()> {
    let noise = b"nobody needs to know this, and there is more of it\n".repeat(80);
    while bytes > 0 {
        let piece = noise.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
        to.write_all(&noise[..piece])?;
        bytes -= piece as u64;
    }
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_core::answer::fault::Refused;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;
    use tokio::io::AsyncReadExt;

    #[test]
    fn a_flood_has_the_length_that_was_asked_for() {
        for bytes in [0, 1, 4079, 4080, 4081, 100_000] {
            let mut flooded = Vec::new();
            flood(&mut flooded, bytes).unwrap();
            assert_eq!(flooded.len() as u64, bytes);
        }
    }

    /// Returns what a client reads. Faults that close our own stdout cannot be tested in this process.
    async fn written(misdeed: Misdeed) -> String {
        let (near, mut far) = tokio::io::duplex(1024);
        let writer = LineWriter::new(near, Arc::new(AtomicBool::new(true)));
        assert_eq!(misbehave(&writer, misdeed).await.unwrap(), Aftermath::GoesOn);
        writer.close().await;
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        String::from_utf8_lossy(&read).into_owned()
    }

    #[tokio::test]
    async fn misdeeds_are_lines_and_pieces_of_them() {
        let answer = || Bytes::from_static(b"{\"a\":1}");
        let drip = Misdeed::Drip { answer: answer(), piece: 3, pause: Duration::from_millis(1) };
        let refused = Refused { status: 500, headers: Vec::new(), body: None, instead: Bytes::from_static(b"sorry") };
        let table = [
            (Misdeed::Answer(vec![answer(), Bytes::from_static(b"\xff")]), "{\"a\":1}\n\u{fffd}\n"),
            (Misdeed::Half(answer()), "{\"a"),
            (Misdeed::Noise(vec!["Listening".to_owned(), String::new()]), "Listening\n\n"),
            (drip, "{\"a\":1}\n"),
            (Misdeed::Refuse(refused), "sorry\n"),
        ];
        for (misdeed, expected) in table {
            assert_eq!(written(misdeed.clone()).await, expected, "{misdeed:?}");
        }
    }
}
