// Serves an `McpServer` of the official TypeScript SDK (v2) over Streamable HTTP.
//
// Both eras are served on one endpoint; legacy clients get a session, so that the server can ask them.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

// See `typescript_server.mjs` for why this is no `import`.
const require = createRequire(process.execPath);
const { createMcpHandler, isLegacyRequest } = require('@modelcontextprotocol/server');
const { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } = require('@modelcontextprotocol/node');

// Serves what `newServer` makes, and says on stderr where: `listening on http://127.0.0.1:43121/mcp`.
export function serveHttp(newServer, port) {
    const modern = toNodeHandler(createMcpHandler(newServer, { legacy: 'reject' }));
    const sessions = new Map();

    async function legacy(request, response, body) {
        const id = request.headers['mcp-session-id'];
        if (id !== undefined && !sessions.has(id)) {
            response.writeHead(404, { 'content-type': 'application/json' });
            response.end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}');
            return;
        }
        let transport = sessions.get(id);
        if (!transport) {
            transport = new NodeStreamableHTTPServerTransport({
                sessionIdGenerator: randomUUID,
                onsessioninitialized: id => void sessions.set(id, transport),
                onsessionclosed: id => void sessions.delete(id)
            });
            await newServer().connect(transport);
        }
        await transport.handleRequest(request, response, body);
    }

    // A page in a browser that reaches this machine under a name of its own has no business here.
    const local = host => /^(localhost|127\.0\.0\.1)(:\d+)?$/.test(host ?? '');
    const foreign = ({ host, origin }) => !local(host) || (origin !== undefined && !local(origin.replace(/^https?:\/\//, '')));

    const listener = createServer(async (request, response) => {
        if (foreign(request.headers)) {
            response.writeHead(403).end();
            return;
        }
        let body;
        if (request.method === 'POST') {
            const chunks = await request.toArray();
            try {
                body = JSON.parse(Buffer.concat(chunks).toString());
            } catch {
                response.writeHead(400, { 'content-type': 'application/json' });
                response.end('{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}');
                return;
            }
        }
        const isLegacy = await isLegacyRequest(await toWebRequest(request, body), body);
        await (isLegacy ? legacy : modern)(request, response, body);
    });
    listener.listen(port, '127.0.0.1', () => {
        console.error(`listening on http://127.0.0.1:${listener.address().port}/mcp`);
    });
}
