//! `rehearse list`

use crate::fixture::{Fixture, rehearse};

#[test]
fn everything_that_a_server_declares_is_listed() {
    rehearse!(Fixture::new(), "rehearse list -- tiny-server", @r"
    exit: 0
    ----- stdout -----
    TOOL     ARGUMENTS                                               DESCRIPTION
    echo     message=string                                          Returns the message
    add      a=number b=number                                       Adds two numbers
    slow     steps=integer [delay_ms=integer]                        Works in steps and reports its progress; can be cancelled
    log      level=debug|info|notice|warning|error|… message=string  Sends a log message, if the client requested messages of that level
    fail     message=string                                          Fails with the given message
    ask      question=string                                         Requests a name from the user (elicitation)
    sample   prompt=string                                           Requests a message from the model (sampling)
    roots                                                            Requests the client's folders (roots)
    picture                                                          Returns an image, a link to it, and an embedded text

    RESOURCE         NAME      TYPE        DESCRIPTION
    tiny://greeting  greeting  text/plain  A line of text
    tiny://pixel     pixel     image/png   A PNG of one green pixel

    TEMPLATE                NAME                 DESCRIPTION
    tiny://greeting/{name}  greeting for a name  A line of text for a name

    PROMPT  ARGUMENTS  DESCRIPTION
    greet   who        Says hello
    ----- stderr -----
    tiny-server [VERSION], protocol 2026-07-28
    ");
}

#[test]
fn long_shows_whole_descriptions_and_what_each_argument_is_for() {
    rehearse!(Fixture::new(), "rehearse list --long --tools --prompts -- tiny-server | sed -n '/slow/,/fail/p; /^prompt/,$p'", @r"
    exit: 0
    ----- stdout -----
    tool slow
      Works in steps and reports its progress; can be cancelled
      annotations: readOnlyHint=true

      steps=integer       How many steps; from 1 to 100
      [delay_ms=integer]  How long a step takes; from 0 to 10000; default 100

    tool log
      Sends a log message, if the client requested messages of that level
      annotations: readOnlyHint=true

      level=debug|info|notice|warning|error|…  one of debug, info, notice, warning, error, critical, alert, emergency
      message=string

    tool fail
    prompt greet
      Says hello

      who=string  Whom to greet
    ----- stderr -----
    tiny-server [VERSION], protocol 2026-07-28
    ");
    let on_a_terminal =
        "script -qec 'stty columns 40 rows 9; rehearse list -l --tools -- tiny-server' /dev/null | cat -v";
    rehearse!(Fixture::new(), &format!("{on_a_terminal} | sed -n '/slow/,/log/p'"), @r"
    exit: 0
    ----- stdout -----
    tool slow^M
      Works in steps and reports its^M
      progress; can be cancelled^M
      annotations: readOnlyHint=true^M
    ^M
      steps=integer^M
          How many steps; from 1 to 100^M
      [delay_ms=integer]^M
          How long a step takes; from 0 to^M
          10000; default 100^M
    ^M
    tool log^M
    ");
}

#[test]
fn json_is_one_object_with_the_lists_of_the_server() {
    rehearse!(Fixture::new(), "rehearse list --json --resources --prompts -- tiny-server", @r#"
exit: 0
----- stdout -----
{"resources":[{"uri":"tiny://greeting","name":"greeting","title":"Greeting","description":"A line of text","mimeType":"text/plain"},{"uri":"tiny://pixel","name":"pixel","title":"Pixel","description":"A PNG of one green pixel","mimeType":"image/png"}],"prompts":[{"name":"greet","title":"Greet a person","description":"Says hello","arguments":[{"name":"who","description":"Whom to greet","required":true}]}]}
"#);
}

#[test]
fn a_closed_stdout_pipe_is_no_failure() {
    rehearse!(Fixture::new(), "{ rehearse list --json -- tiny-server; echo status $? >&2; } | true", @r"
exit: 0
----- stderr -----
status 0
");
}

#[test]
fn list_distinguishes_undeclared_capabilities_from_empty_lists() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"bare"}}}"#;
    let fixture = Fixture::new().file("answer", answer).file("server", "read line; cat answer; echo; cat > /dev/null");
    rehearse!(fixture, "rehearse list --protocol legacy -- sh server", @r"
    exit: 0
    ----- stderr -----
    bare, protocol 2025-11-25
    it declares neither tools nor resources nor prompts
    hint: `--tools` lists its tools anyway
    ");
}

#[test]
fn colour_is_for_terminals_unless_forced_and_never_with_no_color() {
    rehearse!(Fixture::new(), "CLICOLOR_FORCE=1 rehearse list --prompts -- tiny-server | cat -v", @r"
exit: 0
----- stdout -----
^[[1mPROMPT^[[0m  ^[[1mARGUMENTS^[[0m  ^[[1mDESCRIPTION^[[0m
^[[32mgreet^[[0m   who        Says hello
----- stderr -----
tiny-server [VERSION], protocol 2026-07-28
");
    rehearse!(Fixture::new(), "NO_COLOR=1 CLICOLOR_FORCE=1 rehearse list --prompts -- tiny-server | cat -v", @r"
exit: 0
----- stdout -----
PROMPT  ARGUMENTS  DESCRIPTION
greet   who        Says hello
----- stderr -----
tiny-server [VERSION], protocol 2026-07-28
");
}

/// A server of which some of what it lists cannot be used.
const HALF_BROKEN: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"half"}}' ;;
    *'"tools/list"'*cursor*) result='{"tools":[{"name":"three","inputSchema":"none"},null]}' ;;
    *'"tools/list"'*) result='{"tools":[{"title":"one"},{"name":"two","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}},{"name":3}],"nextCursor":"c"}' ;;
    *'"resources/list"'*) result='{"resources":[{"name":"a"},{"uri":"file:///b"}]}' ;;
    *'"resources/templates/list"'*) result='{"resourceTemplates":[{"uriTemplate":["x"]}]}' ;;
    *'"prompts/list"'*) result='{"prompts":[{"description":"p"},{"name":"q"}]}' ;;
    *'"resources/read"'*) result='{"contents":[{"uri":"file:///b","text":"b"}]}' ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"called"}]}' ;;
    *'"prompts/get"'*) result='{"messages":[{"role":"user","content":{"type":"text","text":"got"}}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[test]
fn an_invalid_entry_does_not_hide_the_valid_ones() {
    let fixture = Fixture::new().file("half", HALF_BROKEN);
    rehearse!(fixture, "rehearse list --protocol legacy -- sh half", @r#"
    exit: 1
    ----- stdout -----
    TOOL   ARGUMENTS
    two    [n=integer]
    three

    RESOURCE
    file:///b

    PROMPT
    q
    ----- stderr -----
    half, protocol 2025-11-25
    error: tools/list: $.tools[0]: a tool without a text `name`: {"title":"one"}
    error: tools/list: $.tools[2]: a tool without a text `name`: {"name":3}
    error: tools/list, page 2: $.tools[1]: a tool without a text `name`: null
    error: resources/list: $.resources[0]: a resource without a text `uri`: {"name":"a"}
    error: resources/templates/list: $.resourceTemplates[0]: a resource template without a text `uriTemplate`: {"uriTemplate":["x"]}
    error: prompts/list: $.prompts[0]: a prompt without a text `name`: {"description":"p"}
    "#);
    rehearse!(fixture, "rehearse call two n=7 --protocol legacy -- sh half", @"
    exit: 0
    ----- stdout -----
    called
    ");
    rehearse!(fixture, "rehearse call one --protocol legacy -- sh half", @r#"
    exit: 2
    ----- stderr -----
    error: tools/list: $.tools[0]: a tool without a text `name`: {"title":"one"}
    error: tools/list: $.tools[2]: a tool without a text `name`: {"name":3}
    error: tools/list, page 2: $.tools[1]: a tool without a text `name`: null
    error: the server has no tool `one`
    hint: it has `two`, `three`
    hint: some servers list a tool only to clients with --roots or --answer
    "#);
}

#[test]
fn a_list_that_the_server_refuses_does_not_hide_the_others() {
    let refuses = HALF_BROKEN
        .replace(r#"result='{"resources":[{"name":"a"},{"uri":"file:///b"}]}'"#, r#"result='{"resources":null}'"#)
        .replace(
            r#"result='{"prompts":[{"description":"p"},{"name":"q"}]}'"#,
            r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"down"}}\n' "$id"; continue"#,
        );
    let fixture = Fixture::new().file("half", &refuses);
    rehearse!(fixture, "rehearse list --timeout 5 --protocol legacy -- sh half", @r#"
    exit: 1
    ----- stdout -----
    TOOL   ARGUMENTS
    two    [n=integer]
    three
    ----- stderr -----
    half, protocol 2025-11-25
    error: tools/list: $.tools[0]: a tool without a text `name`: {"title":"one"}
    error: tools/list: $.tools[2]: a tool without a text `name`: {"name":3}
    error: tools/list, page 2: $.tools[1]: a tool without a text `name`: null
    error: resources/templates/list: $.resourceTemplates[0]: a resource template without a text `uriTemplate`: {"uriTemplate":["x"]}
    error: the result of resources/list is not usable: no list `resources`
    error: prompts/list was refused: 1: down
    "#);
}

#[test]
fn long_shows_nested_fields_limits_annotations_and_output_schemas() {
    let mock = r#"
server: { name: weather, version: "1" }
tools:
  - name: forecast
    description: Forecast for a city
    annotations: { read_only_hint: true, open_world_hint: false }
    input_schema:
      type: object
      properties:
        place:
          type: object
          description: Where
          properties:
            city: { type: string, minLength: 1, maxLength: 80 }
            country: { type: string, enum: [NO, SE], default: "NO" }
          required: [city]
        days: { type: integer, minimum: 1, maximum: 10, default: 3, description: How many days }
      required: [place]
    output_schema:
      type: object
      properties:
        days:
          type: array
          items: { type: object, properties: { high: { type: number } }, required: [high] }
      required: [days]
    answers: [{ structured_content: { days: [] } }]
"#;
    let fixture = Fixture::new().file("m.yaml", mock);
    rehearse!(fixture, "rehearse list --long -- rehearse mock m.yaml", @r#"
    exit: 0
    ----- stdout -----
    tool forecast
      Forecast for a city
      annotations: readOnlyHint=true, openWorldHint=false

      place=object       Where
        city=string      from 1 to 80 characters
        [country=NO|SE]  default "NO"
      [days=integer]     How many days; from 1 to 10; default 3

      output
        days=object[]
          high=number
    ----- stderr -----
    weather 1, protocol 2026-07-28
    "#);
}

#[test]
fn every_server_of_a_configuration_is_listed() {
    let config = r#"{"mcpServers": {
        "tiny": {"command": "tiny-server"},
        "broken": {"command": "no-such-program"},
        "mock": {"command": "rehearse", "args": ["mock", "m.yaml"]}
    }}"#;
    let mock = "server: { name: small, version: '1' }\ntools: [{ name: now, answers: [{ text: noon }] }]\n";
    let fixture = Fixture::new().file("c.json", config).file("m.yaml", mock);
    rehearse!(fixture, "rehearse list --config c.json --tools 2>&1 | cut -c-40 | sed 's/ *$//'", @r"
    exit: 0
    ----- stdout -----
    tiny: tiny-server [VERSION], protocol 2026-0
    server tiny
    TOOL     ARGUMENTS
    echo     message=string
    add      a=number b=number
    slow     steps=integer [delay_ms=integer
    log      level=debug|info|notice|warning
    fail     message=string
    ask      question=string
    sample   prompt=string
    roots
    picture
    error: broken: the server could not be s
    hint: check the spelling, and that the d
    mock: small 1, protocol 2026-07-28

    server mock
    TOOL
    now
    ");
    rehearse!(fixture, "rehearse list --config c.json --prompts", @r#"
    exit: 3
    ----- stdout -----
    server tiny
    PROMPT  ARGUMENTS  DESCRIPTION
    greet   who        Says hello

    server mock
    ----- stderr -----
    tiny: tiny-server [VERSION], protocol 2026-07-28
    error: broken: the server could not be started: there is no program "no-such-program" in PATH
    hint: check the spelling, and that the directory of the program is in PATH
    mock: small 1, protocol 2026-07-28
    mock: it has no prompts
    "#);
    rehearse!(fixture, "rehearse list --config c.json --prompts --json", @r#"
    exit: 3
    ----- stdout -----
    {"server":"tiny","prompts":[{"name":"greet","title":"Greet a person","description":"Says hello","arguments":[{"name":"who","description":"Whom to greet","required":true}]}]}
    {"server":"mock","prompts":[]}
    ----- stderr -----
    error: broken: the server could not be started: there is no program "no-such-program" in PATH
    hint: check the spelling, and that the directory of the program is in PATH
    "#);
    rehearse!(fixture, "rehearse call now --config c.json", @r"
    exit: 2
    ----- stderr -----
    error: --config c.json needs --server NAME
    hint: c.json has `tiny`, `broken`, `mock`
    hint: `rehearse list --config c.json` lists what each of them offers
    ");
    let empty = Fixture::new().file("c.json", r#"{"mcpServers": {}}"#);
    rehearse!(empty, "rehearse list --config c.json", @r"
    exit: 2
    ----- stderr -----
    error: c.json has no servers
    ");
}
