//! The table of plans with the places of their calls: `places.txt`.

use crate::kit::run;

const TABLE: &str = include_str!("places.txt");

/// The plans of the table: name, source, expected lines.
fn table() -> Vec<(&'static str, &'static str, &'static str)> {
    let plans = TABLE.split("\n=== ").skip(1).map(|part| {
        let (name, rest) = part.split_once('\n').unwrap();
        let (source, expected) = rest.split_once("\n---").unwrap();
        (name, source, expected.trim_matches('\n'))
    });
    plans.collect()
}

/// One line for each call.
fn places(source: &str) -> String {
    let ran = run(source);
    if let Err(error) = &ran.outcome.result {
        return format!("error: {error}");
    }
    let line = |call: &rehearsal_sandbox::PlanCall| {
        let Some(place) = &call.place else { return format!("?  {}.{}", call.server, call.tool) };
        let text = source.lines().nth(place.line as usize - 1).unwrap();
        let text: String = match place.column {
            Some(column) => text.chars().skip(column as usize - 1).take(24).collect(),
            None => text.trim().chars().take(24).collect(),
        };
        let via: String = place.via.iter().map(|(line, column)| format!("  < {line}:{column}")).collect();
        format!("{place}  {}.{}  {}{via}", call.server, call.tool, text.trim())
    };
    ran.calls.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_call_of_the_table_has_its_place() {
    let table = table();
    assert!(table.len() >= 60, "{} plans", table.len());
    let found: Vec<String> = table.iter().map(|(_, source, _)| places(source)).collect();
    if std::env::var_os("REHEARSAL_UPDATE").is_some() {
        let (head, _) = TABLE.split_once("\n=== ").unwrap();
        let mut text = head.to_owned();
        for ((name, source, _), found) in table.iter().zip(&found) {
            text += &format!("\n=== {name}\n{source}\n---\n{found}\n");
        }
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/places.txt"), text).unwrap();
        return;
    }
    let mut wrong = String::new();
    for ((name, _, expected), found) in table.iter().zip(&found) {
        if expected != found {
            wrong += &format!("=== {name}\nexpected\n{expected}\nfound\n{found}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn windows_line_breaks_count_as_one() {
    assert_eq!(places("const a = 1;\r\n\r\nawait mcp.fs.read({});\r\n"), "3:7  fs.read  mcp.fs.read({});");
}

#[test]
fn static_calls_and_calls_that_run_have_the_same_place() {
    for (name, source, _) in table() {
        let plan = crate::kit::compiled(source);
        for call in run(source).calls {
            let Some(place) = call.place.filter(|place| place.column.is_some()) else { continue };
            let at = |line, column| (line, column) == (place.line, place.column);
            let known = plan.static_calls.iter().filter(|known| at(known.place.line, known.place.column));
            for known in known {
                assert_eq!((&known.server, &known.tool), (&call.server, &call.tool), "{name}");
            }
        }
    }
}
