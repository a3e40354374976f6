// Makes requests with the official TypeScript SDK and prints what was answered as a JSON list.
//
//   node typescript_calls.mjs [--era auto|legacy|modern] --calls FILE --stdio COMMAND ARGUMENT...
//   node typescript_calls.mjs [--era ...] --calls FILE --url URL [--transport http|sse]
//
// FILE has a JSON list of `{"method": ..., "params": ...}`. Each is answered by `{"result": ...}` or `{"error": ...}`, with the
// progress that was `received` before. A list in the list is made at once, and answered by the `answers` and the `order` in which
// they came.
// Run it with the Node that `install` installed: the SDK is looked for beside it.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

const require = createRequire(process.execPath);
const { Client, ProtocolError, SSEClientTransport, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');
const MODES = { auto: 'auto', legacy: 'legacy', modern: { pin: '2026-07-28' } };

const line = process.argv.slice(2);
const stdio = line.indexOf('--stdio');
const command = stdio < 0 ? [] : line.splice(stdio).slice(1);
const { values } = parseArgs({
    args: line,
    options: {
        era: { type: 'string', default: 'auto' },
        calls: { type: 'string' },
        url: { type: 'string' },
        transport: { type: 'string', default: 'http' }
    }
});

function transport() {
    if (command.length > 0) return new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: 'inherit' });
    if (values.transport === 'sse') return new SSEClientTransport(new URL(values.url));
    return new StreamableHTTPClientTransport(new URL(values.url));
}

const client = new Client(
    { name: 'typescript-calls', version: '1.0' },
    {
        capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
        versionNegotiation: { mode: MODES[values.era] }
    }
);
client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name: 'Ada', check: true } }));
client.setRequestHandler('sampling/createMessage', async () => ({
    role: 'assistant',
    content: { type: 'text', text: 'sampled' },
    model: 'none',
    stopReason: 'endTurn'
}));
client.setRequestHandler('roots/list', async () => ({ roots: [{ uri: 'file:///project', name: 'project' }] }));
await client.connect(transport());
const received = [];
const onprogress = ({ progress, total, message }) => received.push(['progress', progress, total ?? null, message ?? null]);
const methods = {
    'tools/list': () => client.listTools(),
    'resources/list': () => client.listResources(),
    'resources/templates/list': () => client.listResourceTemplates(),
    'prompts/list': () => client.listPrompts(),
    'tools/call': params => client.callTool(params, { onprogress }),
    'resources/read': params => client.readResource(params),
    'prompts/get': params => client.getPrompt(params)
};
const answered = async ({ method, params }) => {
    try {
        return { result: await methods[method](params ?? {}) };
    } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        return { error: { code: error.code, message: error.message } };
    }
};
const together = async calls => {
    const order = [];
    const inOrder = async (call, number) => {
        const answer = await answered(call);
        order.push(number);
        return answer;
    };
    return { answers: await Promise.all(calls.map(inOrder)), order };
};
const answers = [];
for (const call of JSON.parse(readFileSync(values.calls, 'utf8'))) {
    const reply = Array.isArray(call) ? await together(call) : await answered(call);
    answers.push({ ...reply, received: received.splice(0) });
}
await client.close();
console.log(JSON.stringify(answers));
