// Drives a server with the official TypeScript SDK and prints what it saw as one JSON object.
//
//   node typescript_client.mjs --url URL [--transport http|sse] [--era auto|legacy|modern|v1]
//   node typescript_client.mjs [--era ...] --stdio COMMAND ARGUMENT...
//
// The SDK is v2, or with `--era v1` the v1 that servers and clients were built with before, which knows the legacy era only.
// The server is expected to have the tools, the resource and the prompt of `servers/fastmcp_server.py`.
// Status 0: everything was answered. Otherwise `error` says what failed, here and on stderr.
// Run it with the Node that `install` installed: the SDK is looked for beside it.

import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

// The packages are in the cache, as is this Node, but this file is not: an `import` would not find them.
// An environment variable would not do either: SDK clients hand on only a few of those to stdio servers.
const require = createRequire(process.execPath);
const isV1 = process.argv.includes('v1');
const { Client, ProtocolError, SSEClientTransport, StdioClientTransport, StreamableHTTPClientTransport } = isV1 ? v1() : v2();

// How `versionNegotiation.mode` says which era it speaks. `legacy` is the SDK's default.
const MODES = { auto: 'auto', legacy: 'legacy', modern: { pin: '2026-07-28' }, v1: undefined };

function v2() {
    return { ...require('@modelcontextprotocol/client'), ...require('@modelcontextprotocol/client/stdio') };
}

// v1 with the signatures of v2.
function v1() {
    const sdk = '@modelcontextprotocol/sdk';
    const types = require(`${sdk}/types.js`);
    const requests = {
        'elicitation/create': types.ElicitRequestSchema,
        'sampling/createMessage': types.CreateMessageRequestSchema,
        'roots/list': types.ListRootsRequestSchema
    };
    class Client extends require(`${sdk}/client/index.js`).Client {
        setRequestHandler(method, handler) {
            super.setRequestHandler(requests[method] ?? method, handler);
        }
        callTool(params, options) {
            return super.callTool(params, undefined, options);
        }
        async connect(transport, options) {
            const setVersion = transport.setProtocolVersion?.bind(transport);
            transport.setProtocolVersion = version => {
                this.version = version;
                setVersion?.(version);
            };
            await super.connect(transport, options);
        }
        getNegotiatedProtocolVersion() {
            return this.version;
        }
    }
    const transports = ['sse', 'stdio', 'streamableHttp'].map(name => require(`${sdk}/client/${name}.js`));
    return Object.assign({ Client, ProtocolError: types.McpError }, ...transports);
}

function readArguments() {
    const line = process.argv.slice(2);
    const stdio = line.indexOf('--stdio');
    const command = stdio < 0 ? [] : line.splice(stdio).slice(1);
    const { values } = parseArgs({
        args: line,
        options: {
            url: { type: 'string' },
            transport: { type: 'string', default: 'http' },
            era: { type: 'string', default: 'auto' },
            timeout: { type: 'string', default: '30' }
        }
    });
    if (Boolean(values.url) === command.length > 0) throw new Error('give either --url or --stdio');
    if (!(values.era in MODES)) throw new Error(`no era ${values.era}`);
    if (!['http', 'sse'].includes(values.transport)) throw new Error(`no transport ${values.transport}`);
    return { ...values, command };
}

function transportFor({ url, transport, command }) {
    if (command.length > 0) return new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: 'inherit' });
    if (transport === 'sse') return new SSEClientTransport(new URL(url));
    return new StreamableHTTPClientTransport(new URL(url));
}

function newClient(era) {
    const client = new Client(
        { name: 'typescript-client', version: '1.0' },
        {
            capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
            versionNegotiation: { mode: MODES[era] }
        }
    );
    // The same handlers answer server requests in the legacy era and `input_required` in the modern one.
    client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name: 'Ada' } }));
    client.setRequestHandler('sampling/createMessage', async () => ({
        role: 'assistant',
        content: { type: 'text', text: 'sampled' },
        model: 'none',
        stopReason: 'endTurn'
    }));
    client.setRequestHandler('roots/list', async () => ({ roots: [{ uri: 'file:///project', name: 'project' }] }));
    return client;
}

function textOf(result) {
    const text = result.content.filter(block => block.type === 'text').map(block => block.text).join('');
    if (result.isError) throw new Error(`the tool failed: ${text}`);
    return text;
}

async function callUnknownTool(client) {
    let result;
    try {
        result = await client.callTool({ name: 'no_such_tool', arguments: {} });
    } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        // v1 puts the code into the message, too.
        const message = error.message.replace(/^MCP error -\d+: /, '');
        return { kind: 'protocol_error', code: error.code, message };
    }
    if (!result.isError) throw new Error('an unknown tool was answered as if it existed');
    return { kind: 'is_error', code: null, message: result.content[0].text };
}

async function talk(client, seen) {
    const call = async (name, args, options) => textOf(await client.callTool({ name, arguments: args }, options));
    seen.protocol_version = client.getNegotiatedProtocolVersion();
    seen.tools = (await client.listTools()).tools.map(tool => tool.name);
    seen.echo = await call('echo', { message: 'hello' });
    seen.add = await call('add', { a: 2, b: 40 });
    seen.unknown = await callUnknownTool(client);

    let progress = 0;
    await call('slow', { steps: 3 }, { onprogress: () => progress++ });
    seen.progress = progress;

    seen.ask = await call('ask', { question: 'name?' });
    seen.sample = await call('sample', { prompt: 'hi' });
    seen.roots = await call('roots', {});

    const uris = (await client.listResources()).resources.map(resource => resource.uri);
    if (!uris.includes('tiny://greeting')) throw new Error(`tiny://greeting is not listed, only ${uris}`);
    seen.resource = (await client.readResource({ uri: 'tiny://greeting' })).contents[0].text;

    const prompts = (await client.listPrompts()).prompts.map(prompt => prompt.name);
    if (!prompts.includes('greet')) throw new Error(`the prompt greet is not listed, only ${prompts}`);
    seen.prompt = (await client.getPrompt({ name: 'greet', arguments: { who: 'Ada' } })).messages[0].content.text;

    const ref = { type: 'ref/prompt', name: 'greet' };
    seen.completion = (await client.complete({ ref, argument: { name: 'who', value: 'A' } })).completion.values;
}

const keys = 'protocol_version tools echo add unknown progress ask sample roots resource prompt completion error';
const seen = Object.fromEntries(keys.split(' ').map(key => [key, null]));
try {
    const settings = readArguments();
    const timeout = Number(settings.timeout) * 1000;
    const alarm = setTimeout(() => fail(new Error(`not done after ${settings.timeout} s`)), timeout);
    const client = newClient(settings.era);
    const transport = transportFor(settings);
    await client.connect(transport, { timeout });
    await talk(client, seen);
    // Legacy sessions on HTTP end with a DELETE, which `close` alone does not send.
    await transport.terminateSession?.();
    await client.close();
    clearTimeout(alarm);
    console.log(JSON.stringify(seen));
} catch (error) {
    fail(error);
}

function fail(error) {
    seen.error = `${error.name}: ${error.message}`;
    console.error(error.stack);
    console.log(JSON.stringify(seen));
    process.exit(1);
}
