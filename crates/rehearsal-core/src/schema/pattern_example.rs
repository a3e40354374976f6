//! Strings that match a regular expression.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Maximum length of a string, in bytes.
const MAX_LENGTH: usize = 10_000;
/// Maximum depth of groups.
const MAX_DEPTH: u32 = 64;
/// Characters that are preferred if a class has several.
const PREFERRED: &str = "a1A b2B_c3C-d4D.e5Exyz0/:@XYZ!#$%&*+,;<=>?[]^`{|}~'\"\\()";

/// A parsed regular expression from which strings are built.
pub(super) struct PatternSampler {
    plain: Hir,
    lookaheads: Vec<Hir>,
}

impl PatternSampler {
    /// Parses a regular expression; `None` if its syntax is unsupported.
    pub(super) fn new(pattern: &str) -> Option<PatternSampler> {
        let (plain, lookaheads) = without_lookaheads(pattern)?;
        let parse = |pattern: &str| ParserBuilder::new().nest_limit(MAX_DEPTH).build().parse(pattern).ok();
        let lookaheads: Option<Vec<_>> = lookaheads.iter().map(|lookahead| parse(lookahead)).collect();
        Some(PatternSampler { plain: parse(&plain)?, lookaheads: lookaheads? })
    }

    /// Returns a string, the shortest for variant 0; `None` if it would be too long.
    ///
    /// Each variant takes other alternatives, characters and repetitions. `stretch` adds that many repetitions where
    /// they are allowed. Even variants begin with the contents of look-aheads, so samples must be checked.
    pub(super) fn sample(&self, variant: usize, stretch: usize) -> Option<String> {
        let mut text = String::new();
        let mut walk = Walk { variant, stretch, text: &mut text };
        let lookaheads = self.lookaheads.iter().filter(|_| variant.is_multiple_of(2));
        lookaheads.chain([&self.plain]).try_for_each(|pattern| walk.append(pattern))?;
        Some(text)
    }
}

/// Splits a pattern into itself without look-aheads, and the contents of its positive ones.
fn without_lookaheads(pattern: &str) -> Option<(String, Vec<String>)> {
    let (mut plain, mut found) = (pattern.to_owned(), Vec::new());
    while let Some(start) = plain.find("(?=").or_else(|| plain.find("(?!")) {
        let mut open = 0;
        let mut is_escaped = false;
        let end = plain[start..].char_indices().find(|(_, character)| {
            let is_literal = is_escaped;
            is_escaped = !is_escaped && *character == '\\';
            match character {
                '(' if !is_literal => open += 1,
                ')' if !is_literal => open -= 1,
                _ => {}
            }
            open == 0
        });
        let end = start + end?.0;
        if plain[start..].starts_with("(?=") {
            found.push(plain[start + 3..end].to_owned());
        }
        plain.replace_range(start..=end, "");
    }
    Some((plain, found))
}

/// A walk through a pattern that appends one sample to a text.
struct Walk<'a> {
    variant: usize,
    stretch: usize,
    text: &'a mut String,
}

impl Walk<'_> {
    /// Returns a number below `count`, by the variant.
    fn choose(&mut self, count: usize) -> usize {
        let chosen = self.variant % count.max(1);
        self.variant /= count.max(1);
        chosen
    }

    fn append(&mut self, pattern: &Hir) -> Option<()> {
        if self.text.len() > MAX_LENGTH {
            return None;
        }
        match pattern.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            // Repeated empty matches would cost time and add nothing.
            HirKind::Repetition(_) if pattern.properties().maximum_len() == Some(0) => {}
            HirKind::Literal(literal) => self.text.push_str(std::str::from_utf8(&literal.0).ok()?),
            HirKind::Class(Class::Unicode(class)) => {
                let is_member =
                    |wanted: char| class.iter().any(|range| (range.start()..=range.end()).contains(&wanted));
                let mut members: Vec<char> = PREFERRED.chars().filter(|wanted| is_member(*wanted)).collect();
                if members.is_empty() {
                    members.extend(class.iter().map(|range| range.start()));
                }
                let chosen = self.choose(members.len());
                self.text.push(*members.get(chosen)?);
            }
            HirKind::Class(Class::Bytes(class)) => self.text.push(char::from(class.iter().next()?.start())),
            HirKind::Repetition(repetition) => {
                let least = repetition.min as usize;
                let most = repetition.max.map_or(usize::MAX, |most| most as usize);
                let longer = if self.stretch > 0 { 0 } else { self.choose((most - least).min(2) + 1) };
                let added = self.stretch.min(most - least);
                self.stretch -= added;
                for _ in 0..least + longer + added {
                    self.append(&repetition.sub)?;
                }
            }
            HirKind::Capture(capture) => self.append(&capture.sub)?,
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| self.append(part))?,
            HirKind::Alternation(parts) => {
                let chosen = self.choose(parts.len());
                self.append(&parts[chosen])?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variant_of_a_sample_matches_its_pattern() {
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
            "^\\p{Lu}\\S$",
        ] {
            let sampler = PatternSampler::new(pattern).unwrap_or_else(|| panic!("{pattern}"));
            for variant in 0..20 {
                let sample = sampler.sample(variant, 0).unwrap_or_else(|| panic!("{pattern}"));
                assert!(regex::Regex::new(pattern).unwrap().is_match(&sample), "{pattern}: {sample:?}");
            }
        }
    }

    fn sample(pattern: &str, variant: usize, stretch: usize) -> Option<String> {
        PatternSampler::new(pattern)?.sample(variant, stretch)
    }

    #[test]
    fn a_stretched_sample_is_longer_and_matches() {
        let stretched = sample("^a\\d+b*$", 0, 20).unwrap();
        assert!(stretched.len() >= 20 && regex::Regex::new("^a\\d+b*$").unwrap().is_match(&stretched), "{stretched}");
    }

    #[test]
    fn the_contents_of_look_aheads_come_first() {
        assert_eq!(sample("^(?=.*\\d)(?!x).{3,}$", 0, 0), Some("1aaa".to_owned()));
    }

    #[test]
    fn unsupported_patterns_have_no_sample() {
        for pattern in ["\\1", "(", "[a", "a{99999999}", "*", "(?=a", "(?<=a)b"] {
            assert_eq!(sample(pattern, 0, 0), None, "{pattern}");
        }
    }
}
