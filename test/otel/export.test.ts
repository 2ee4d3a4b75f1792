import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import * as api from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici'
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterEach, describe, expect, test } from 'vitest'
import { otel } from '../../src/otel/index.ts'
import { listen } from '../support/listen.ts'
import { chatBody, type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'

let started: StartedGateway
let collector: Collector | undefined

afterEach(async () => {
  await started.close()
  await collector?.close()
  collector = undefined
})

/** A chat in process, so that only the gateway's own calls leave. */
async function chat(text: string): Promise<Response> {
  const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
  const body = JSON.stringify(chatBody('chat-relayed', text))
  return await started.gateway.fetch(
    new Request('http://gateway.test/v1/chat/completions', { method: 'POST', headers, body }),
  )
}

interface OtlpSpan {
  readonly name: string
  readonly traceId: string
  readonly parentSpanId?: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
}

/** A stand-in for an OpenTelemetry collector: takes OTLP as JSON over HTTP. */
interface Collector {
  readonly url: string
  readonly received: readonly { readonly type: string | undefined; readonly spans: readonly OtlpSpan[] }[]
  close(): Promise<void>
}

type Answer = (response: ServerResponse) => void

async function startCollector(answer: Answer): Promise<Collector> {
  const received: Collector['received'][number][] = []
  const server = createServer((request: IncomingMessage, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString()) as {
        resourceSpans: { scopeSpans: { scope: { name: string }; spans: OtlpSpan[] }[] }[]
      }
      const scopes = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans)
      const spans = scopes.filter(({ scope }) => scope.name === 'signalbox').flatMap((scope) => scope.spans)
      received.push({ type: request.headers['content-type'], spans })
      answer(response)
    })
  })
  const { origin, close } = await listen(server)
  return {
    url: `${origin}/v1/traces`,
    received,
    close,
  }
}

async function begin(answer: Answer) {
  collector = await startCollector(answer)
  const exporter = new OTLPTraceExporter({ url: collector.url, timeoutMillis: 300 })
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] })
  started = await startGateway({ observe: [otel({ tracerProvider })] })
  return { tracerProvider, received: collector.received }
}

const accept: Answer = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{}')

describe('spans behind the OTLP exporter', () => {
  test('reach a collector over a socket, nested and in order of time', async () => {
    const { tracerProvider, received } = await begin(accept)
    await (await chat('hello')).text()
    await tracerProvider.forceFlush()
    const spans = received.flatMap((batch) => batch.spans)
    const [attempt, request] = [spans.find(({ kind }) => kind === 3), spans.find(({ kind }) => kind === 2)]

    expect(received[0]?.type).toBe('application/json')
    expect(spans.map(({ name }) => name).sort()).toEqual(['chat gpt-5.4', 'signalbox chat'])
    expect(attempt?.traceId).toBe(request?.traceId)
    expect(attempt?.parentSpanId).toBeDefined()
    expect(BigInt(request!.startTimeUnixNano)).toBeLessThanOrEqual(BigInt(attempt!.startTimeUnixNano))
    expect(BigInt(attempt!.endTimeUnixNano)).toBeLessThanOrEqual(BigInt(request!.endTimeUnixNano))
  })

  test.each<[string, Answer]>([
    ['stalls', () => undefined],
    ['refuses', (response) => response.writeHead(400).end('no')],
    ['dies', (response) => response.destroy()],
  ])('keep nothing from callers when the collector %s', async (_name, answer) => {
    const { tracerProvider } = await begin(answer)
    const flushing: Promise<unknown>[] = []
    for (let index = 0; index < 5; index++) {
      const response = await chat(`hello ${index}`)
      expect(response.status).toBe(200)
      expect(await response.text()).toContain('hello')
      // The exporter's own matter, which the SDK reports to its host.
      flushing.push(tracerProvider.forceFlush().catch((error: unknown) => error))
    }
    await Promise.all(flushing)
    await tracerProvider.shutdown().catch((error: unknown) => expect(error).toBeDefined())
  })
})

describe("the host's instrumentation of undici", () => {
  test.each([
    [true, false],
    [false, true],
  ])('sends a trace context to a vendor with hideFromVendors %s: %s', async (hideFromVendors, isSeen) => {
    api.propagation.setGlobalPropagator(new W3CTraceContextPropagator())
    api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
    const exporter = new InMemorySpanExporter()
    const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
    const instrumentation = new UndiciInstrumentation()
    instrumentation.setTracerProvider(tracerProvider)
    instrumentation.enable()
    try {
      started = await startGateway({ observe: [otel({ tracerProvider, hideFromVendors })] })
      await (await chat('hello')).text()
    } finally {
      instrumentation.disable()
      api.propagation.disable()
      api.context.disable()
    }
    const spans = exporter.getFinishedSpans()
    const http = spans.filter(({ instrumentationScope }) => instrumentationScope.name.includes('undici'))
    const attempt = spans.find(({ name }) => name === 'chat gpt-5.4')

    expect('traceparent' in (started.sandbox.requests.at(-1)?.headers ?? {})).toBe(isSeen)
    expect(http.map((span) => span.parentSpanContext?.spanId)).toEqual(isSeen ? [attempt?.spanContext().spanId] : [])
    expect(attempt).toBeDefined()
  })
})
