//! `rehearse generate`

use crate::fixture::{Fixture, rehearse};

const WEATHER: &str = r#"
server: { name: weather, version: "1.0" }
tools:
  - name: get_forecast
    description: Forecast for a city
    input_schema: { type: object, properties: { city: { type: string } } }
    answers:
      - { when: { city: Oslo }, text: Rain }
      - { when: { city: Oslo }, times: 9, text: Sun }
      - when: { city: Bergen }
        steps: [{ progress: { progress: 1, total: 2 } }]
        error: { code: -32000, message: upstream is down }
      - text: "{{ 'two\nlines with {{ braces }}' }}"
prompts:
  - name: greet
    messages: [{ role: user, content: { type: text, text: Hello } }]
"#;

/// A recording of the mock above.
fn recorded() -> Fixture {
    let fixture = Fixture::new().file("weather.mock.yaml", WEATHER);
    let record = "rehearse record -q -o trace.jsonl -- rehearse mock weather.mock.yaml";
    for verb in
        ["list", "call get_forecast city=Oslo", "call get_forecast city=Bergen", "call get_forecast", "prompt greet"]
    {
        fixture.run(&format!("rehearse {verb} -- {record}"));
    }
    // A second recording in which the server answers differently.
    fixture.run("sed -i /Rain/d weather.mock.yaml");
    fixture.run(&format!("rehearse call get_forecast city=Oslo -- {record}"));
    fixture
}

#[test]
fn a_recording_becomes_a_mock_that_answers_like_it() {
    let fixture = recorded();
    rehearse!(fixture, "rehearse generate trace.jsonl --as mock", @r#"
    exit: 0
    ----- stdout -----
    # Answers like trace.jsonl. Edit it: rules are tried in order, and the first that fits answers.
    # `rehearse check` reports its mistakes, `rehearse mock` serves it.
    server: { name: weather, version: "1.0" }
    validate: "off"
    tools:
      - name: get_forecast
        description: Forecast for a city
        input_schema: { type: object, properties: { city: { type: string } } }
        answers:
          - name: Oslo
            when: { exact: { city: Oslo } }
            in_turn:
              - text: Rain
              - text: Sun
          - name: Bergen
            when: { exact: { city: Bergen } }
            steps: [{ progress: { progress: 1, total: 2 } }, { wait: 5ms }]
            error: { code: -32000, message: upstream is down }
          - name: no arguments
            when: { exact: {} }
            text: |-
              {% raw %}two
              lines with {{ braces }}{% endraw %}
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of get_forecast }
    prompts:
      - name: greet
        answers:
          - name: no arguments
            when: { exact: {} }
            messages: [{ role: user, content: { type: text, text: Hello } }]
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of greet }
    "#);
    rehearse!(fixture, "rehearse generate trace.jsonl --as mock -o again.mock.yaml && rehearse check again.mock.yaml", @r"
    exit: 0
    ----- stderr -----
    wrote again.mock.yaml
    1 file checked, no problems
    ");
    rehearse!(fixture, "rehearse verify trace.jsonl -- rehearse mock again.mock.yaml", @r#"
    exit: 1
    ----- stdout -----
    ~ session 6: tools/call get_forecast
      note: sent with {"city":"Oslo"}
      error: changed (message 4)
        $.result.content[0].text: expected "Sun", got "Rain"
    ----- stderr -----
    17 as recorded, 1 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
    rehearse!(fixture, "rehearse call get_forecast --args '{\"city\":\"Oslo\",\"days\":3}' -- rehearse mock again.mock.yaml", @"
    exit: 1
    ----- stderr -----
    error: -32602: nothing was recorded for these arguments of get_forecast
    ");
}

#[test]
fn an_existing_file_is_overwritten_only_with_force() {
    let fixture = recorded().file("mine.mock.yaml", "tools: []");
    rehearse!(fixture, "rehearse generate trace.jsonl --as mock -o mine.mock.yaml; cat mine.mock.yaml", @r"
    exit: 0
    ----- stdout -----
    tools: []----- stderr -----
    error: mine.mock.yaml exists
    hint: `--force` overwrites it
    ");
    rehearse!(fixture, "rehearse generate trace.jsonl --as mock -o mine.mock.yaml --force && head -c 24 mine.mock.yaml", @"
    exit: 0
    ----- stdout -----
    # Answers like trace.jso----- stderr -----
    wrote mine.mock.yaml
    ");
}

#[test]
fn a_recording_becomes_a_python_file() {
    let fixture = recorded();
    rehearse!(fixture, "rehearse generate trace.jsonl --as python", @r#"
    exit: 0
    ----- stdout -----
    #!/usr/bin/env python3
    """A mock MCP server that answers like trace.jsonl.

        pip install "mcp>=2,<3"
        python THIS_FILE        # serves over stdio

    The recording is in `MOCK_RESPONSES`. `MockMCPServer._find_matching_response` decides
    which answer a request gets: override it to match differently.
    What is sent before an answer is its `before`.
    """

    import asyncio
    import secrets
    import warnings
    from collections.abc import Awaitable, Callable
    from typing import Any, TypeVar

    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
    from mcp.shared.exceptions import MCPError
    from mcp.shared.subscriptions import event_from_wire
    from pydantic import ValidationError

    # Sampling, roots and logging are deprecated since 2026-07-28, and were recorded.
    warnings.filterwarnings("ignore", message=".*SEP-2577.*")

    SERVER_NAME = "weather"
    SERVER_VERSION = "1.0"

    # The declared capabilities.
    CAPABILITIES: dict[str, Any] = {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
    }

    # The listed items.
    TOOLS: list[dict[str, Any]] = [
        {
            "name": "get_forecast",
            "description": "Forecast for a city",
            "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    ]

    PROMPTS: list[dict[str, Any]] = [{"name": "greet"}]

    # The recording: for each method the distinct requests, and for each request its
    # answers in order. The last answer is repeated.
    MOCK_RESPONSES: dict[str, list[dict[str, Any]]] = {
        "tools/call": [
            {
                "params": {"name": "get_forecast", "arguments": {"city": "Oslo"}},
                "responses": [
                    {"result": {"content": [{"type": "text", "text": "Rain"}]}},
                    {"result": {"content": [{"type": "text", "text": "Sun"}]}},
                ],
            },
            {
                "params": {"name": "get_forecast", "arguments": {"city": "Bergen"}},
                "responses": [
                    {
                        "before": [
                            {
                                "notify": {
                                    "method": "notifications/progress",
                                    "params": {"progress": 1, "total": 2},
                                },
                            },
                        ],
                        "error": {"code": -32000, "message": "upstream is down"},
                    },
                ],
            },
            {
                "params": {"name": "get_forecast", "arguments": {}},
                "responses": [
                    {
                        "result": {
                            "content": [
                                {"type": "text", "text": "two\nlines with {{ braces }}"},
                            ],
                        },
                    },
                ],
            },
        ],
        "prompts/get": [
            {
                "params": {"name": "greet", "arguments": {}},
                "responses": [
                    {
                        "result": {
                            "messages": [
                                {
                                    "role": "user",
                                    "content": {"type": "text", "text": "Hello"},
                                },
                            ],
                        },
                    },
                ],
            },
        ],
    }


    def canonical(value: Any) -> Any:
        """Equal for JSON values that are equal: 1 and 1.0 are, 1 and true are not."""
        if isinstance(value, dict):
            return ("object", frozenset((key, canonical(item)) for key, item in value.items()))
        if isinstance(value, list):
            return ("array", tuple(canonical(item) for item in value))
        return (isinstance(value, bool), value)


    # The first version without a handshake. Its results have additional members.
    STATELESS = "2026-07-28"

    # A result in its wire form.
    Raw = dict[str, Any]
    T = TypeVar("T", bound=types.Result)


    def typed(kind: type[T], recorded: Raw) -> T | Raw:
        """A recorded result as a type of the package, or unchanged if that type cannot hold
        all of it."""
        try:
            result = kind.model_validate(recorded)
        except ValidationError:
            return recorded
        is_complete = canonical(raw(result)) == canonical({"resultType": "complete", **recorded})
        return result if is_complete else recorded


    def raw(result: types.Result | Raw) -> Raw:
        """A result in its wire form, without members that were not set."""
        if isinstance(result, dict):
            return result
        unset = {"is_error", "ttl_ms", "cache_scope"} - result.model_fields_set
        return result.model_dump(by_alias=True, mode="json", exclude_none=True, exclude=unset)


    def drop_non_object(result: Raw) -> Raw:
        """A result without values that must be objects before 2026-07-28 and are not."""

        def fits(key: str, value: Any) -> bool:
            if key == "outputSchema":
                return isinstance(value, dict) and value.get("type") == "object"
            return key != "structuredContent" or isinstance(value, dict)

        result = {key: value for key, value in result.items() if fits(key, value)}
        if isinstance(result.get("tools"), list):
            tools = [{key: tool[key] for key in tool if fits(key, tool[key])} for tool in result["tools"]]
            result["tools"] = tools
        return result


    class VerbatimResult(Exception):
        """Carries a result around the package, which would add members that were not recorded
        and refuse values that it has no type for."""

        def __init__(self, result: Raw) -> None:
            super().__init__()
            self.result = result


    def verbatim(handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """A handler whose result is sent unchanged."""

        async def handle(context: Any, params: Any) -> Any:
            raise VerbatimResult(raw(await handler(context, params)))

        return handle


    class MockMCPServer:
        """Serves the recording."""

        def __init__(self) -> None:
            # The recorded requests, by method and params, and how often each was answered.
            self._recorded: dict[Any, dict[str, Any]] = {}
            for method, requests in MOCK_RESPONSES.items():
                for recorded in requests:
                    self._recorded.setdefault((method, canonical(recorded["params"])), recorded)
            self._answered: dict[int, int] = {}
            # The requests that were answered with `input_required`, by `requestState`: the
            # response, and the step to continue with.
            self._waiting: dict[str, tuple[dict[str, Any], int]] = {}
            # Since 2026-07-28 clients subscribe to changes. They get the notices that precede
            # an answer.
            self._changes = InMemorySubscriptionBus()
            self.server = Server(
                SERVER_NAME,
                version=SERVER_VERSION,
                on_list_tools=verbatim(self.handle_list_tools),
                on_call_tool=verbatim(self.handle_call_tool),
                on_subscriptions_listen=ListenHandler(self._changes),
                on_list_prompts=verbatim(self.handle_list_prompts),
                on_get_prompt=verbatim(self.handle_get_prompt),
            )
            self.server.middleware.append(self._send_verbatim)

        async def handle_list_tools(
            self, context: Any, params: Any
        ) -> types.ListToolsResult | Raw:
            return typed(types.ListToolsResult, {"tools": TOOLS})

        async def handle_call_tool(
            self, context: Any, params: types.CallToolRequestParams
        ) -> types.CallToolResult | types.InputRequiredResult | Raw:
            requested = {"name": params.name, "arguments": params.arguments or {}}
            response, step = self._begin("tools/call", requested, params)
            if response is None and params.name not in [tool["name"] for tool in TOOLS]:
                raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
            if result := await self._send_preceding(context, params, response, step):
                return result
            about = f"these arguments of {params.name}"
            return typed(types.CallToolResult, self._result(response, about))

        async def handle_list_prompts(
            self, context: Any, params: Any
        ) -> types.ListPromptsResult | Raw:
            return typed(types.ListPromptsResult, {"prompts": PROMPTS})

        async def handle_get_prompt(
            self, context: Any, params: types.GetPromptRequestParams
        ) -> types.GetPromptResult | types.InputRequiredResult | Raw:
            requested = {"name": params.name, "arguments": params.arguments or {}}
            response, step = self._begin("prompts/get", requested, params)
            if result := await self._send_preceding(context, params, response, step):
                return result
            about = f"these arguments of {params.name}"
            return typed(types.GetPromptResult, self._result(response, about))

        def _find_matching_response(
            self, method: str, params: dict[str, Any]
        ) -> dict[str, Any] | None:
            """The recorded response to a request: {"result": ...} or {"error": ...}, with
            what is sent first as "before".

            Override it to match differently. `None` refuses the request.
            """
            recorded = self._recorded.get((method, canonical(params)))
            if recorded is None:
                return None
            count = self._answered.get(id(recorded), 0)
            self._answered[id(recorded)] = count + 1
            return recorded["responses"][min(count, len(recorded["responses"]) - 1)]

        def _result(self, response: dict[str, Any] | None, about: str) -> dict[str, Any]:
            """The result of a response; a recorded error is raised."""
            if response is None:
                raise MCPError(types.INVALID_PARAMS, f"Nothing was recorded for {about}")
            if "error" in response:
                error = response["error"]
                raise MCPError(error["code"], error["message"], error.get("data"))
            return response["result"]

        async def _send_verbatim(self, context: Any, call_next: Any) -> Any:
            """Sends the result of a handler and the declared capabilities, and adds only the members
            that the version of the client requires."""
            try:
                sent = await call_next(context)
                if context.method in ("initialize", "server/discover"):
                    return {**sent, "capabilities": CAPABILITIES}
                return sent
            except VerbatimResult as verbatim_result:
                result = verbatim_result.result
            if context.protocol_version < STATELESS:
                newer = ("resultType", "ttlMs", "cacheScope")
                return drop_non_object({key: result[key] for key in result if key not in newer})
            result = {"resultType": "complete", **result}
            is_cached = context.method.endswith("/list") or context.method == "resources/read"
            if is_cached and result["resultType"] == "complete":
                result = {"ttlMs": 0, "cacheScope": "private", **result}
            stamp = {types.SERVER_INFO_META_KEY: self.server.server_info_stamp}
            return {**result, "_meta": {**stamp, **(result.get("_meta") or {})}}

        def _begin(
            self, method: str, requested: dict[str, Any], params: Any
        ) -> tuple[dict[str, Any] | None, int]:
            """The response to a request, and the step to begin with: a repeated request with a
            state continues its response."""
            if params.request_state is None:
                return self._find_matching_response(method, requested), 0
            if params.request_state not in self._waiting:
                raise MCPError(types.INVALID_PARAMS, "This request state is unknown")
            return self._waiting.pop(params.request_state)

        async def _send_preceding(
            self, context: Any, params: Any, response: dict[str, Any] | None, first: int
        ) -> types.InputRequiredResult | Raw | None:
            """Sends what precedes a response.

            Since 2026-07-28 a server requests input by an `input_required` result, which is
            returned then. The responses of the client change nothing: what follows is recorded.
            """
            steps = (response or {}).get("before", [])
            is_stateless = context.protocol_version >= STATELESS
            for number, step in enumerate(steps):
                if number < first:
                    continue
                if step == "emptyRound":
                    if is_stateless:
                        return self._input_required({}, response, number + 1)
                elif "notify" in step:
                    await self._notify(context, is_stateless, step["notify"])
                    if number + 1 == len(steps) or "notify" not in steps[number + 1]:
                        # Some clients drop a notification that arrives with the answer.
                        await asyncio.sleep(0.05)
                else:
                    requests = {
                        name: self._for_version(context, name, request)
                        for name, request in step["requestInput"].items()
                        if self._is_supported(context, request)
                    }
                    if is_stateless:
                        responses = getattr(params, "input_responses", None) or {}
                        # They belong to the requests of the first step only.
                        answers = responses if number == first else {}
                        open_requests = {key: requests[key] for key in requests if key not in answers}
                        if open_requests:
                            return self._input_required(open_requests, response, number)
                    else:
                        for request in requests.values():
                            await self._request_input(context, request)
            return None

        def _input_required(
            self, requests: dict[str, Any], response: Any, step: int
        ) -> types.InputRequiredResult | Raw:
            state = secrets.token_hex(8)
            self._waiting[state] = (response, step)
            result: Raw = {"resultType": "input_required", "requestState": state}
            if requests:
                result["inputRequests"] = requests
            return typed(types.InputRequiredResult, result)

        async def _notify(
            self, context: Any, is_stateless: bool, notification: dict[str, Any]
        ) -> None:
            method, params = notification["method"], notification["params"]
            if method == "notifications/progress":
                await context.session.report_progress(
                    params["progress"], params.get("total"), params.get("message")
                )
            elif method == "notifications/message":
                await context.session.send_log_message(
                    params["level"], params["data"], params.get("logger"), context.request_id
                )
            elif not is_stateless:
                message = types.Notification[Raw, str](method=method, params=params)
                await context.session.send_notification(message)
            elif event := event_from_wire(method, params):
                # Since 2026-07-28 only subscribers get change notices.
                await self._changes.publish(event)

        async def _request_input(self, context: Any, request: dict[str, Any]) -> None:
            message = types.Request[Raw, str](**request)
            try:
                await context.session.send_request(message, types.Result)
            except (MCPError, ValidationError):
                pass  # the response changes nothing

        def _is_supported(self, context: Any, request: dict[str, Any]) -> bool:
            """Whether the client declared that it supports a request."""
            capability = request["method"].split("/")[0]
            declared = getattr(context.session.client_capabilities, capability, None)
            if declared is None or capability != "elicitation":
                return declared is not None
            if request["params"].get("mode") == "url":
                return declared.url is not None
            # A client that declares neither forms nor URLs supports forms.
            return declared.form is not None or declared.url is None

        def _for_version(
            self, context: Any, name: str, request: dict[str, Any]
        ) -> dict[str, Any]:
            """A request in the client's version: a URL has an id before 2026-07-28."""
            params = dict(request["params"])
            if params.get("mode") == "url":
                identity = params.pop("elicitationId", name)
                if context.protocol_version < STATELESS:
                    params["elicitationId"] = identity
            return {"method": request["method"], "params": params}

        async def run(self) -> None:
            async with stdio_server() as (read_stream, write_stream):
                options = self.server.create_initialization_options()
                await self.server.run(read_stream, write_stream, options)


    if __name__ == "__main__":
        asyncio.run(MockMCPServer().run())
    "#);
}

#[test]
fn a_recording_becomes_a_rust_project() {
    let fixture = recorded();
    rehearse!(fixture, "rehearse generate trace.jsonl --as rust", @"
    exit: 2
    ----- stderr -----
    error: --as rust writes several files, so it needs -o DIRECTORY
    ");
    rehearse!(fixture, "rehearse generate trace.jsonl --as rust -o project && find project -type f | sort && cat project/Cargo.toml", @r#"
    exit: 0
    ----- stdout -----
    project/Cargo.toml
    project/src/exact.rs
    project/src/main.rs
    project/src/matching.rs
    project/src/preceding.rs
    project/src/recorded.json
    project/src/recorded.rs
    [package]
    name = "weather-mock"
    version = "[VERSION]"
    edition = "2024"
    publish = false

    [dependencies]
    rmcp = { version = "3.8", default-features = false, features = ["server", "transport-io"] }
    serde = { version = "1", features = ["derive"] }
    serde_json = { version = "1", features = ["float_roundtrip", "preserve_order"] }
    tokio = { version = "1", features = ["macros", "rt", "time"] }

    # A project of its own, wherever it is put.
    [workspace]
    ----- stderr -----
    wrote 7 files to project
    "#);
    rehearse!(fixture, "rehearse generate trace.jsonl --as rust -o project", @r"
    exit: 2
    ----- stderr -----
    error: project exists
    hint: `--force` overwrites it
    ");
    rehearse!(fixture, "rehearse generate trace.jsonl --as rust -o weather.mock.yaml --force", @"
    exit: 2
    ----- stderr -----
    error: weather.mock.yaml is not a directory
    ");
}

#[test]
fn an_unusable_recording_is_refused_with_a_reason() {
    let fixture = Fixture::new().file("empty.jsonl", "").file("notes.txt", "hello");
    rehearse!(fixture, "rehearse generate empty.jsonl --as mock", @r"
    exit: 2
    ----- stderr -----
    error: no tools, prompts or resources were recorded in empty.jsonl
    hint: `rehearse trace show` prints the recording
    ");
    rehearse!(fixture, "rehearse generate notes.txt --as mock", @r#"
    exit: 2
    ----- stderr -----
    error: notes.txt: not a recording: it begins with "hello"
    hint: a trace has one session a line, a journal one message a line; `rehearse record` writes both
    "#);
    rehearse!(fixture, "rehearse generate none.jsonl --as python", @"
    exit: 2
    ----- stderr -----
    error: cannot read none.jsonl: No such file or directory (os error 2)
    hint: `rehearse record -- COMMAND` writes trace.jsonl
    ");
    rehearse!(fixture, "rehearse generate empty.jsonl --as go", @r#"
    exit: 2
    ----- stderr -----
    error: --as <WHAT> cannot be "go"
    hint: it is one of mock, rust, python
    "#);
    rehearse!(fixture, "rehearse generate empty.jsonl", @r"
    exit: 2
    ----- stderr -----
    error: missing: --as <WHAT>
    hint: --as is one of mock, rust, python
    hint: usage: rehearse generate --as <WHAT> <TRACE>
    ");
}

#[test]
fn an_unwritable_output_path_is_reported() {
    let fixture = recorded();
    rehearse!(fixture, "rehearse generate trace.jsonl --as mock -o none/a.mock.yaml", @"
    exit: 2
    ----- stderr -----
    error: cannot write none/a.mock.yaml: No such file or directory (os error 2)
    ");
    rehearse!(fixture, "mkdir there; rehearse generate trace.jsonl --as mock -o there --force", @"
    exit: 2
    ----- stderr -----
    error: there is a directory; a mock and Python are one file
    ");
}

#[test]
fn values_left_out_of_the_generated_code_are_reported() {
    let busy = include_str!("../../../../fixtures/traces/busy.journal");
    let fixture = Fixture::new().file("busy.journal", busy);
    rehearse!(fixture, "rehearse generate busy.journal --as mock >/dev/null", @"
    exit: 0
    ----- stderr -----
    left out: 1 unanswered request, 1 server request, 4 other items
    ");
    rehearse!(fixture, "rehearse generate busy.journal --as python >/dev/null", @"
    exit: 0
    ----- stderr -----
    left out: 1 unanswered request, 1 server request, 5 other items
    ");
    rehearse!(fixture, "rehearse generate busy.journal --as rust -o busy 2>&1 | grep -v ^wrote", @"
    exit: 0
    ----- stdout -----
    left out: 1 unanswered request, 1 server request, 5 other items
    ");
}
