//! The harness: a test server with one tool, whose responses are in the call or are loaded in advance.
//!
//! ```text
//! "… [test_case_id=weather_1] [mcp_responses_json=W3sidGV4dCI6…] …"
//!      directives ──► which test case, which responses
//!      Harness    ──► a queue for each test case; every call takes the next response
//! ```
//!
//! A queue is created when its responses are first received or loaded. After that, the same directive has no effect,
//! because an agent sends the same text in every turn. A different directive for the same test case is refused: two
//! tests with one name would otherwise take each other's responses.

mod directive;
mod queues;
mod response;
mod source;

pub use directive::{Directives, HarnessError};
pub use queues::{Harness, HarnessLimits, QueueView, TakenResponse};
pub use response::{QueuedResponse, ResponseBody};

/// The name of the tool.
pub const TOOL: &str = "get_data";

/// The argument that carries the directives.
pub const ARGUMENT: &str = "task_description";

/// The mock file of a server that has the tool.
pub const MOCK_FILE: &str = "\
server: { name: rehearsal-harness, version: \"1.0\" }
tools:
  - name: get_data
    description: >-
      Returns the next prepared response of a test case. The task description names the test case as
      [test_case_id=ID] and brings its responses as [mcp_responses_json=BASE64], unless they were loaded before.
    input_schema:
      type: object
      properties:
        task_description: { type: string, description: The task, with its directives }
      required: [task_description]
    validate: off
";
