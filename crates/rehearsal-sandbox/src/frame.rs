//! Frames on the pipes between host and worker: the length as u32, little endian, and that many bytes of JSON.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The bytes of a frame with its length, or `None` if the JSON is longer than `limit`.
pub(crate) fn encode<T: Serialize>(message: &T, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - 4;
    if length > limit {
        return Ok(None);
    }
    let prefix = u32::try_from(length).map_err(io::Error::other)?.to_le_bytes();
    bytes[..4].copy_from_slice(&prefix);
    Ok(Some(bytes))
}

/// The length that a frame announces.
pub(crate) fn announced(prefix: [u8; 4]) -> usize {
    u32::from_le_bytes(prefix) as usize
}

/// Reads one frame; `None` at the end of the stream.
pub(crate) fn read<T: DeserializeOwned>(from: &mut impl Read, limit: usize) -> io::Result<Option<T>> {
    let mut prefix = [0; 4];
    match from.read_exact(&mut prefix) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = announced(prefix);
    if length > limit {
        return Err(io::Error::other(format!("a frame of {length} bytes exceeds {limit}")));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(Some(serde_json::from_slice(&bytes)?))
}

/// Writes one frame.
pub(crate) fn write<T: Serialize>(to: &mut impl Write, message: &T, limit: usize) -> io::Result<()> {
    let bytes = encode(message, limit)?.ok_or_else(|| io::Error::other(format!("a frame exceeds {limit} bytes")))?;
    to.write_all(&bytes)?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_its_length_and_its_json() {
        let bytes = encode(&"hi", 10).unwrap().unwrap();
        assert_eq!(bytes, b"\x04\0\0\0\"hi\"");
        assert_eq!(read::<String>(&mut &bytes[..], 10).unwrap().as_deref(), Some("hi"));
        assert_eq!(read::<String>(&mut &b""[..], 10).unwrap(), None);
        assert!(encode(&"hi", 3).unwrap().is_none());
        assert!(read::<String>(&mut &bytes[..], 3).is_err());
    }
}
