//! How HTTP serves a mock.

use std::collections::HashMap;
use std::sync::Arc;

use rehearsal_core::answer::Mock;
use rehearsal_wire::http::server::Options;
use serde_json::Value;

/// What a listener is told about a mock: its versions, the arguments that travel as headers, how long to wait.
pub fn http_options(mock: &Mock) -> Options {
    let schemas: HashMap<String, Arc<Value>> =
        mock.header_schemas().map(|(tool, schema)| (tool.to_owned(), Arc::new(schema.clone()))).collect();
    Options {
        revisions: mock.revisions().to_vec(),
        retry: mock.retry(),
        tool_schema: Some(Arc::new(move |tool: &str| schemas.get(tool).cloned())),
        ..Options::default()
    }
}
