// What the conformance suite wants of a server, as far as the official TypeScript SDK (v2) has it without much ado.
//
//   node reference_server.mjs [PORT]      # PORT 0, the default, picks a free one
//
// It is here to be recorded: whatever the suite finds of it, it must find of it behind a recorder too.

import { createRequire } from 'node:module';

import { serveHttp } from '../servers/typescript_http.mjs';

const require = createRequire(process.execPath);
const { McpServer, ResourceTemplate, completable, inputRequired, inputResponse } = require('@modelcontextprotocol/server');
const { z } = require('zod');

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAD//w==';

const text = text => ({ content: [{ type: 'text', text }] });
const block = (...content) => ({ content });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const resource = (uri, mimeType, text) => ({ type: 'resource', resource: { uri, mimeType, text } });
const pause = () => new Promise(resolve => setTimeout(resolve, 10));
const name = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };

function newServer() {
    const capabilities = { logging: {}, completions: {}, resources: { subscribe: true } };
    const server = new McpServer({ name: 'reference', version: '1.0' }, { capabilities });
    const tool = (name, inputSchema, answer) =>
        server.registerTool(name, { description: name, ...(inputSchema && { inputSchema: z.object(inputSchema) }) }, answer);
    const simple = (name, result) => tool(name, undefined, async () => result);

    simple('test_simple_text', text('This is a simple text response for testing.'));
    simple('test_image_content', block(image));
    simple('test_audio_content', block({ type: 'audio', data: WAV, mimeType: 'audio/wav' }));
    simple('test_embedded_resource', block(resource('test://embedded-resource', 'text/plain', 'Embedded')));
    simple(
        'test_multiple_content_types',
        block({ type: 'text', text: 'Mixed' }, image, resource('test://mixed', 'application/json', '{}'))
    );
    simple('test_error_handling', { ...text('This tool intentionally returns an error for testing'), isError: true });

    tool('test_tool_with_logging', undefined, async context => {
        for (const data of ['started', 'working', 'done']) {
            await context.mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data } });
            await pause();
        }
        return text('Logged');
    });

    tool('test_tool_with_progress', undefined, async context => {
        const progressToken = context.mcpReq._meta?.progressToken;
        for (const progress of [0, 50, 100]) {
            if (progressToken !== undefined) {
                await context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
            }
            await pause();
        }
        return text('Done');
    });

    // Requests input once; `describe` makes the text of the answer from it.
    const asking = (tool_name, schema, key, question, describe) =>
        tool(tool_name, schema, async (...given) => {
            const context = given.at(-1);
            const answer = inputResponse(context.mcpReq.inputResponses, key);
            if (answer.kind === 'missing') return inputRequired({ inputRequests: { [key]: question(given[0]) }, requestState: 'asked' });
            return text(describe(answer));
        });
    const sample = prompt =>
        inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 100 });
    asking('test_sampling', { prompt: z.string() }, 'answer', ({ prompt }) => sample(prompt), ({ result }) => `LLM response: ${result?.content?.text}`);
    asking(
        'test_elicitation',
        { message: z.string() },
        'user',
        ({ message }) =>
            inputRequired.elicit({
                message,
                requestedSchema: {
                    type: 'object',
                    properties: { username: { type: 'string' }, email: { type: 'string' } },
                    required: ['username', 'email']
                }
            }),
        answer => `User response: ${JSON.stringify(answer)}`
    );
    asking(
        'test_input_required_result_elicitation',
        undefined,
        'user_name',
        () => inputRequired.elicit({ message: 'What is your name?', requestedSchema: name }),
        answer => `Hello, ${answer.content?.name}!`
    );
    asking(
        'test_input_required_result_sampling',
        undefined,
        'capital_question',
        () => sample('What is the capital of France?'),
        ({ result }) => `${result?.content?.text}`
    );
    asking('test_input_required_result_list_roots', undefined, 'client_roots', () => inputRequired.listRoots(), answer =>
        JSON.stringify(answer)
    );

    server.registerResource('text', 'test://static-text', { description: 'Text', mimeType: 'text/plain' }, async uri => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }]
    }));
    server.registerResource('bytes', 'test://static-binary', { description: 'Bytes', mimeType: 'image/png' }, async uri => ({
        contents: [{ uri: uri.href, mimeType: 'image/png', blob: PNG }]
    }));
    server.registerResource(
        'by id',
        new ResourceTemplate('test://template/{id}/data', { list: undefined }),
        { description: 'By id', mimeType: 'application/json' },
        async (uri, { id }) => ({ contents: [{ uri: uri.href, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }] })
    );

    const prompt = (name, argsSchema, messages) =>
        server.registerPrompt(name, { description: name, ...(argsSchema && { argsSchema: z.object(argsSchema) }) }, async given => ({
            messages: messages(given).map(content => ({ role: 'user', content }))
        }));
    const says = text => ({ type: 'text', text });
    prompt('test_simple_prompt', undefined, () => [says('This is a simple prompt for testing.')]);
    prompt(
        'test_prompt_with_arguments',
        { arg1: completable(z.string(), value => ['paris', 'park', 'party'].filter(word => word.startsWith(value))), arg2: z.string() },
        ({ arg1, arg2 }) => [says(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)]
    );
    prompt('test_prompt_with_embedded_resource', { resourceUri: z.string() }, ({ resourceUri }) => [
        resource(resourceUri, 'text/plain', 'Embedded'),
        says('Please process the embedded resource above.')
    ]);
    prompt('test_prompt_with_image', undefined, () => [image, says('Please analyze the image above.')]);

    return server;
}

serveHttp(newServer, Number(process.argv[2] ?? 0));
