// Calls tools that go wrong with the official TypeScript SDK and prints what it saw, one JSON object a case.
//
//   node typescript_faults.mjs < CASES > SEEN
//
// A case is {"name", "era", "patience", and "stdio": [COMMAND, ARGUMENT...], "http": URL or "sse": URL}. The tool is `t`; it
// is called twice on one connection. What was seen is `answer`, `failure` (of the tool), `broken base64`, `error`
// or `silence`.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const require = createRequire(process.execPath);
const { Client, SSEClientTransport, StdioClientTransport, StreamableHTTPClientTransport } = {
    ...require('@modelcontextprotocol/client'),
    ...require('@modelcontextprotocol/client/stdio')
};
const MODES = { legacy: 'legacy', modern: { pin: '2026-07-28' } };

function transportFor(testCase) {
    if (testCase.stdio) {
        const [command, ...args] = testCase.stdio;
        return new StdioClientTransport({ command, args, stderr: 'ignore' });
    }
    if (testCase.sse) return new SSEClientTransport(new URL(testCase.sse));
    return new StreamableHTTPClientTransport(new URL(testCase.http));
}

async function call(client, patience) {
    let late;
    const silence = new Promise(resolve => (late = setTimeout(() => resolve('silence'), patience * 1000)));
    const called = client.callTool({ name: 't', arguments: {} }, { timeout: patience * 1000 + 20000 }).then(
        result => {
            if (result.isError) return 'failure';
            const image = result.content.find(block => block.type === 'image');
            return !image || image.data === 'AAAA' ? 'answer' : 'broken base64';
        },
        () => 'error'
    );
    const seen = await Promise.race([called, silence]);
    clearTimeout(late);
    return seen;
}

async function play(testCase) {
    const seen = [];
    const client = new Client({ name: 'typescript-faults', version: '1.0' }, { versionNegotiation: { mode: MODES[testCase.era] } });
    // Errors outside of a call are not part of the result.
    client.onerror = () => {};
    try {
        await client.connect(transportFor(testCase), { timeout: 60000 });
        // A client that has the list checks structured content.
        await client.listTools();
        seen.push(await call(client, testCase.patience));
        seen.push(await call(client, testCase.patience));
    } catch (error) {
        if (seen.length === 0) seen.push(`no conversation: ${error.name}`);
    }
    // However the conversation ends, it does not matter any more.
    client.close().catch(() => {});
    return { name: testCase.name, seen };
}

process.on('uncaughtException', () => {});
process.on('unhandledRejection', () => {});
const cases = JSON.parse(readFileSync(0, 'utf8'));
// So many conversations at once.
const AT_ONCE = 25;
const seen = [];
const next = cases.entries();
async function worker() {
    for (const [at, testCase] of next) seen[at] = await play(testCase);
}
await Promise.all(Array.from({ length: AT_ONCE }, worker));
process.stdout.write(seen.map(one => JSON.stringify(one) + '\n').join(''), () => process.exit(0));
