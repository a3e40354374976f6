//! Other strings of the same kind: words stay words, dates stay dates, paths keep their extension.

use super::dice::Dice;

/// How many characters of a string change at least, so that it is unique among the strings of a run.
const MIN_CHANGED: usize = 10;
/// How many digits a number in a string has at least: it may be the count of a loop.
const MIN_DIGITS: usize = 3;
/// By how many characters a longer string is longer.
const GROWTH: usize = 30;
/// Maximum length of an extension of a file.
const MAX_EXTENSION: usize = 5;

const VOWELS: &[u8] = b"aeiou";
const CONSONANTS: &[u8] = b"bdfgklmnprstvz";
const DIGITS: &[u8] = b"0123456789";
const HEX_DIGITS: &[u8] = b"0123456789abcdef";
/// The positions in a UUID that its version and variant fix.
const UUID_FIXED: [usize; 2] = [14, 19];

/// What becomes of the length of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// It stays.
    Same,
    /// A short string grows until it is unique.
    Unique,
    /// It is longer; a date is later.
    Longer,
    /// It stays; a date is earlier.
    Earlier,
}

/// Another string of the same kind, at most `most` characters long if it grows.
pub(super) fn vary_text(text: &str, dice: &mut Dice, growth: Growth, most: usize) -> String {
    if let Some(moment) = vary_moment(text, dice, growth) {
        return moment;
    }
    if is_ipv4(text) {
        let octets: Vec<String> = (0..4).map(|_| (1 + dice.below(254)).to_string()).collect();
        return octets.join(".");
    }
    vary_characters(text, dice, growth, most)
}

/// Replaces each letter and digit by another one of its kind, between the scheme of a URI and an extension.
fn vary_characters(text: &str, dice: &mut Dice, growth: Growth, most: usize) -> String {
    let start = scheme_length(text);
    let end = text.len() - extension_length(&text[start..]);
    let is_hex = is_hexadecimal(&text[start..end]);
    let is_uuid = is_uuid(text);
    let is_duration = is_duration(text);
    let mut varied = String::with_capacity(text.len() + GROWTH);
    varied.push_str(&text[..start]);
    let (mut changed, mut letters, mut last_changed, mut escaped) = (0, 0, start, 0);
    let mut follows_digit = false;
    for (at, character) in text[start..end].char_indices() {
        let starts_number = !follows_digit;
        follows_digit = character.is_ascii_digit();
        let byte = if character.is_ascii() { character as u8 } else { 0 };
        let other = match byte {
            _ if escaped > 0 => {
                escaped -= 1;
                None
            }
            b'%' => {
                escaped = 2;
                None
            }
            _ if is_uuid && UUID_FIXED.contains(&at) => None,
            _ if is_hex && byte.is_ascii_hexdigit() => {
                let other = dice.other(HEX_DIGITS, byte.to_ascii_lowercase());
                Some(if byte.is_ascii_uppercase() { other.to_ascii_uppercase() } else { other })
            }
            b'0' if starts_number && !text[start + at + 1..end].starts_with(|next: char| next.is_ascii_digit()) => {
                Some(dice.other(&DIGITS[1..], byte))
            }
            b'1'..=b'9' if starts_number => Some(dice.other(&DIGITS[1..], byte)),
            b'0'..=b'9' => Some(dice.other(DIGITS, byte)),
            _ if is_duration => None,
            b'a'..=b'z' => Some(other_letter(dice, byte)),
            b'A'..=b'Z' => Some(other_letter(dice, byte.to_ascii_lowercase()).to_ascii_uppercase()),
            _ => None,
        };
        match other {
            Some(other) => {
                varied.push(char::from(other));
                changed += 1;
                letters += usize::from(other.is_ascii_alphabetic());
                last_changed = varied.len();
            }
            None => varied.push(character),
        }
    }
    let only_digits = changed > 0 && letters == 0;
    let wanted = match growth {
        _ if is_hex || is_duration => 0,
        Growth::Same | Growth::Earlier => 0,
        Growth::Unique if only_digits => MIN_DIGITS,
        Growth::Unique => MIN_CHANGED,
        Growth::Longer if only_digits => changed + MIN_DIGITS,
        Growth::Longer => changed.max(MIN_CHANGED) + GROWTH,
    };
    if wanted > changed {
        let room = most.saturating_sub(text.chars().count());
        let added: String = (0..(wanted - changed).min(room))
            .map(|at| {
                let choices = match (only_digits, at % 2) {
                    (true, _) => DIGITS,
                    (false, 0) => CONSONANTS,
                    (false, _) => VOWELS,
                };
                char::from(choices[dice.below(choices.len())])
            })
            .collect();
        let place = if changed == 0 { varied.len() } else { last_changed };
        varied.insert_str(place, &added);
    }
    varied.push_str(&text[end..]);
    varied
}

fn other_letter(dice: &mut Dice, letter: u8) -> u8 {
    dice.other(if VOWELS.contains(&letter) { VOWELS } else { CONSONANTS }, letter)
}

/// The length of `https://` at the start.
fn scheme_length(text: &str) -> usize {
    let Some(end) = text.get(..16.min(text.len())).unwrap_or_default().find("://") else { return 0 };
    let is_scheme = text[..end].bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    if is_scheme { end + "://".len() } else { 0 }
}

/// The length of `.md` at the end, if something comes before it.
fn extension_length(text: &str) -> usize {
    let Some(dot) = text.rfind('.') else { return 0 };
    let extension = &text[dot + 1..];
    let is_extension = (1..=MAX_EXTENSION).contains(&extension.len())
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && extension.bytes().any(|byte| byte.is_ascii_alphabetic());
    let has_stem = text[..dot].ends_with(|last: char| last.is_alphanumeric());
    if is_extension && has_stem { extension.len() + 1 } else { 0 }
}

/// Whether this is a digest, a UUID or an IPv6 address: at least eight hexadecimal digits, among them a decimal one.
fn is_hexadecimal(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || b":-".contains(&byte);
    let has = |kind: fn(&u8) -> bool| text.bytes().any(|byte| kind(&byte));
    digits >= 8 && text.bytes().all(is_part) && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

fn is_uuid(text: &str) -> bool {
    let has_dash = |at: usize| text.as_bytes()[at] == b'-';
    text.len() == 36 && text.is_ascii() && [8, 13, 18, 23].into_iter().all(has_dash) && is_hexadecimal(text)
}

/// Whether this is a duration of ISO 8601, such as `PT1H30M`.
fn is_duration(text: &str) -> bool {
    let rest = text.strip_prefix('P').unwrap_or_default();
    let is_part = |byte: u8| byte.is_ascii_digit() || b"YMWDTHS.,".contains(&byte);
    rest.bytes().any(|byte| byte.is_ascii_digit()) && rest.bytes().all(is_part)
}

fn is_ipv4(text: &str) -> bool {
    text.len() <= 15 && text.parse::<std::net::Ipv4Addr>().is_ok()
}

/// Another date, time, or date with time; `None` for other strings.
fn vary_moment(text: &str, dice: &mut Dice, growth: Growth) -> Option<String> {
    let date = date_length(text);
    let (separator, time) = match text.get(date..date + 1) {
        None | Some("") if date > 0 => ("", ""),
        Some("T" | "t" | " ") if date > 0 => text[date..].split_at(1),
        _ if date == 0 => ("", text),
        _ => return None,
    };
    let clock = clock_length(time);
    if clock == 0 && (date == 0 || !time.is_empty()) {
        return None;
    }
    loop {
        let mut varied = String::with_capacity(text.len());
        if date > 0 {
            let year = match growth {
                Growth::Same | Growth::Unique => text[..4].parse().unwrap_or(2026),
                Growth::Longer => 2030 + dice.below(40),
                Growth::Earlier => 1970 + dice.below(10),
            };
            varied.push_str(&format!("{year:04}-{:02}-{:02}{separator}", 1 + dice.below(12), 1 + dice.below(28)));
        }
        if clock > 0 {
            varied.push_str(&format!("{:02}:{:02}", dice.below(24), dice.below(60)));
            if clock == "00:00:00".len() {
                varied.push_str(&format!(":{:02}", dice.below(60)));
            }
            varied.push_str(&time[clock..]);
        }
        if varied != text {
            return Some(varied);
        }
    }
}

/// The length of `2026-01-02` at the start.
fn date_length(text: &str) -> usize {
    if matches_mask(text, "dddd-dd-dd") { "dddd-dd-dd".len() } else { 0 }
}

/// The length of `03:04:05` or `03:04` at the start, if a fraction or a zone follows, or nothing.
fn clock_length(text: &str) -> usize {
    let clock = ["dd:dd:dd", "dd:dd"].into_iter().find(|mask| matches_mask(text, mask)).map_or(0, str::len);
    let rest = &text[clock..];
    let is_zone = |byte: u8| byte.is_ascii_digit() || b".:+-zZ".contains(&byte);
    if rest.bytes().all(is_zone) { clock } else { 0 }
}

/// Whether a text begins as a mask does, in which `d` is a digit.
fn matches_mask(text: &str, mask: &str) -> bool {
    let fits = |(byte, mask): (u8, u8)| if mask == b'd' { byte.is_ascii_digit() } else { byte == mask };
    text.len() >= mask.len() && text.bytes().zip(mask.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varied(text: &str, growth: Growth, seed: u64) -> String {
        vary_text(text, &mut Dice::new(seed), growth, usize::MAX)
    }

    /// Each letter, vowel and digit as a class: `title` is `cvccv`.
    fn shape(text: &str) -> String {
        let class = |character: char| match character {
            'a' | 'e' | 'i' | 'o' | 'u' => 'v',
            'a'..='z' => 'c',
            'A'..='Z' => 'L',
            '0'..='9' => 'd',
            other => other,
        };
        text.chars().map(class).collect()
    }

    #[test]
    fn every_letter_and_digit_changes_and_the_rest_stays() {
        for (text, expected) in [
            ("title", "cvccv"),
            ("Fix the build (#17)", "Lvc ccv cvvcc (#dd)"),
            ("a", "v"),
            ("0", "d"),
            ("AB-12", "LL-dd"),
            ("é😀", "é😀"),
        ] {
            let varied = varied(text, Growth::Same, 1);
            assert_eq!(shape(&varied), expected, "{text}: {varied}");
            for (one, other) in text.chars().zip(varied.chars()) {
                assert_eq!(one == other, !one.is_ascii_alphanumeric(), "{text}: {varied}");
            }
        }
    }

    #[test]
    fn a_short_string_grows_until_it_is_unique() {
        for (text, expected) in [
            ("a", "vcvcvcvcvc"),
            ("", "cvcvcvcvcv"),
            ("/a", "/vcvcvcvcvc"),
            ("/tmp/a.txt", "/ccc/vcvcvcv.ccc"),
            ("7", "ddd"),
            ("https://example.com/", "ccccc://vcvcccv.cvc/"),
            ("ada@example.com", "vcv@vcvcccv.cvc"),
        ] {
            let varied = varied(text, Growth::Unique, 3);
            assert_eq!(shape(&varied), expected, "{text}: {varied}");
        }
        let varied: std::collections::HashSet<String> =
            (0..10_000).map(|seed| varied("title", Growth::Unique, seed)).collect();
        assert_eq!(varied.len(), 10_000);
    }

    #[test]
    fn what_a_text_is_stays_as_it_is() {
        for (text, start, end) in [
            ("/srv/a.md", "/", ".md"),
            ("main.rs", "", ".rs"),
            ("https://example.com/a%2Fb", "https://", ""),
            ("ada@example.com", "", ".com"),
            ("v1.2.3", "", ""),
            (".env", ".", ""),
        ] {
            for growth in [Growth::Same, Growth::Unique, Growth::Longer] {
                let varied = varied(text, growth, 5);
                assert!(varied.starts_with(start) && varied.ends_with(end) && varied != text, "{text}: {varied}");
            }
        }
        assert!(varied("https://example.com/a%2Fb", Growth::Same, 1).contains("%2F"));
        assert_eq!(shape(&varied("3.14", Growth::Unique, 1)), "d.dd");
        assert!(varied("1.5", Growth::Same, 1).parse::<f64>().is_ok());
    }

    #[test]
    fn a_format_stays_valid() {
        for seed in 0..200 {
            for growth in [Growth::Same, Growth::Unique, Growth::Longer, Growth::Earlier] {
                for text in ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123+02:00"] {
                    let varied = varied(text, growth, seed);
                    assert!(varied != text && varied.parse::<jiff::Timestamp>().is_ok(), "{varied}");
                }
                let date = varied("2026-01-02", growth, seed);
                assert!(date != "2026-01-02" && date.parse::<jiff::civil::Date>().is_ok(), "{date}");
                let time = varied("03:04:05", growth, seed);
                assert!(time != "03:04:05" && time.parse::<jiff::civil::Time>().is_ok(), "{time}");
                let address = varied("192.0.2.1", growth, seed);
                assert!(address.parse::<std::net::Ipv4Addr>().is_ok(), "{address}");
                let address = varied("2001:db8:0:1::5", growth, seed);
                assert!(address.parse::<std::net::Ipv6Addr>().is_ok(), "{address}");
                let uuid = varied("6f1c9a2e-3b4d-4c5e-8f70-123456789abc", growth, seed);
                assert!(is_uuid(&uuid) && uuid[14..].starts_with('4') && uuid[19..].starts_with('8'), "{uuid}");
                let duration = varied("PT1H30M", growth, seed);
                assert!(duration != "PT1H30M" && shape(&duration) == "LLdLddL", "{duration}");
            }
        }
        assert!(varied("2026-01-02", Growth::Longer, 1).as_str() > "2030");
        assert!(varied("2026-01-02", Growth::Earlier, 1).as_str() < "1980");
    }

    #[test]
    fn growth_ends_at_the_maximum_length() {
        let mut dice = Dice::new(1);
        assert_eq!(vary_text("title", &mut dice, Growth::Longer, 8).chars().count(), 8);
        assert_eq!(vary_text("title", &mut dice, Growth::Longer, 3).chars().count(), 5);
        assert_eq!(varied("title", Growth::Longer, 1).chars().count(), MIN_CHANGED + GROWTH);
    }
}
