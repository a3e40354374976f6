//! Builds strings for a schema: by format, by pattern, by length.

/// A string of a `format`.
pub(super) fn of_format(format: &str) -> Option<&'static str> {
    Some(match format {
        "date-time" => "2026-01-02T03:04:05Z",
        "date" => "2026-01-02",
        "time" => "03:04:05Z",
        "duration" => "PT1H",
        "email" | "idn-email" => "ada@example.com",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "iri" | "uri-reference" | "iri-reference" | "url" => "https://example.com/",
        "uri-template" => "https://example.com/{id}",
        "uuid" => "6f1c9a2e-3b4d-4c5e-8f70-123456789abc",
        "json-pointer" => "/a",
        "relative-json-pointer" => "0/a",
        "regex" => "^a$",
        _ => return None,
    })
}

/// A string that matches a regular expression; `None` if the expression uses unsupported syntax.
///
/// It supports literals, escapes, classes, groups, alternatives and repetitions, and builds the shortest match.
pub(super) fn of_pattern(pattern: &str) -> Option<String> {
    let mut reader = PatternReader { rest: pattern.chars().collect(), at: 0, depth: 0 };
    let text = reader.alternatives()?;
    (reader.at == reader.rest.len()).then_some(text)
}

/// Maximum depth of groups.
const DEPTH: usize = 32;
/// Maximum length of a string, in bytes.
const LENGTH: usize = 10_000;

struct PatternReader {
    rest: Vec<char>,
    at: usize,
    depth: usize,
}

impl PatternReader {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    fn take_if(&mut self, wanted: char) -> bool {
        let is = self.peek() == Some(wanted);
        self.at += usize::from(is);
        is
    }

    /// The first of `a|b`; the others are skipped.
    fn alternatives(&mut self) -> Option<String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let first = self.sequence()?;
        while self.take_if('|') {
            self.sequence()?;
        }
        self.depth -= 1;
        Some(first)
    }

    fn sequence(&mut self) -> Option<String> {
        let mut text = String::new();
        while let Some(next) = self.peek().filter(|next| !"|)".contains(*next)) {
            if next == '^' || next == '$' {
                self.at += 1;
                continue;
            }
            let piece = self.atom()?;
            let times = self.repetition()?;
            if piece.len().checked_mul(times)?.checked_add(text.len())? > LENGTH {
                return None;
            }
            text.push_str(&piece.repeat(times));
        }
        Some(text)
    }

    fn atom(&mut self) -> Option<String> {
        match self.take()? {
            '(' => {
                if self.take_if('?') {
                    match self.take()? {
                        ':' => {}
                        // A named group; look-behind is not supported.
                        '<' if !matches!(self.peek(), Some('=' | '!')) => while self.take()? != '>' {},
                        _ => return None,
                    }
                }
                let inner = self.alternatives()?;
                self.take_if(')').then_some(inner)
            }
            '[' => self.class().map(String::from),
            '\\' => match self.take()? {
                'b' | 'B' => Some(String::new()),
                escaped => escape(escaped).map(String::from),
            },
            '.' => Some("a".to_owned()),
            '*' | '+' | '?' | '{' => None,
            literal => Some(literal.to_string()),
        }
    }

    /// A character of `[a-z0-9]`, or one that is not in `[^…]`.
    fn class(&mut self) -> Option<char> {
        let negated = self.take_if('^');
        let mut ranges = Vec::new();
        loop {
            let first = match self.take()? {
                ']' if !ranges.is_empty() => break,
                '\\' => escape(self.take()?)?,
                first => first,
            };
            let last = if self.peek() == Some('-') && self.rest.get(self.at + 1).is_some_and(|next| *next != ']') {
                self.at += 1;
                self.take()?
            } else {
                first
            };
            ranges.push((first, last));
        }
        if !negated {
            return ranges.first().map(|(first, _)| *first);
        }
        let is_out = |candidate: &char| !ranges.iter().any(|(first, last)| (first..=last).contains(&candidate));
        "a0 _-".chars().chain('!'..='~').find(is_out)
    }

    /// The minimum number of repetitions.
    fn repetition(&mut self) -> Option<usize> {
        let times = match self.peek() {
            Some('*' | '?') => {
                self.at += 1;
                0
            }
            Some('+') => {
                self.at += 1;
                1
            }
            Some('{') => {
                self.at += 1;
                let mut least = String::new();
                loop {
                    match self.take()? {
                        '}' => break,
                        ',' => while self.take()? != '}' {},
                        digit => {
                            least.push(digit);
                            continue;
                        }
                    }
                    break;
                }
                least.parse().ok()?
            }
            Some(_) | None => return Some(1),
        };
        // A lazy repetition has the same minimum.
        self.take_if('?');
        Some(times)
    }
}

fn escape(escaped: char) -> Option<char> {
    Some(match escaped {
        'd' => '1',
        'w' => 'a',
        's' => ' ',
        'D' | 'S' => 'a',
        'W' => ' ',
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        letter if letter.is_ascii_alphanumeric() => return None,
        literal => literal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_found_by_its_pattern() {
        for pattern in [
            "^[A-Z]{3}-\\d{2,4}$",
            "^(foo|bar)+$",
            "^(?:a|b)?c$",
            "[^a-z]x",
            "^\\w+@\\w+\\.com$",
            "^.{5}$",
            "^[\\-_]+$",
            "^$",
            "a\\.b",
            "^(?<year>\\d{4})$",
        ] {
            let sample = of_pattern(pattern).unwrap_or_else(|| panic!("{pattern}"));
            assert!(regex::Regex::new(pattern).unwrap().is_match(&sample), "{pattern}: {sample:?}");
        }
    }

    #[test]
    fn unsupported_patterns_have_no_example() {
        for pattern in ["(?=a)b", "(?!a)b", "\\1", "(", "[a", "a{99999999}", "*"] {
            assert_eq!(of_pattern(pattern), None, "{pattern}");
        }
    }
}
