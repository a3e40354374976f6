// Makes requests with the official TypeScript SDK and prints what was answered as a JSON list.
//
//   node typescript_calls.mjs [--era auto|legacy|modern] --calls FILE --stdio COMMAND ARGUMENT...
//
// FILE has a JSON list of `{"method": ..., "params": ...}`. Each is answered by `{"result": ...}` or `{"error": ...}`.
// Run it with the Node that `install` installed: the SDK is looked for beside it.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

const require = createRequire(process.execPath);
const { Client, ProtocolError } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');
const MODES = { auto: 'auto', legacy: 'legacy', modern: { pin: '2026-07-28' } };

const line = process.argv.slice(2);
const command = line.splice(line.indexOf('--stdio')).slice(1);
const { values } = parseArgs({ args: line, options: { era: { type: 'string', default: 'auto' }, calls: { type: 'string' } } });

const client = new Client({ name: 'typescript-calls', version: '1.0' }, { versionNegotiation: { mode: MODES[values.era] } });
await client.connect(new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: 'inherit' }));
const methods = {
    'tools/list': () => client.listTools(),
    'resources/list': () => client.listResources(),
    'resources/templates/list': () => client.listResourceTemplates(),
    'prompts/list': () => client.listPrompts(),
    'tools/call': params => client.callTool(params),
    'resources/read': params => client.readResource(params),
    'prompts/get': params => client.getPrompt(params)
};
const answers = [];
for (const { method, params } of JSON.parse(readFileSync(values.calls, 'utf8'))) {
    try {
        answers.push({ result: await methods[method](params ?? {}) });
    } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        answers.push({ error: { code: error.code, message: error.message } });
    }
}
await client.close();
console.log(JSON.stringify(answers));
