//! What probes record, and decisions that a run forces.

use rehearsal_sandbox::{ForcedDecision, ProbeKind, ProbeRecord, RunOptions};

use crate::kit::{compiled, run, run_with};

/// The records of a run, one for each site.
fn records(source: &str) -> Vec<ProbeRecord> {
    run(source).outcome.sites
}

fn force(site: u32, choice: u32) -> RunOptions {
    RunOptions { force: Some(ForcedDecision { site, choice, times: 1 }), ..RunOptions::default() }
}

#[test]
fn decisions_are_counted_by_site() {
    let source = "let n = 0;
for (const size of [1, 200, 300]) {
  if (size > 100) n++;
}
try { JSON.parse('{'); } catch { n = 9; }
try { await mcp.fs.fail({}); } catch (error) { n = 8; }
return n;";
    let plan = compiled(source);
    let sites: Vec<_> = plan.sites.iter().map(|site| (site.kind, site.place.to_string(), site.text.as_str())).collect();
    assert_eq!(
        sites,
        [
            (ProbeKind::Loop, "2:20".to_owned(), "[1, 200, 300]"),
            (ProbeKind::Condition, "3:7".to_owned(), "size > 100"),
            (ProbeKind::Catch, "5:26".to_owned(), "catch"),
            (ProbeKind::Catch, "6:32".to_owned(), "catch"),
        ]
    );
    let counts: Vec<_> = records(source).iter().map(|record| (record.yes, record.no)).collect();
    assert_eq!(counts, [(1, 3), (2, 1), (0, 1), (1, 0)]);
}

#[test]
fn equal_runs_have_equal_records_and_other_values_other_ones() {
    let plan = |value: &str| format!("const a = {value}; if (a.text.includes('E')) return 1; return 0");
    let first = records(&plan("{ text: 'abc' }"));
    assert_eq!(first, records(&plan("{ text: 'abc' }")));
    let other = records(&plan("{ text: 'abd' }"));
    assert_eq!(first[0].decisions, other[0].decisions);
    assert_ne!(first[0].operands, other[0].operands);
}

#[test]
fn a_run_can_take_the_other_side() {
    for (source, site, choice, expected) in [
        ("return 1 > 2 ? 'yes' : 'no'", 0, 1, "\"yes\""),
        ("if (!(1 > 2)) return 'yes'; return 'no'", 0, 0, "\"no\""),
        ("const found = [1].some((n) => n > 2); return found ? 'yes' : 'no'", 1, 1, "\"yes\""),
        ("const a = 'a'; return a ?? 'b'", 0, 0, "\"b\""),
        ("const a = ''; return a && 'b'", 0, 1, "\"b\""),
        ("switch ('a') { case 'b': return 'yes'; case 'c': return 'other'; default: return 'no' }", 0, 1, "\"other\""),
        ("let n = 0; while (n > 5) { n++; } return n", 0, 1, "1"),
    ] {
        let ran = run_with(source, &force(site, choice));
        assert_eq!(ran.outcome.result.unwrap().get(), expected, "{source}");
    }
}

#[test]
fn probes_change_nothing_that_a_plan_can_see() {
    for (source, expected) in [
        ("const o = { get n() { return this.m }, m: 3 }; if (o.n === 3) return o.n; return 0", "3"),
        (
            "const s = new Set(['a']); return [s.has('a'), 'abc'.includes('b'), [1, 2].some((n) => n === 2)]",
            "[true,true,true]",
        ),
        ("let n = 0; for (const [k, v] of new Map([['a', 1], ['b', 2]])) n += v; return n", "3"),
        ("let k = ''; for (const key in { a: 1, b: 2 }) k += key; return k", "\"ab\""),
        ("const f = (a?: { b?: () => number }) => a?.b?.() ?? 7; return [f(), f({ b: () => 0 })]", "[7,0]"),
        ("function* g() { yield 1; yield 2; } let n = 0; for (const i of g()) n += i; return n", "3"),
        ("enum Size { Small = 1 < 2 ? 5 : 6, Large = Small + 1 } return Size.Large", "6"),
        ("class A { #x = 1; has(o: A) { return #x in o } } return new A().has(new A())", "true"),
        (
            "let n = 0; outer: for (const a of [1, 2]) { for (const b of [1, 2]) { if (b === 2) continue outer; n += a * b; } } return n",
            "3",
        ),
        ("const text = 'x'; switch (true) { case text === 'x': return 1; default: return 2 }", "1"),
        ("if ((await mcp.fs.maybe({})) === null) return 'null'; return 'value'", "\"null\""),
        ("return arguments_() ; function arguments_() { if (arguments.length === 0) return 'none' }", "\"none\""),
        ("try { null.x } catch ({ message }) { return typeof message }", "\"string\""),
    ] {
        let ran = run(source);
        assert_eq!(ran.outcome.result.unwrap_or_else(|error| panic!("{source}: {error}")).get(), expected, "{source}");
    }
}
