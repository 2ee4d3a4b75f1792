import { completable, fromJsonSchema, McpServer, ResourceTemplate } from '@modelcontextprotocol/server'
import { z } from 'zod'

/** One pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
/** A WAV file without sound. */
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQAAAAA='

/**
 * The server that the scenarios of the conformance suite call, with the tools, resources and prompts that they name. It
 * offers what a server for one exchange can: requests to the client, whose answers come in an exchange of their own, are
 * left out. A log level and a subscription are taken, as the scenarios ask no more, but forgotten with the exchange.
 */
export function fixtureServer(): McpServer {
  const capabilities = { completions: {}, logging: {}, resources: { subscribe: true } }
  const server = new McpServer({ name: 'fixture', version: '1.0.0' }, { capabilities })
  addTools(server)
  addResources(server)
  server.server.setRequestHandler('resources/subscribe', () => ({}))
  server.server.setRequestHandler('resources/unsubscribe', () => ({}))
  addPrompts(server)
  return server
}

function addTools(server: McpServer): void {
  const resource = {
    uri: 'test://embedded-resource',
    mimeType: 'text/plain',
    text: 'This is an embedded resource content.',
  }
  server.registerTool('test_simple_text', { description: 'Text.' }, () => ({
    content: [{ type: 'text', text: 'This is a simple text response for testing.' }],
  }))
  server.registerTool('test_image_content', { description: 'A picture.' }, () => ({
    content: [{ type: 'image', data: PNG, mimeType: 'image/png' }],
  }))
  server.registerTool('test_audio_content', { description: 'Sound.' }, () => ({
    content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }],
  }))
  server.registerTool('test_embedded_resource', { description: 'A resource.' }, () => ({
    content: [{ type: 'resource', resource }],
  }))
  server.registerTool('test_multiple_content_types', { description: 'A mixture.' }, () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      { type: 'image', data: PNG, mimeType: 'image/png' },
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: '{"test":"data","value":123}',
        },
      },
    ],
  }))
  server.registerTool('test_error_handling', { description: 'Fails.' }, () => {
    throw new Error('This tool intentionally returns an error for testing')
  })
  server.registerTool('test_tool_with_progress', { description: 'Tells progress.' }, async (context) => {
    const progressToken = context.mcpReq._meta?.progressToken ?? 0
    for (const progress of [0, 50, 100]) {
      const params = { progressToken, progress, total: 100, message: `Completed step ${progress} of 100` }
      await context.mcpReq.notify({ method: 'notifications/progress', params })
    }
    return { content: [{ type: 'text', text: String(progressToken) }] }
  })
  server.registerTool('test_tool_with_logging', { description: 'Logs.' }, async (context) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await context.mcpReq.log('info', data)
    }
    return { content: [{ type: 'text', text: 'Logged.' }] }
  })
  const inputSchema = fromJsonSchema(SCHEMA_2020)
  server.registerTool('json_schema_2020_12_tool', { description: 'Takes a schema.', inputSchema }, () => ({
    content: [],
  }))
  server.registerTool('test_reconnection', { description: 'Answers without closing its stream first.' }, () => ({
    content: [{ type: 'text', text: 'Reconnection test completed successfully.' }],
  }))
}

/** Keywords of JSON Schema 2020-12 that must reach the client as they are. */
const SCHEMA_2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: { address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } } },
  properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
  additionalProperties: false,
} as const

function addResources(server: McpServer): void {
  server.registerResource('static text', 'test://static-text', { mimeType: 'text/plain' }, ({ href }) => ({
    contents: [{ uri: href, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
  }))
  server.registerResource('static binary', 'test://static-binary', { mimeType: 'image/png' }, ({ href }) => ({
    contents: [{ uri: href, mimeType: 'image/png', blob: PNG }],
  }))
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined })
  server.registerResource('by id', template, { mimeType: 'application/json' }, ({ href }, { id }) => ({
    contents: [
      {
        uri: href,
        mimeType: 'application/json',
        text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
      },
    ],
  }))
}

function addPrompts(server: McpServer): void {
  server.registerPrompt('test_simple_prompt', { description: 'Simple.' }, () => ({
    messages: [{ role: 'user', content: { type: 'text', text: 'This is a simple prompt for testing.' } }],
  }))
  const two = z.object({ arg1: completable(z.string(), () => ['test']), arg2: z.string() })
  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'Takes two.', argsSchema: two },
    ({ arg1, arg2 }) => ({
      messages: [
        { role: 'user', content: { type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` } },
      ],
    }),
  )
  const one = z.object({ resourceUri: z.string() })
  server.registerPrompt('test_prompt_with_embedded_resource', { description: 'Embeds.', argsSchema: one }, (args) => ({
    messages: [
      {
        role: 'user',
        content: {
          type: 'resource',
          resource: { uri: args.resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
        },
      },
      { role: 'user', content: { type: 'text', text: 'Please process the embedded resource above.' } },
    ],
  }))
  server.registerPrompt('test_prompt_with_image', { description: 'Shows.' }, () => ({
    messages: [
      { role: 'user', content: { type: 'image', data: PNG, mimeType: 'image/png' } },
      { role: 'user', content: { type: 'text', text: 'Please analyze the image above.' } },
    ],
  }))
}
