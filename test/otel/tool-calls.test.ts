import * as api from '@opentelemetry/api'
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { fetchHandler } from '../../src/adapters/fetch.ts'
import { type OtelOptions, otel } from '../../src/otel/index.ts'
import { ERAS, type Era } from '../mcp/support/mcp-client.ts'
import { type StartedMcp, startMcp } from '../mcp/support/start-mcp.ts'
import { callTool, errorIn } from '../mcp/support/tool-result.ts'
import { TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT_ID = 'b7ad6b7169203331'
const TRACEPARENT = `00-${TRACE_ID}-${PARENT_ID}-01`
const MESSAGE_TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const MESSAGE_PARENT_ID = '00f067aa0ba902b7'
const MESSAGE_TRACEPARENT = `00-${MESSAGE_TRACE_ID}-${MESSAGE_PARENT_ID}-01`

const CHAT = { model: 'chat-relayed', messages: [{ role: 'user', content: 'hello' }] }

const exporter = new InMemorySpanExporter()
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })

let started: StartedMcp

beforeAll(() => {
  api.propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
})
afterAll(() => {
  api.propagation.disable()
  api.context.disable()
})
afterEach(async () => {
  await started.close()
  exporter.reset()
})

async function begin(options: OtelOptions = {}): Promise<void> {
  const observe = [otel({ tracerProvider, ...options })]
  started = await startMcp({ gateway: { observe, drainMs: 100 }, mcp: { allowedHosts: 'any' } })
}

/** The one ended span of which that is true. */
function spanWhere(isIt: (span: ReadableSpan) => boolean): ReadableSpan {
  const found = exporter.getFinishedSpans().filter(isIt)
  expect(found).toHaveLength(1)
  return found[0]!
}

function toolSpan(): ReadableSpan {
  return spanWhere(({ name }) => name.startsWith('tools/call'))
}

/** The span of the request that a tool made, once it has ended. */
async function requestSpan(): Promise<ReadableSpan> {
  await vi.waitFor(() => spanWhere(({ name }) => name.startsWith('signalbox ')))
  return spanWhere(({ name }) => name.startsWith('signalbox '))
}

function parentOf(span: ReadableSpan): string | undefined {
  return span.parentSpanContext?.spanId
}

describe('the span of a tool call', () => {
  test.each(Object.keys(ERAS) as Era[])(
    'in revision %s is the parent of its request and of the call to the vendor',
    async (era) => {
      await begin()
      const client = await started.connect({ era })
      expect((await callTool(client, 'chat_complete', CHAT)).isError).toBe(false)
      const request = await requestSpan()
      const attempt = spanWhere(({ name }) => name === 'chat gpt-5.4')
      const tool = toolSpan()

      expect(tool.name).toBe('tools/call chat_complete')
      expect(tool.kind).toBe(SpanKind.SERVER)
      expect(tool.attributes).toMatchObject({
        'mcp.method.name': 'tools/call',
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'chat_complete',
        'mcp.protocol.version': era,
        'jsonrpc.request.id': expect.stringMatching(/^\d+$/),
        'signalbox.account.id': TEST_ACCOUNT,
        'signalbox.key.id': expect.any(String),
        'signalbox.ending': 'completed',
      })
      expect(tool.status.code).toBe(SpanStatusCode.UNSET)
      expect(tool.attributes).not.toHaveProperty(['error.type'])
      expect(parentOf(tool)).toBeUndefined()
      expect(parentOf(request)).toBe(tool.spanContext().spanId)
      expect(request.kind).toBe(SpanKind.INTERNAL)
      expect(parentOf(attempt)).toBe(request.spanContext().spanId)
      expect(attempt.kind).toBe(SpanKind.CLIENT)
    },
  )

  test('has the session that a client of the older revision was given', async () => {
    await begin()
    const client = await started.connect()
    await callTool(client, 'get_balance', {})

    expect(toolSpan().attributes['mcp.session.id']).toMatch(/^mcp_/)
  })

  test('has no children if the tool calls no model', async () => {
    await begin()
    await callTool(await started.connect(), 'list_models', {})

    expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual(['tools/call list_models'])
  })

  test('holds no argument, answer or credential', async () => {
    await begin()
    const client = await started.connect()
    const canary = 'canary-41d7'
    await callTool(client, 'chat_complete', { ...CHAT, messages: [{ role: 'user', content: canary }] })
    await callTool(client, 'chat_complete', { ...CHAT, model: canary })
    await expect(callTool(client, canary, {})).rejects.toThrow()
    const told = exporter.getFinishedSpans().map((span) => [span.name, span.attributes, span.events, span.status])

    expect(told.map(([name]) => name)).toContain('tools/call chat_complete')
    expect(JSON.stringify(told)).not.toMatch(/canary|sk-test/)
  })

  test('has the status of an error that the model reads, and its code', async () => {
    await begin()
    const shown = errorIn(await callTool(await started.connect(), 'chat_complete', { ...CHAT, model: 'unheard-of' }))
    const request = await requestSpan()
    const tool = toolSpan()

    expect(shown['code']).toBe('model_not_found')
    expect(tool.status.code).toBe(SpanStatusCode.ERROR)
    expect(tool.attributes).toMatchObject({
      'error.type': 'tool_error',
      'signalbox.error.code': 'model_not_found',
      'signalbox.ending': 'failed',
    })
    expect(parentOf(request)).toBe(tool.spanContext().spanId)
    expect(request.status.code).toBe(SpanStatusCode.UNSET)
  })

  test('has the status of arguments that the tool refuses before any request', async () => {
    await begin()
    errorIn(await callTool(await started.connect(), 'estimate_cost', { endpoint: 'no-such-endpoint' }))
    const tool = toolSpan()

    expect(tool.status.code).toBe(SpanStatusCode.ERROR)
    expect(tool.attributes['signalbox.error.code']).toBe('invalid_request')
    expect(exporter.getFinishedSpans()).toEqual([tool])
  })

  test('names no tool that does not exist, and has the error of the protocol', async () => {
    await begin()
    const client = await started.connect()
    await expect(callTool(client, 'no_such_tool', {})).rejects.toThrow('no_such_tool')
    const tool = toolSpan()

    expect(tool.name).toBe('tools/call')
    expect(tool.attributes).toMatchObject({ 'error.type': '-32602', 'rpc.response.status_code': '-32602' })
    expect(tool.attributes).not.toHaveProperty(['gen_ai.tool.name'])
    expect(tool.status.code).toBe(SpanStatusCode.ERROR)
  })

  test('ends without a fault for a caller who cancels', async () => {
    await begin()
    const client = await started.connect()
    const stop = new AbortController()
    const slow = { ...CHAT, messages: [{ role: 'user', content: '[[fault:hang]] hello' }] }
    const calling = callTool(client, 'chat_complete', slow, { signal: stop.signal })
    calling.catch(() => undefined)
    await started.sandbox.nextRequest()
    const ending = started.nextEnded()
    stop.abort()
    await expect(calling).rejects.toThrow()
    await ending
    const request = await requestSpan()
    const tool = toolSpan()

    expect(tool.attributes).toMatchObject({ 'signalbox.ending': 'abandoned', 'error.type': 'client_closed_request' })
    expect(tool.status.code).toBe(SpanStatusCode.UNSET)
    expect(parentOf(request)).toBe(tool.spanContext().spanId)
  })
})

describe('the trace context of a tool call', () => {
  test.each([
    ['parent', PARENT_ID, []],
    ['link', undefined, [TRACE_ID]],
    ['ignore', undefined, []],
  ] as const)('in the HTTP request is taken as its %s', async (incoming, parentId, links) => {
    await begin({ incoming })
    const client = await started.connect({ headers: { traceparent: TRACEPARENT } })
    await callTool(client, 'chat_complete', CHAT)
    const request = await requestSpan()
    const tool = toolSpan()

    expect(parentOf(tool)).toBe(parentId)
    expect(tool.spanContext().traceId === TRACE_ID).toBe(incoming === 'parent')
    expect(tool.links.map(({ context }) => context.traceId)).toEqual(links)
    expect(parentOf(request)).toBe(tool.spanContext().spanId)
    expect(request.links).toEqual([])
  })

  test.each([
    ['parent', MESSAGE_PARENT_ID, [TRACE_ID]],
    ['link', undefined, [TRACE_ID, MESSAGE_TRACE_ID]],
    ['ignore', undefined, []],
  ] as const)(
    'prefers the context in the message to that of the HTTP request, as its %s',
    async (incoming, parentId, links) => {
      await begin({ incoming })
      const client = await started.connect({ headers: { traceparent: TRACEPARENT } })
      await client.callTool({ name: 'get_balance', arguments: {}, _meta: { traceparent: MESSAGE_TRACEPARENT } })
      const tool = toolSpan()

      expect(parentOf(tool)).toBe(parentId)
      expect(tool.links.map(({ context }) => context.traceId)).toEqual(links)
    },
  )

  test('is the span of the host if neither has one, and the request is still within the tool call', async () => {
    await begin()
    const host = tracerProvider.getTracer('host').startSpan('POST /mcp')
    const answer = await api.context.with(trace.setSpan(api.context.active(), host), () => postToolCall())
    expect(answer.status).toBe(200)
    await answer.text()
    const request = await requestSpan()
    const tool = toolSpan()

    expect(parentOf(tool)).toBe(host.spanContext().spanId)
    expect(tool.kind).toBe(SpanKind.SERVER)
    expect(parentOf(request)).toBe(tool.spanContext().spanId)
  })

  test('is ignored in a message if it is malformed', async () => {
    await begin()
    const client = await started.connect()
    for (const traceparent of ['garbage', 7, `00-${'0'.repeat(32)}-${PARENT_ID}-01`])
      await client.callTool({ name: 'get_balance', arguments: {}, _meta: { traceparent } })

    expect(exporter.getFinishedSpans().map(parentOf)).toEqual([undefined, undefined, undefined])
  })

  test('is continued for a vendor that is named', async () => {
    await begin({ propagateTo: ['openai'] })
    await callTool(await started.connect(), 'chat_complete', CHAT)
    await requestSpan()
    const attempt = spanWhere(({ name }) => name === 'chat gpt-5.4')

    expect(started.sandbox.requests.at(-1)?.headers['traceparent']).toBe(
      `00-${toolSpan().spanContext().traceId}-${attempt.spanContext().spanId}-01`,
    )
  })
})

test('nothing is kept of a tool call where no SDK records', async () => {
  started = await startMcp({ gateway: { observe: [otel()] } })
  const observer = otel()
  const facts = { tool: 'get_balance', method: 'tools/call', accountId: 'a', keyId: 'k', startedAtMs: 1_000 }

  expect((await callTool(await started.connect(), 'chat_complete', CHAT)).isError).toBe(false)
  expect(observer.toolCallStarted?.({ ...facts, header: () => undefined, metadata: () => undefined })).toBeUndefined()
  expect(exporter.getFinishedSpans()).toEqual([])
})

/** Sends a tool call through the fetch adapter, as a host does that has a span of its own around it. */
function postToolCall(): Promise<Response> {
  const headers = {
    authorization: `Bearer ${TEST_KEY}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    traceparent: TRACEPARENT,
  }
  const params = { name: 'chat_complete', arguments: CHAT }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  return fetchHandler(started.mcp)(new Request('http://localhost/mcp', { method: 'POST', headers, body }))
}
