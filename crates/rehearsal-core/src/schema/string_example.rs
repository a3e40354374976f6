//! Strings for a schema: by format, by pattern, by length.

use serde_json::Value;

use super::generator::MAX_VALUES;
use super::pattern_example::PatternSampler;
use super::shape::SchemaShape;

/// Maximum length of a string, in characters: a schema that requires more has no example.
pub(super) const MAX_LENGTH: usize = 10_000;
/// Maximum number of samples of one pattern.
const MAX_SAMPLES: usize = 256;

/// Returns strings within the bounds, the likeliest first. `is_match` checks a text with a `pattern`.
pub(super) fn strings(
    shape: &SchemaShape<'_>,
    name: Option<&str>,
    is_match: &dyn Fn(&str, &str) -> bool,
) -> impl Iterator<Item = Value> {
    let (least, most) = (shape.at_least("minLength"), shape.at_most("maxLength"));
    let fitted = move |text: &str| {
        let text: String = text.chars().take(most).collect();
        let missing = least.saturating_sub(text.chars().count());
        format!("{text}{}", "x".repeat(missing))
    };
    let patterns: Vec<&str> = shape.all("pattern").filter_map(Value::as_str).collect();
    let samplers: Vec<PatternSampler> = patterns.iter().filter_map(|pattern| PatternSampler::new(pattern)).collect();
    let formats = shape.all("format").filter_map(Value::as_str);
    let mut likely: Vec<String> = formats.filter_map(format_example).map(str::to_owned).collect();
    likely.extend(likely.iter().map(|text| fitted(text)).collect::<Vec<_>>());
    if patterns.len() > 1 {
        // A start and an end are often in patterns of their own.
        let samples = || samplers.iter().filter_map(|sampler| sampler.sample(0, 0));
        likely.extend([samples().collect(), samples().rev().collect()]);
    }
    if !patterns.is_empty() {
        likely.retain(|text| patterns.iter().all(|pattern| is_match(pattern, text)));
    }
    let samples = move |variant| -> Vec<String> {
        let of_sampler = |sampler: &PatternSampler| {
            let text = sampler.sample(variant, 0)?;
            // Repetitions are longer until the text has the minimum length.
            let missing = least.saturating_sub(text.chars().count());
            let longer = if missing > 0 { sampler.sample(variant, missing) } else { None };
            Some(longer.into_iter().chain([fitted(&text)]))
        };
        samplers.iter().filter_map(of_sampler).flatten().collect()
    };
    let count = if patterns.is_empty() { 0 } else { MAX_SAMPLES };
    let usual = name.unwrap_or("text").to_owned();
    let common = [fitted(&usual), String::new(), "a".to_owned()];
    let numbered = (1..MAX_VALUES).map(move |number| {
        let number = number.to_string();
        let room = most.saturating_sub(number.len()).min(least.max(usual.chars().count()));
        let text: String = fitted(&usual).chars().take(room).collect();
        format!("{text}{number}")
    });
    likely.into_iter().chain((0..count).flat_map(samples)).chain(common).chain(numbered).map(Value::from)
}

/// A string of a `format`.
fn format_example(format: &str) -> Option<&'static str> {
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
