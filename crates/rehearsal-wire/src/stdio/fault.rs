//! Faults of a server on its own stdout and stderr.

use std::fs::File;
use std::io::{self, Write};

use bytes::{BufMut, Bytes, BytesMut};
use rehearsal_core::transport_fault::{AfterFault, DisconnectAt, TransportFault, first_half};

use super::line_writer::LineWriter;
use crate::SendError;

/// Carries out a fault. After a fault that ends the connection, nothing more reaches the client.
pub(super) async fn inject(writer: &LineWriter, fault: TransportFault) -> Result<AfterFault, SendError> {
    match fault {
        TransportFault::RawAnswers(answers) => {
            for answer in answers {
                writer.bytes(&line(&answer)).await?;
            }
        }
        TransportFault::Truncate(answer) => writer.bytes(&first_half(&answer)).await?,
        TransportFault::Disconnect { answer, at } => {
            match at {
                DisconnectAt::Before => {}
                DisconnectAt::During => writer.bytes(&first_half(&answer)).await?,
                DisconnectAt::After => writer.bytes(&line(&answer)).await?,
            }
            return close_stdout(writer).await;
        }
        TransportFault::Noise(lines) => {
            for noise in lines {
                writer.bytes(&line(noise.as_bytes())).await?;
            }
        }
        TransportFault::Flood(bytes) => {
            // If the client does not read stderr, this write blocks. That is the fault; the runtime must not block with
            // it.
            let flooded = tokio::task::spawn_blocking(move || flood(&mut io::stderr().lock(), bytes)).await;
            // If the client closed stderr, the rest is not written.
            let _ = flooded;
        }
        TransportFault::SlowWrite { answer, piece, pause } => writer.write_slowly(&line(&answer), piece, pause).await?,
        TransportFault::HttpStatus(refused) => writer.bytes(&line(&refused.fallback_error)).await?,
        TransportFault::CutStream(answer) => {
            writer.bytes(&first_half(&answer)).await?;
            return close_stdout(writer).await;
        }
        TransportFault::ContentType { answer, .. } => writer.bytes(&line(&answer)).await?,
    }
    Ok(AfterFault::Continue)
}

/// Returns the bytes with a line end.
fn line(bytes: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(bytes.len() + 1);
    line.put_slice(bytes);
    line.put_u8(b'\n');
    line.freeze()
}

/// Closes stdout for good: otherwise it stays open as long as the process runs.
async fn close_stdout(writer: &LineWriter) -> Result<AfterFault, SendError> {
    writer.close().await;
    let closed = File::options().write(true).open("/dev/null").and_then(|null| Ok(nix::unistd::dup2_stdout(null)?));
    closed.map_err(|error| SendError::Failed { why: error.to_string() })?;
    Ok(AfterFault::Closed)
}

/// Writes this number of bytes as lines.
fn flood(to: &mut impl Write, mut bytes: u64) -> io::Result<()> {
    let noise = b"this line is only a flood, and there is more of it\n".repeat(80);
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
    use rehearsal_core::transport_fault::HttpRefusal;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;
    use tokio::io::AsyncReadExt;

    #[test]
    fn a_flood_has_the_requested_length() {
        for bytes in [0, 1, 4079, 4080, 4081, 100_000] {
            let mut flooded = Vec::new();
            flood(&mut flooded, bytes).unwrap();
            assert_eq!(flooded.len() as u64, bytes);
        }
    }

    /// Returns what a client reads. Faults that close our own stdout cannot be tested in this process.
    async fn written(fault: TransportFault) -> String {
        let (near, mut far) = tokio::io::duplex(1024);
        let writer = LineWriter::new(near, Arc::new(AtomicBool::new(true)));
        assert_eq!(inject(&writer, fault).await.unwrap(), AfterFault::Continue);
        writer.close().await;
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        String::from_utf8_lossy(&read).into_owned()
    }

    #[tokio::test]
    async fn a_fault_writes_lines_or_parts_of_lines() {
        let answer = || Bytes::from_static(b"{\"a\":1}");
        let drip = TransportFault::SlowWrite { answer: answer(), piece: 3, pause: Duration::from_millis(1) };
        let refused =
            HttpRefusal { status: 500, headers: Vec::new(), body: None, fallback_error: Bytes::from_static(b"sorry") };
        let table = [
            (TransportFault::RawAnswers(vec![answer(), Bytes::from_static(b"\xff")]), "{\"a\":1}\n\u{fffd}\n"),
            (TransportFault::Truncate(answer()), "{\"a"),
            (TransportFault::Noise(vec!["Listening".to_owned(), String::new()]), "Listening\n\n"),
            (drip, "{\"a\":1}\n"),
            (TransportFault::HttpStatus(refused), "sorry\n"),
        ];
        for (fault, expected) in table {
            assert_eq!(written(fault.clone()).await, expected, "{fault:?}");
        }
    }
}
