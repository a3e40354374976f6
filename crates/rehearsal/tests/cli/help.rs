//! Help texts, suggestions, completions and manual pages.

use crate::fixture::{Fixture, rehearse};

#[test]
fn a_word_that_is_no_command_gets_a_suggestion() {
    rehearse!(Fixture::new(), "rehearse lsit", @r"
    exit: 2
    ----- stderr -----
    error: there is no verb `lsit`
    hint: did you mean `list`?
    hint: usage: rehearse <COMMAND>
    ");
}

#[test]
fn a_value_that_is_no_duration_is_explained() {
    rehearse!(Fixture::new(), "rehearse list --protocol 2025-01-01 -- tiny-server", @r#"
    exit: 2
    ----- stderr -----
    error: --protocol <VERSION> cannot be "2025-01-01": unknown protocol version "2025-01-01"; known are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28; or use auto, legacy or modern
    "#);
}

#[test]
fn an_option_that_is_misspelled_gets_a_suggestion() {
    rehearse!(Fixture::new(), "rehearse list --tool -- tiny-server", @r"
    exit: 2
    ----- stderr -----
    error: there is no argument `--tool` here
    hint: did you mean `--tools`?
    hint: usage: rehearse list --tools [-- <COMMAND>...]
    ");
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = Fixture::new().shell(&format!("rehearse completions {shell}")).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{shell}");
        for word in ["prompt", "protocol", "completions"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    rehearse!(Fixture::new(), "rehearse completions bash > script && bash -n script", @r"
exit: 0
");
}

#[test]
fn manual_pages_are_printed_or_written() {
    rehearse!(Fixture::new(), "rehearse man | grep -A 2 EXAMPLES", @r"
    exit: 0
    ----- stdout -----
    .SH EXAMPLES
    .nf
      rehearse list \-\- npx \-y @modelcontextprotocol/server\-everything
    ");
    let fixture = Fixture::new();
    rehearse!(fixture, "rehearse man pages 2>&1 | head -2; head -3 pages/rehearse-read.1", @r#"
exit: 0
----- stdout -----
wrote pages/rehearse.1
wrote pages/rehearse-list.1
.ie \n(.g .ds Aq \(aq
.el .ds Aq '
.TH rehearse-read 1  "rehearse [VERSION]" 
"#);
    for verb in verbs() {
        let page = format!("pages/rehearse-{}.1", verb.replace(' ', "-"));
        assert!(fixture.path().join(page).exists(), "{verb}");
    }
}

/// Every verb, as `--help` lists them, with those below it: `trace`, `trace show`.
fn verbs() -> Vec<String> {
    below("")
}

fn below(words: &str) -> Vec<String> {
    let output = Fixture::new().shell(&format!("rehearse {words}--help")).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let lines = list.lines().take_while(|line| !line.is_empty());
    let verbs = lines
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next().filter(|_| !line.starts_with("   ")));
    let with_those_below = |verb: &str| {
        let verb = format!("{words}{verb}");
        let below = below(&format!("{verb} "));
        std::iter::once(verb).chain(below)
    };
    verbs.flat_map(with_those_below).collect()
}

/// Where the generated part of the reference begins.
const GENERATED: &str = "\n## rehearse\n";

/// `UPDATE_DOCS=1 cargo test -p rehearsal reference` updates it.
#[test]
fn the_cli_reference_equals_the_help_output() {
    let fixture = Fixture::new();
    let help = |words: &str| {
        let output = fixture.shell(&format!("rehearse {words}--help")).output().unwrap();
        format!("\n```text\n$ rehearse {words}--help\n{}```\n", String::from_utf8(output.stdout).unwrap())
    };
    let verbs = verbs().into_iter().map(|verb| format!("\n## rehearse {verb}\n{}", help(&format!("{verb} "))));
    let generated = help("") + &verbs.collect::<String>();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (prose, found) = page.split_once(GENERATED).expect("the page has a generated part");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{prose}{GENERATED}{generated}")).unwrap();
        return;
    }
    assert!(found == generated, "docs/reference/cli.md differs from the output of --help; UPDATE_DOCS=1 updates it");
}
