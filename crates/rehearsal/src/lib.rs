//! Drive, record, mock and rehearse MCP servers, clients and agents.
