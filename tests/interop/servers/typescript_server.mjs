// The server of `fastmcp_server.py`, written with the official TypeScript SDK (v2).
//
//   node typescript_server.mjs [http|stdio] [PORT]      # PORT 0, the default, picks a free one
//
// Over HTTP it says on stderr where it listens:
//
//   listening on http://127.0.0.1:43121/mcp
//
// Run it with the Node that `install` installed: the SDK is looked for beside it.

import { createRequire } from 'node:module';

import { serveHttp } from './typescript_http.mjs';

// The packages are in the cache, as is this Node, but this file is not: an `import` would not find them.
// An environment variable would not do either: SDK clients hand on only a few of those to stdio servers.
const require = createRequire(process.execPath);
const { McpServer, ResourceTemplate, completable, inputRequired, inputResponse } = require('@modelcontextprotocol/server');
const { serveStdio } = require('@modelcontextprotocol/server/stdio');
const { z } = require('zod');

const text = text => ({ content: [{ type: 'text', text }] });

function newServer() {
    const server = new McpServer({ name: 'typescript-interop', version: '1.0' }, { instructions: 'One of everything.' });

    server.registerTool(
        'echo',
        { description: 'Return the message.', inputSchema: z.object({ message: z.string() }), annotations: { readOnlyHint: true } },
        async ({ message }) => text(message)
    );

    server.registerTool(
        'add',
        {
            description: 'Add two numbers; the result is structured, too.',
            inputSchema: z.object({ a: z.number(), b: z.number() }),
            outputSchema: z.object({ result: z.number() })
        },
        async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { result: a + b } })
    );

    server.registerTool(
        'slow',
        { description: 'Report progress once per step.', inputSchema: z.object({ steps: z.number().int() }) },
        async ({ steps }, context) => {
            const progressToken = context.mcpReq._meta?.progressToken;
            for (let step = 1; step <= steps; step++) {
                if (progressToken !== undefined) {
                    await context.mcpReq.notify({
                        method: 'notifications/progress',
                        params: { progressToken, progress: step, total: steps, message: `step ${step}` }
                    });
                }
                await new Promise(resolve => setTimeout(resolve, 10));
            }
            return text(`${steps} steps`);
        }
    );

    server.registerTool('fail', { description: 'Fail on purpose.' }, async () => {
        throw new Error('failed on purpose');
    });

    // `inputRequired` serves both eras: for a legacy client the SDK turns it into a request.
    server.registerTool(
        'ask',
        { description: 'Ask the user (elicitation).', inputSchema: z.object({ question: z.string() }) },
        async ({ question }, context) => {
            const answer = inputResponse(context.mcpReq.inputResponses, 'name');
            if (answer.kind !== 'elicit') {
                const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
                return inputRequired({
                    inputRequests: { name: inputRequired.elicit({ message: question, requestedSchema }) },
                    requestState: 'asked once'
                });
            }
            return text(`${answer.action}: ${answer.content?.name}`);
        }
    );

    server.registerTool(
        'sample',
        { description: "Ask the client's model (sampling).", inputSchema: z.object({ prompt: z.string() }) },
        async ({ prompt }, context) => {
            const answer = inputResponse(context.mcpReq.inputResponses, 'answer');
            if (answer.kind !== 'sampling') {
                const messages = [{ role: 'user', content: { type: 'text', text: prompt } }];
                return inputRequired({ inputRequests: { answer: inputRequired.createMessage({ messages, maxTokens: 100 }) } });
            }
            return text(answer.result.content.text);
        }
    );

    server.registerTool('roots', { description: 'Ask which folders the client opened (roots).' }, async context => {
        const answer = inputResponse(context.mcpReq.inputResponses, 'roots');
        if (answer.kind !== 'roots') return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
        return text(answer.roots.map(root => root.uri).join(' '));
    });

    server.registerResource('greeting', 'tiny://greeting', { mimeType: 'text/plain' }, async uri => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Hello' }]
    }));

    server.registerResource(
        'greeting_for',
        new ResourceTemplate('tiny://greeting/{who}', { list: undefined }),
        { mimeType: 'text/plain' },
        async (uri, { who }) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: `Hello ${who}` }] })
    );

    const names = ['Ada', 'Alan', 'Barbara'];
    const who = completable(z.string(), value => names.filter(name => name.startsWith(value)));
    server.registerPrompt('greet', { description: 'Greet a person.', argsSchema: z.object({ who }) }, async ({ who }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `Please greet ${who}` } }]
    }));

    return server;
}

const [transport = 'http', port = '0'] = process.argv.slice(2);
if (transport === 'stdio') serveStdio(newServer);
else if (transport === 'http') serveHttp(newServer, Number(port));
else throw new Error(`no transport ${transport}`);
