//! What every store of the cache must do. [`store_tests`] makes the tests for one store.

use rehearsal_core::json::RawJson;
use rehearsal_core::message::Reply;
use serde_json::{Value, json};

use super::*;

/// Makes the tests for a store; `$new` returns an empty one, and whatever must live as long as it.
macro_rules! store_tests {
    ($module:ident, $new:expr, [$($name:ident),* $(,)?]) => {
        mod $module {
            $(
                #[test]
                fn $name() {
                    let (store, _guard) = $new;
                    super::$name(super::Cache::new(store));
                }
            )*
        }
    };
}

macro_rules! every_store {
    ($($name:ident),* $(,)?) => {
        store_tests!(sqlite_in_memory, (crate::cache::sqlite::SqliteStore::in_memory().unwrap(), ()), [$($name),*]);
        store_tests!(
            sqlite_file,
            {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("new/cache.sqlite");
                (crate::cache::sqlite::SqliteStore::open(&path).unwrap(), folder)
            },
            [$($name),*]
        );
    };
}

every_store!(
    repeated_calls_get_the_results_of_the_newest_run_in_its_order,
    a_result_is_stored_once_for_each_principal,
    an_error_of_a_newer_run_answers,
    purge_removes_what_the_filter_names,
    private_results_are_never_answered_to_another_principal,
    an_older_version_answers_as_of_its_time,
    old_versions_are_removed,
    results_beyond_the_limits_are_removed,
    results_keep_the_schemas_of_their_tools,
    the_newest_catalogue_is_kept,
    stats_count_by_tool,
);

fn result(result: Value) -> Reply {
    Reply::Result(RawJson::from_value(&result))
}

fn entry(run: &str, sequence: u64, text: &str) -> CacheEntry {
    CacheEntry {
        server: "fs".to_owned(),
        tool: "list".to_owned(),
        arguments: json!({"path": "/srv"}),
        reply: result(json!({"content": [{"type": "text", "text": text}]})),
        run: run.to_owned(),
        sequence,
        at_ms: 1000 + sequence,
        latency_ms: Some(10.0),
    }
}

fn key() -> ArgumentsKey {
    ArgumentsKey::new(&json!({"path": "/srv"}))
}

fn texts(cache: &Cache) -> Vec<String> {
    let text = |found: CacheEntry| {
        let Reply::Result(result) = found.reply else { panic!("an error") };
        result.value().unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
    };
    cache.results("fs", "list", key()).unwrap().into_iter().map(text).collect()
}

fn count(cache: &Cache) -> usize {
    let all = CacheFilter { principals: PrincipalFilter::All, ..CacheFilter::default() };
    let listed = cache.list(&all).unwrap().len();
    assert_eq!(cache.stats().unwrap().entries(), listed as u64);
    listed
}

fn repeated_calls_get_the_results_of_the_newest_run_in_its_order(cache: Cache) {
    cache.put(&[entry("old", 0, "before"), entry("new", 5, "empty"), entry("new", 9, "one file")]).unwrap();
    assert_eq!(texts(&cache), ["empty", "one file"]);
}

fn a_result_is_stored_once_for_each_principal(cache: Cache) {
    assert_eq!(cache.put(&[entry("a", 0, "x"), entry("a", 0, "x")]).unwrap(), 1);
    assert_eq!(cache.put(&[entry("a", 0, "x")]).unwrap(), 0);
    let cache = cache.for_principal("other");
    assert_eq!(cache.put(&[entry("a", 0, "x")]).unwrap(), 1);
    assert_eq!(count(&cache), 2);
}

fn an_error_of_a_newer_run_answers(cache: Cache) {
    cache.put(&[entry("a", 0, "fine")]).unwrap();
    let reply = result(json!({"content": [{"type": "text", "text": "no such folder"}], "isError": true}));
    cache.put(&[CacheEntry { reply, at_ms: 9999, ..entry("later", 1, "") }]).unwrap();
    assert_eq!(texts(&cache), ["no such folder"]);
}

fn purge_removes_what_the_filter_names(cache: Cache) {
    let other = CacheEntry { server: "git".to_owned(), ..entry("a", 1, "x") };
    cache.put(&[entry("a", 0, "x"), other]).unwrap();
    cache.save_catalogue("fs", &[json!({"name": "list"})], 1).unwrap();
    let fs = CacheFilter { server: Some("fs".to_owned()), ..CacheFilter::default() };
    let cache = cache.for_principal("other");
    assert_eq!(cache.purge(&CacheFilter { tool: Some("list".to_owned()), ..fs.clone() }).unwrap(), 0);
    let cache = cache.for_principal(LOCAL_PRINCIPAL);
    assert_eq!(cache.purge(&fs).unwrap(), 1);
    assert_eq!(cache.catalogue("fs").unwrap(), None);
    assert_eq!(cache.list(&CacheFilter::default()).unwrap()[0].server, "git");
    let all = CacheFilter { principals: PrincipalFilter::All, ..CacheFilter::default() };
    assert_eq!(cache.for_principal("other").purge(&all).unwrap(), 1);
}

fn private_results_are_never_answered_to_another_principal(cache: Cache) {
    let scoped =
        |scope: &str, text: &str| result(json!({"content": [{"type": "text", "text": text}], "cacheScope": scope}));
    let cache = cache.for_principal("ann");
    cache.put(&[entry("a", 0, "private by default")]).unwrap();
    let cache = cache.sharing(AnswerSharing::Shared);
    cache.put(&[CacheEntry { reply: scoped("private", "private by scope"), ..entry("b", 1, "") }]).unwrap();
    assert_eq!(texts(&cache), ["private by scope"]);

    let cache = cache.for_principal("bob");
    assert_eq!(texts(&cache), [""; 0]);
    assert!(
        cache.recent("fs", "list", 9).unwrap().is_empty() && cache.list(&CacheFilter::default()).unwrap().is_empty()
    );
    for scope in [
        LatencyScope::Arguments { server: "fs", tool: "list", key: key() },
        LatencyScope::Tool { server: "fs", tool: "list" },
        LatencyScope::Server { server: "fs" },
    ] {
        assert!(cache.latencies(scope).unwrap().is_empty(), "{scope:?}");
    }

    let cache = cache.for_principal("ann");
    cache.put(&[entry("c", 2, "shared by the operator")]).unwrap();
    assert_eq!(texts(&cache.for_principal("bob")), ["shared by the operator"]);
}

fn an_older_version_answers_as_of_its_time(cache: Cache) {
    cache.put(&[entry("a", 10, "first"), entry("b", 20, "second"), entry("c", 30, "third")]).unwrap();
    let cache = cache.as_of(1025);
    assert_eq!((texts(&cache), cache.list(&CacheFilter::default()).unwrap().len()), (vec!["second".to_owned()], 2));
    let cache = cache.as_of(1010);
    assert_eq!((texts(&cache), cache.now_ms()), (vec!["first".to_owned()], 1010));
    assert!(texts(&cache.as_of(1009)).is_empty());
}

fn old_versions_are_removed(cache: Cache) {
    cache.set_limits(CacheLimits { versions: 3, ..CacheLimits::default() }).unwrap();
    for number in 0..6 {
        let run = format!("run {number}");
        cache.put(&[entry(&run, number * 10, "a"), entry(&run, number * 10 + 1, "b")]).unwrap();
    }
    let runs: Vec<String> = cache.list(&CacheFilter::default()).unwrap().into_iter().map(|entry| entry.run).collect();
    assert_eq!(runs, ["run 5", "run 5", "run 4", "run 4", "run 3", "run 3"]);
    // Another principal and other arguments have their own versions.
    let other = CacheEntry { arguments: json!({}), ..entry("run 0", 7, "c") };
    cache.put(&[other]).unwrap();
    let cache = cache.for_principal("other");
    cache.put(&[entry("run 9", 99, "d")]).unwrap();
    assert_eq!(count(&cache), 8);
}

fn results_beyond_the_limits_are_removed(cache: Cache) {
    let numbered = |number: u64| CacheEntry { arguments: json!({"n": number}), ..entry("run", number, "x") };
    let newest = |cache: &Cache| cache.list(&CacheFilter::default()).unwrap()[0].sequence;
    cache.set_limits(CacheLimits { entries: 10, ..CacheLimits::default() }).unwrap();
    for number in 0..30 {
        cache.put(&[numbered(number)]).unwrap();
    }
    assert_eq!((count(&cache), newest(&cache)), (10, 29));
    let bytes = cache.stats().unwrap().bytes() / 10;
    cache.set_limits(CacheLimits { bytes: bytes * 4 + 1, ..CacheLimits::default() }).unwrap();
    assert_eq!((count(&cache), newest(&cache)), (4, 29));
    let batch: Vec<CacheEntry> = (100..3000).map(numbered).collect();
    cache.put(&batch).unwrap();
    assert_eq!((count(&cache), newest(&cache)), (3, 2999));
    // Results of one run for the same arguments are removed together.
    cache.set_limits(CacheLimits { entries: 3, ..CacheLimits::default() }).unwrap();
    cache.put(&[entry("polls", 5000, "a"), entry("polls", 5001, "b"), entry("polls", 5002, "c")]).unwrap();
    cache.put(&[numbered(6000)]).unwrap();
    assert_eq!((count(&cache), texts(&cache)), (1, vec![]));
}

fn results_keep_the_schemas_of_their_tools(cache: Cache) {
    let tool = |text: &str| json!({"name": "list", "inputSchema": {"required": [text]}});
    cache.put(&[entry("a", 0, "x")]).unwrap();
    cache.save_catalogue("fs", &[tool("a")], 1).unwrap();
    cache.put(&[entry("b", 1, "x")]).unwrap();
    cache.save_catalogue("fs", &[tool("b")], 2).unwrap();
    cache.put(&[entry("c", 2, "x")]).unwrap();
    cache.put_recorded(&[(entry("d", 3, "x"), Some(ToolSchemaHash::of_tool(&tool("c"))))]).unwrap();
    let found = cache.list_answers(&CacheFilter::default()).unwrap();
    let hash = |text: &str| Some(ToolSchemaHash::of_tool(&tool(text)));
    let schemas: Vec<_> = found.iter().map(|answer| answer.schema).collect();
    assert_eq!(schemas, [hash("c"), hash("b"), hash("a"), None]);
}

fn the_newest_catalogue_is_kept(cache: Cache) {
    let tools = |name: &str| vec![json!({ "name": name })];
    for (name, at_ms) in [("first", 1), ("third", 3), ("second", 2)] {
        cache.save_catalogue("fs", &tools(name), at_ms).unwrap();
    }
    assert_eq!(cache.catalogue("fs").unwrap(), Some(SavedCatalogue { tools: tools("third"), at_ms: 3 }));
    assert_eq!(cache.catalogues().unwrap(), ["fs"]);
}

fn stats_count_by_tool(cache: Cache) {
    let read = CacheEntry { tool: "read".to_owned(), ..entry("a", 7, "x") };
    cache.put(&[entry("a", 0, "x"), entry("b", 1, "x"), read]).unwrap();
    let stats = cache.stats().unwrap();
    let numbers: Vec<_> =
        stats.tools.iter().map(|it| (it.tool.as_str(), it.entries, it.oldest_ms, it.newest_ms)).collect();
    assert_eq!(numbers, [("list", 2, 1000, 1001), ("read", 1, 1007, 1007)]);
    assert_eq!((stats.entries(), stats.limits), (3, CacheLimits::default()));
    assert!(stats.bytes() > 100);
}
