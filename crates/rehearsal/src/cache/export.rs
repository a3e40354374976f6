//! The cache as JSON lines, which an import reads back.
//!
//! ```text
//! {"rehearse_cache":1}
//! {"catalogue":{"server":"fs","at_ms":1795131585193,"tools":[…]}}
//! {"answer":{"server":"fs","tool":"list","arguments":{},…,"result":{…}}}
//! ```

use std::io::{self, BufRead, Write};

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Reply};
use serde_json::{Value, json};

use super::cache::Cache;
use super::entry::{AnswerSharing, CacheEntry, CacheFilter, CachedAnswer, ToolSchemaHash, reply_text};
use super::error::CacheError;
use super::import::Imported;

/// The version of the lines, in the first one.
const VERSION: u64 = 1;
/// The member of the first line.
const MARK: &str = "rehearse_cache";
/// How many results are stored in one transaction.
const BATCH: usize = 500;

/// Why an export cannot be written or imported.
#[derive(thiserror::Error)]
pub enum ExportError {
    /// The lines cannot be read or written.
    #[error(transparent)]
    Stream(#[from] io::Error),
    /// A line is not one of an export.
    #[error("line {line}: {reason}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The reason.
        reason: String,
    },
    /// The cache cannot be read or written.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

debug_as_display!(ExportError);

/// Writes the results that fit a filter, oldest first for each tool, after the lists of tools of their servers.
pub fn export(cache: &Cache, filter: &CacheFilter, out: &mut dyn Write) -> Result<usize, ExportError> {
    let mut answers = cache.list_answers(filter)?;
    answers.reverse();
    writeln!(out, "{}", json!({ MARK: VERSION }))?;
    for server in cache.catalogues()? {
        if filter.server.as_ref().is_some_and(|only| *only != server) {
            continue;
        }
        if let Some(saved) = cache.catalogue(&server)? {
            let line = json!({"catalogue": {"server": server, "at_ms": saved.at_ms, "tools": saved.tools}});
            writeln!(out, "{line}")?;
        }
    }
    for answer in &answers {
        writeln!(out, "{}", answer_line(answer))?;
    }
    Ok(answers.len())
}

/// The line of an answer. Its reply keeps every byte but line breaks, which are between the tokens of JSON only.
fn answer_line(answer: &CachedAnswer) -> String {
    let CachedAnswer { entry, principal, sharing, schema } = answer;
    let members = json!({
        "server": entry.server,
        "tool": entry.tool,
        "arguments": entry.arguments,
        "at_ms": entry.at_ms,
        "latency_ms": entry.latency_ms,
        "run": entry.run,
        "sequence": entry.sequence,
        "principal": principal,
        "shared": *sharing == AnswerSharing::Shared,
        "schema": schema.map(|schema| schema.to_string()),
    });
    let members = members.to_string();
    let name = match &entry.reply {
        Reply::Result(_) => "result",
        Reply::Error(_) => "error",
    };
    let reply = reply_text(&entry.reply).replace(['\n', '\r'], " ");
    let members = members.strip_suffix('}').unwrap_or(&members);
    format!("{{\"answer\":{members},\"{name}\":{reply}}}}}")
}

/// Whether a text begins like an export.
pub fn is_export(beginning: &[u8]) -> bool {
    let beginning = beginning.trim_ascii_start();
    let rest = beginning.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    rest.is_some_and(|rest| rest.starts_with(format!("\"{MARK}\"").as_bytes()))
}

/// Imports the lines of an export. Each result keeps its principal, unless `principal` names another.
pub fn import_export(cache: &Cache, lines: impl BufRead, principal: Option<&str>) -> Result<Imported, ExportError> {
    let mut imported = Imported::default();
    let mut batch = Vec::new();
    for (number, line) in (1..).zip(lines.lines()) {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |reason: String| ExportError::Line { line: number, reason };
        let object = RawJson::parse(line.as_bytes()).map_err(|error| wrong(error.to_string()))?;
        if let Some(version) = object.field(MARK) {
            let found = version.value().ok().and_then(|version| version.as_u64());
            if found != Some(VERSION) {
                let message = format!("this program reads exports of version {VERSION}, not {}", version.as_str());
                return Err(wrong(message));
            }
        } else if let Some(catalogue) = object.field("catalogue") {
            let (server, tools, at_ms) = catalogue_of(&catalogue).map_err(wrong)?;
            cache.save_catalogue(&server, &tools, at_ms)?;
            imported.servers.insert(server.clone());
            imported.catalogues.insert(server);
        } else if let Some(answer) = object.field("answer") {
            let mut answer = answer_of(&answer).map_err(wrong)?;
            if let Some(principal) = principal {
                principal.clone_into(&mut answer.principal);
            }
            imported.servers.insert(answer.entry.server.clone());
            batch.push(answer);
        } else {
            return Err(wrong("expected an object with catalogue or answer".to_owned()));
        }
        if batch.len() >= BATCH {
            flush(cache, &mut batch, &mut imported)?;
        }
    }
    flush(cache, &mut batch, &mut imported)?;
    Ok(imported)
}

fn flush(cache: &Cache, batch: &mut Vec<CachedAnswer>, imported: &mut Imported) -> Result<(), CacheError> {
    let added = cache.put_answers(batch)?;
    imported.added += added;
    imported.known += batch.len() - added;
    batch.clear();
    Ok(())
}

fn catalogue_of(catalogue: &RawJson) -> Result<(String, Vec<Value>, u64), String> {
    let tools = match member(catalogue, "tools")? {
        Value::Array(tools) => tools,
        _ => return Err("tools must be an array".to_owned()),
    };
    Ok((text(catalogue, "server")?, tools, whole(catalogue, "at_ms")?))
}

fn answer_of(answer: &RawJson) -> Result<CachedAnswer, String> {
    let reply = match (answer.field("result"), answer.field("error")) {
        (Some(result), None) => Reply::Result(result),
        (None, Some(error)) => match error.value() {
            Ok(Value::Object(object)) => Reply::Error(ErrorReply::new(0, "").with_object(object)),
            _ => return Err("error must be an object".to_owned()),
        },
        _ => return Err("expected either result or error".to_owned()),
    };
    let schema = match answer.field("schema").filter(|schema| !schema.is_null()) {
        Some(schema) => {
            let hash = schema.text().and_then(|text| ToolSchemaHash::parse(&text));
            Some(hash.ok_or("schema must be 64 hexadecimal digits")?)
        }
        None => None,
    };
    let sharing = match member(answer, "shared")? {
        Value::Bool(true) => AnswerSharing::Shared,
        Value::Bool(false) => AnswerSharing::Private,
        _ => return Err("shared must be true or false".to_owned()),
    };
    let entry = CacheEntry {
        server: text(answer, "server")?,
        tool: text(answer, "tool")?,
        arguments: member(answer, "arguments")?,
        reply,
        run: text(answer, "run")?,
        sequence: whole(answer, "sequence")?,
        at_ms: whole(answer, "at_ms")?,
        latency_ms: member(answer, "latency_ms")?.as_f64(),
    };
    Ok(CachedAnswer { entry, principal: text(answer, "principal")?, sharing, schema })
}

fn member(object: &RawJson, name: &str) -> Result<Value, String> {
    let value = object.field(name).ok_or_else(|| format!("{name} is missing"))?;
    value.value().map_err(|error| format!("{name}: {error}"))
}

fn text(object: &RawJson, name: &str) -> Result<String, String> {
    member(object, name)?.as_str().map(str::to_owned).ok_or_else(|| format!("{name} must be text"))
}

fn whole(object: &RawJson, name: &str) -> Result<u64, String> {
    member(object, name)?.as_u64().ok_or_else(|| format!("{name} must be a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{ArgumentsKey, PrincipalFilter};

    fn all() -> CacheFilter {
        CacheFilter { principals: PrincipalFilter::All, ..CacheFilter::default() }
    }

    fn lines(cache: &Cache) -> String {
        let mut out = Vec::new();
        export(cache, &all(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn imported(text: &str) -> Cache {
        let cache = Cache::in_memory().unwrap();
        import_export(&cache, text.as_bytes(), None).unwrap();
        cache
    }

    #[test]
    fn an_export_is_imported_as_it_was_written() {
        let cache = Cache::in_memory().unwrap();
        cache.save_catalogue("fs", &[json!({"name": "list", "inputSchema": {"type": "object"}})], 7).unwrap();
        let raw = |text: &str| Reply::Result(RawJson::parse(text.as_bytes()).unwrap());
        let entry = |sequence, reply| CacheEntry {
            server: "fs".to_owned(),
            tool: "list".to_owned(),
            arguments: json!({"path": {"deep": {}}}),
            reply,
            run: "run".to_owned(),
            sequence,
            at_ms: 1000 + sequence,
            latency_ms: Some(1.5),
        };
        let error = Reply::Error(ErrorReply::new(-32000, "no {such} folder"));
        let exact = "{\"content\": [],\n \"n\": 1.00000000000000000001}";
        cache.put(&[entry(0, raw(exact)), entry(1, error)]).unwrap();
        let other = cache.for_principal("other");
        other.put(&[entry(2, raw(r#"{"content":[],"cacheScope":"public"}"#))]).unwrap();
        let text = lines(&other);
        assert!(is_export(text.as_bytes()) && text.contains("1.00000000000000000001"), "{text}");
        let copy = imported(&text);
        assert_eq!(lines(&copy), text);
        assert_eq!(copy.catalogue("fs").unwrap(), other.catalogue("fs").unwrap());
        assert_eq!(import_export(&copy, text.as_bytes(), None).unwrap().known, 3, "the second import adds nothing");
    }

    #[test]
    fn the_kept_export_of_version_1_is_imported() {
        let text = include_str!("../../../../fixtures/caches/export_1.jsonl");
        assert!(is_export(text.as_bytes()));
        let cache = imported(text);
        let key = ArgumentsKey::new(&json!({"path": "/a"}));
        assert_eq!(cache.results("files", "read_file", key).unwrap().len(), 1);
        assert!(cache.catalogue("files").unwrap().is_some());
    }

    #[test]
    fn a_wrong_line_is_named() {
        let cache = Cache::in_memory().unwrap();
        for (text, expected) in [
            ("{\"rehearse_cache\":2}", "line 1: this program reads exports of version 1, not 2"),
            ("{\"rehearse_cache\":1}\n{}", "line 2: expected an object with catalogue or answer"),
            ("{\"rehearse_cache\":1}\n\n{\"answer\":{\"result\":{}}}", "line 3: shared is missing"),
        ] {
            assert_eq!(import_export(&cache, text.as_bytes(), None).unwrap_err().to_string(), expected);
        }
    }
}
