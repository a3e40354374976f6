//! The parameters of an address.

/// A parameter of a query, as it is meant.
pub(super) fn parameter(url: &str, name: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let pairs = query.split(['&', '#']).filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| *key == name).map(|(_, value)| decoded(value)).next()
}

/// A text as the value of a parameter.
pub(super) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn decoded(text: &str) -> String {
    let bytes = text.replace('+', " ").into_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match (bytes[at], hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                plain.push(byte);
                at += 3;
            }
            (byte, _) => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_back() {
        assert_eq!(encoded("a b/ü~"), "a%20b%2F%C3%BC~");
        assert_eq!(decoded("100%&%zz%C3%BC"), "100%&%zzü");
        let url = format!("http://h/?x=1&y={}#z=3", encoded("a&b=c+d"));
        assert_eq!(parameter(&url, "y").as_deref(), Some("a&b=c+d"));
        assert_eq!(parameter("http://h/", "x"), None);
    }
}
