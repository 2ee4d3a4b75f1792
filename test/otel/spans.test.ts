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
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../src/gateway/options.ts'
import { type OtelOptions, otel } from '../../src/otel/index.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT_ID = 'b7ad6b7169203331'
const TRACEPARENT = `00-${TRACE_ID}-${PARENT_ID}-01`

const exporter = new InMemorySpanExporter()
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })

let started: StartedGateway

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

async function begin(otelOptions: OtelOptions = {}, options: Partial<GatewayOptions> = {}) {
  started = await startGateway({ observe: [otel({ tracerProvider, ...otelOptions })], ...options })
  return started
}

async function chat(text: string, rest: Record<string, unknown> = {}, headers: Record<string, string> = {}) {
  const response = await started.post(CHAT, chatBody('chat-relayed', text, rest), headers)
  await response.text()
  return response
}

/** The span of the request, and those of its attempts in the order of their beginning. */
function finished() {
  const spans = exporter.getFinishedSpans()
  const [request, ...others] = spans.filter(({ name }) => name.startsWith('signalbox '))
  const attempts = spans.filter(({ kind }) => kind === SpanKind.CLIENT)
  expect(others).toEqual([])
  expect(spans).toHaveLength(1 + attempts.length)
  return { request: request!, attempts }
}

function parentOf(span: ReadableSpan | undefined): string | undefined {
  return span?.parentSpanContext?.spanId
}

describe('spans of a request', () => {
  test('are one for it and one for the call that answered it, with its tokens and exact cost', async () => {
    await begin()
    const { usage, costNanoDollars, requestId } = await started.ended(await chat('hello'))
    const { request, attempts } = finished()
    const [attempt] = attempts

    expect(request.name).toBe('signalbox chat')
    expect(request.kind).toBe(SpanKind.SERVER)
    expect(request.attributes).toMatchObject({
      'signalbox.request.id': requestId,
      'signalbox.account.id': TEST_ACCOUNT,
      'signalbox.ending': 'completed',
      'signalbox.attempts': 1,
    })
    expect(Math.round(Number(request.attributes['signalbox.cost']) * 1e9)).toBe(Number(costNanoDollars))
    expect(Object.keys(request.attributes).filter((name) => name.startsWith('gen_ai.'))).toEqual([])
    expect(attempts).toHaveLength(1)
    expect(attempt?.name).toBe('chat gpt-5.4')
    expect(parentOf(attempt)).toBe(request.spanContext().spanId)
    expect(attempt?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'gpt-5.4',
      'server.address': '127.0.0.1',
      'gen_ai.usage.input_tokens': usage?.inputTokens,
      'gen_ai.usage.output_tokens': usage?.outputTokens,
      'signalbox.outcome': 'ok',
    })
    expect(attempt?.status.code).toBe(SpanStatusCode.UNSET)
  })

  test('have the usage on the attempt that was charged only, after one that failed', async () => {
    await begin()
    started.sandbox.fault({ kind: 'status', status: 500, times: 1 })
    await started.ended(await chat('hello'))
    const { request, attempts } = finished()

    expect(attempts.map(({ attributes }) => attributes['signalbox.outcome'])).toEqual(['unavailable', 'ok'])
    expect(attempts.map(({ status }) => status.code)).toEqual([SpanStatusCode.ERROR, SpanStatusCode.UNSET])
    expect(attempts[0]?.attributes['error.type']).toBe('upstream_unavailable')
    expect(attempts.map(({ attributes }) => 'gen_ai.usage.input_tokens' in attributes)).toEqual([false, true])
    expect(request.attributes['signalbox.attempts']).toBe(2)
  })

  const endings: Record<string, { text: string; rest?: object; ending: string; error?: string; isError?: boolean }> = {
    'a whole stream': { text: 'hello', rest: { stream: true }, ending: 'completed' },
    'a refusal of the gateway': {
      text: 'hello',
      rest: { temperature: 'hot' },
      ending: 'refused',
      error: 'invalid_request',
    },
    'a refusal of the vendor': {
      text: '[[fault:status=400]] hello',
      ending: 'failed',
      error: 'upstream_rejected',
      isError: true,
    },
    'a vendor that is away': {
      text: '[[fault:refuse]] hello',
      ending: 'failed',
      error: 'upstream_unavailable',
      isError: true,
    },
    garbage: { text: '[[fault:garbage]] hello', ending: 'failed', error: 'upstream_invalid_response', isError: true },
    'a stream that is cut': {
      ...{ text: '[[fault:reset-mid-stream=3]] one two three four', rest: { stream: true } },
      ...{ ending: 'failed', error: 'upstream_unavailable', isError: true },
    },
  }

  test.each(Object.entries(endings))(
    'end once for %s',
    async (_name, { text, rest, ending, error, isError = false }) => {
      await begin()
      const response = await chat(text, { ...rest })
      if (ending !== 'refused') await started.ended(response)
      const { request, attempts } = finished()

      expect(request.attributes['signalbox.ending']).toBe(ending)
      expect(request.attributes['error.type']).toBe(error)
      expect(request.status.code).toBe(isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET)
      expect(attempts.length).toBe(ending === 'refused' ? 0 : request.attributes['signalbox.attempts'])
      expect(attempts.map(parentOf)).toEqual(attempts.map(() => request.spanContext().spanId))
    },
  )

  test('are for the calls of an answer in the background too, which run after its request', async () => {
    await begin()
    started.sandbox.fault({ kind: 'status', status: 500, times: 1 })
    const submitted = await started.post('/v1/responses', { model: 'chat-relayed', input: 'hello', background: true })
    const { id } = (await submitted.json()) as { id: string }
    await started.taskEnded(id)
    const spans = exporter.getFinishedSpans()
    const attempts = spans.filter(({ kind }) => kind === SpanKind.CLIENT)

    expect(spans.map(({ name }) => name).sort()).toEqual(['chat gpt-5.4', 'chat gpt-5.4', 'signalbox responses'])
    expect(attempts.map(({ attributes }) => attributes['signalbox.outcome'])).toEqual(['unavailable', 'ok'])
    expect(attempts.map(parentOf)).toEqual([undefined, undefined])
    for (const { attributes } of attempts)
      expect(attributes).toMatchObject({
        'signalbox.request.id': submitted.headers.get('x-request-id'),
        'signalbox.endpoint': 'responses',
        'signalbox.vendor': 'openai',
      })
  })

  test('end without a fault when a caller disconnects', async () => {
    await begin()
    const controller = new AbortController()
    const ended = started.nextEnded()
    const body = chatBody('chat-relayed', '[[fault:hang-body=3]] one two three four', { stream: true })
    const response = await started.post(CHAT, body, {}, controller.signal)
    await response.body?.getReader().read()
    controller.abort()
    await ended
    const { request, attempts } = finished()

    expect(request.attributes['signalbox.ending']).toBe('abandoned')
    expect([request, ...attempts].map(({ attributes }) => attributes['error.type'])).toEqual([
      'client_closed_request',
      'client_closed_request',
    ])
    expect([request, ...attempts].map(({ status }) => status.code)).toEqual([0, 0])
    expect(attempts[0]?.attributes['gen_ai.response.time_to_first_chunk']).toBeGreaterThan(0)
    expect(attempts[0]?.attributes['gen_ai.usage.output_tokens']).toBeGreaterThan(0)
  })

  test('have an event for a step at the store that failed, or took a millisecond or more', async () => {
    await begin()
    const observer = otel({ tracerProvider })
    const facts = { requestId: 'req_1', endpoint: 'chat', startedAtMs: 1_000, header: () => undefined }
    const request = observer.requestStarted?.(facts)
    observer.store?.(request, { operation: 'reserve', isOk: true, durationMs: 0.4 })
    observer.store?.(request, { operation: 'reserve', isOk: false, durationMs: 0.4 })
    observer.store?.(request, { operation: 'settle', isOk: true, durationMs: 12 })
    observer.requestEnded?.(request, {
      ...{ endpoint: 'chat', outcome: 'completed', status: 200, code: undefined, accountId: 'a', keyId: 'k' },
      ...{ requestedModel: 'm', model: 'm', vendor: 'v', isStream: false, usage: undefined, costNanoDollars: 0n },
      ...{ endedAtMs: 1_020, durationMs: 20, firstByteMs: undefined, overheadMs: 1, attempts: 0 },
    })

    expect(finished().request.events.map(({ name, attributes }) => [name, attributes])).toEqual([
      ['reserve', { 'signalbox.outcome': 'failed', 'signalbox.store.duration_ms': 0.4 }],
      ['settle', { 'signalbox.outcome': 'ok', 'signalbox.store.duration_ms': 12 }],
    ])
  })

  test('hold no prompt, answer, key, user or tag, through retries and failures', async () => {
    await begin()
    const canary = 'canary-41d7'
    const headers = { 'x-signalbox-user': canary, 'x-signalbox-tags': canary }
    for (const fault of ['', '[[fault:status=500]]', '[[fault:leak-key]]', '[[fault:garbage]]'])
      await chat(`${fault} ${canary}`, { user: canary }, headers)
    const model = await started.post(CHAT, chatBody(canary, canary))
    await model.text()
    const told = JSON.stringify(
      exporter.getFinishedSpans().map((span) => [span.name, span.attributes, span.events, span.status]),
    )

    expect(told).toContain('signalbox chat')
    expect(told).not.toMatch(/canary|sk-test/)
  })

  test('name the cost and the cached tokens as the backend knows them', async () => {
    await begin({ costAttribute: true, semconv: '1.41' })
    const { costNanoDollars } = await started.ended(await chat('hello cache-write'))
    const { attempts } = finished()

    expect(attempts[0]?.attributes['gen_ai.usage.cost']).toBe(Number(costNanoDollars) / 1e9)
    expect(attempts[0]?.attributes).not.toHaveProperty(['gen_ai.usage.cache_write.input_tokens'])
  })

  test('omit the calls on request', async () => {
    await begin({ attempts: false })
    await started.ended(await chat('hello'))

    expect(finished().attempts).toEqual([])
  })
})

describe('the trace context', () => {
  test.each([
    ['parent', TRACE_ID, PARENT_ID, []],
    ['link', undefined, undefined, [TRACE_ID]],
    ['ignore', undefined, undefined, []],
  ] as const)("uses the caller's context as its %s", async (incoming, traceId, parentId, links) => {
    await begin({ incoming })
    await started.ended(await chat('hello', {}, { traceparent: TRACEPARENT }))
    const { request, attempts } = finished()

    if (traceId === undefined) expect(request.spanContext().traceId).not.toBe(TRACE_ID)
    else expect(request.spanContext().traceId).toBe(traceId)
    expect(parentOf(request)).toBe(parentId)
    expect(request.links.map(({ context }) => context.traceId)).toEqual(links)
    expect(attempts[0]?.spanContext().traceId).toBe(request.spanContext().traceId)
  })

  test('prefers a span of the host to that of the caller', async () => {
    await begin()
    const span = tracerProvider.getTracer('host').startSpan('POST /ai')
    await api.context.with(trace.setSpan(api.context.active(), span), async () => {
      const headers = {
        authorization: 'Bearer sk-test-0123456789',
        'content-type': 'application/json',
        traceparent: TRACEPARENT,
      }
      const body = JSON.stringify(chatBody('chat-relayed', 'hello'))
      await started.gateway.fetch(
        new Request('http://gateway.test/v1/chat/completions', { method: 'POST', headers, body }),
      )
    })
    const { request } = finished()

    expect(request.kind).toBe(SpanKind.INTERNAL)
    expect(parentOf(request)).toBe(span.spanContext().spanId)
  })

  test('reaches no vendor, unless it is named: then that of the attempt, without baggage', async () => {
    const headersSeen = async (options: OtelOptions) => {
      await begin(options)
      await started.ended(await chat('hello', {}, { traceparent: TRACEPARENT, baggage: 'user=canary' }))
      const { attempts } = finished()
      const headers = started.sandbox.requests.at(-1)?.headers
      return { headers, spanId: attempts[0]?.spanContext().spanId }
    }
    const hidden = await headersSeen({})
    await started.close()
    exporter.reset()
    const named = await headersSeen({ propagateTo: ['openai'] })

    expect(hidden.headers).not.toHaveProperty('traceparent')
    expect(named.headers?.['traceparent']).toBe(`00-${TRACE_ID}-${named.spanId}-01`)
    expect(named.headers).not.toHaveProperty('baggage')
    expect(hidden.headers).not.toHaveProperty('baggage')
  })
})

describe('otel()', () => {
  test('stores nothing about a request if no SDK records, and still continues a trace if a propagator reads one', async () => {
    await begin()
    const observer = otel()
    const facts = { requestId: 'req_1', endpoint: 'chat', startedAtMs: 1_000 }
    const traced = { ...facts, header: (name: string) => (name === 'traceparent' ? TRACEPARENT : undefined) }

    const request = observer.requestStarted?.({ ...facts, header: () => undefined })
    // Not as a call without a request, which has a span of its own.
    expect([request, observer.attemptStarted?.(request, {} as never)]).toEqual([null, undefined])
    expect(observer.requestStarted?.(traced)).toBeDefined()
  })

  test('refuses what it does not know', async () => {
    await begin()

    expect(() => otel({ incoming: 'both' as 'link' })).toThrow('unknown incoming "both"')
    expect(() => otel({ semconv: '1.0' as '1.41' })).toThrow('unknown semconv "1.0"')
  })
})
