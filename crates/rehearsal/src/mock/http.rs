//! How HTTP serves a mock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rehearsal_wire::http::server::Options;
use serde_json::Value;

use super::Server;
use super::control::Control;

/// How long a POST of HTTP+SSE waits for the mock, so that it can be refused.
const HOLD: Duration = Duration::from_secs(1);

/// What a listener is told about a mock: its versions, the arguments that travel as headers, and the paths that control
/// it.
pub fn http_options(server: &Server) -> Options {
    let Some(mock) = server.mock() else { return Options::default() };
    let schemas: HashMap<String, Arc<Value>> =
        mock.header_schemas().map(|(tool, schema)| (tool.to_owned(), Arc::new(schema.clone()))).collect();
    Options {
        revisions: mock.revisions().to_vec(),
        tool_schema: Some(Arc::new(move |tool: &str| schemas.get(tool).cloned())),
        hold_posts: mock.refuses_requests().then_some(HOLD),
        routes: Some(Arc::new(Control(server.clone()))),
        ..Options::default()
    }
}
