import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics'
import { afterEach, expect, test } from 'vitest'
import { prometheus } from '../../src/metrics/index.ts'
import { otelMetrics } from '../../src/otel/index.ts'
import { chatBody, type StartedGateway, startGateway } from '../support/start-gateway.ts'

let started: StartedGateway
let provider: MeterProvider | undefined

afterEach(async () => {
  await provider?.shutdown()
  await started.close()
})

/** Starts a gateway whose metrics the SDK reads on command. */
async function begin(exporter: PushMetricExporter) {
  const metrics = prometheus()
  const producer: MetricProducer = otelMetrics(metrics)
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: 3_600_000,
    metricProducers: [producer],
  })
  provider = new MeterProvider({ readers: [reader] })
  started = await startGateway({ observe: [metrics] })
  const ended = await started.ended(await started.post('/v1/chat/completions', chatBody('chat-relayed', 'hello')))
  await provider.forceFlush()
  return { ended, metrics }
}

test('the numbers of prometheus() reach an exporter of the SDK as sums, gauges and histograms', async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const { ended, metrics } = await begin(exporter)
  const scopes = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics)
  const found = scopes.find(({ scope }) => scope.name === 'signalbox')?.metrics ?? []
  const of = (name: string) => found.find(({ descriptor }) => descriptor.name === `signalbox_${name}`)
  const labels = { endpoint: 'chat', model: 'chat-relayed', vendor: 'openai' }

  expect(of('requests_total')?.dataPoints).toMatchObject([{ attributes: { ...labels, ending: 'completed' }, value: 1 }])
  expect(of('requests_total')?.dataPoints[0]?.attributes).not.toHaveProperty('code')
  expect(of('requests_total')).toMatchObject({ isMonotonic: true, aggregationTemporality: 1 })
  expect(of('cost_dollars_total')?.dataPoints[0]?.value).toBe(Number(ended.costNanoDollars) / 1e9)
  expect(of('request_duration_seconds')).toMatchObject({
    descriptor: { unit: 's' },
    dataPoints: [{ attributes: labels, value: { count: 1, sum: metrics.set.duration.series[0]?.sum } }],
  })
  expect(of('in_flight')?.dataPoints).toMatchObject([{ attributes: { endpoint: 'chat' }, value: 0 }])
  expect(of('vendor_key_up')?.dataPoints.length).toBeGreaterThan(0)
  expect(of('refusals_total')).toBeUndefined()
  const spoken = found.find(({ descriptor }) => descriptor.name === 'gen_ai.client.inference.duration')
  expect(spoken?.dataPoints[0]?.attributes).toEqual({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'chat-relayed',
  })
})

test('calls by several endpoints are one series under the names of the GenAI conventions, with tokens by modality', async () => {
  const metrics = prometheus()
  started = await startGateway({ observe: [metrics] })
  const usage = { inputTokens: 100, inputImageTokens: 60, cachedInputTokens: 10, outputTokens: 7, reasoningTokens: 3 }
  for (const endpoint of ['chat', 'messages']) {
    const request = metrics.requestStarted({ endpoint } as never)
    const facts = { model: 'm', vendor: 'mine', provider: 'openai', kind: 'chat' }
    metrics.attemptEnded(metrics.attemptStarted(request, facts as never), { outcome: 'ok' } as never)
    const costs = { costNanoDollars: 0n, durationMs: 300, firstByteMs: 100, overheadMs: 1 }
    metrics.requestEnded(request, {
      endpoint,
      model: 'm',
      vendor: 'mine',
      outcome: 'completed',
      usage,
      ...costs,
    } as never)
  }
  const collected = await otelMetrics(metrics, { names: 'gen_ai' }).collect()
  const found = collected.resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics)
  const of = (name: string) =>
    found
      .find(({ descriptor }) => descriptor.name === name)
      ?.dataPoints.map(({ attributes, value }) => [attributes, value])
  const route = { 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'm' }
  const call = { 'gen_ai.operation.name': 'chat', ...route }
  const modality = (name: string) => ({ ...route, 'gen_ai.token.modality': name })

  expect(of('gen_ai.client.inference.duration')).toMatchObject([[call, { count: 2, sum: 0.6 }]])
  expect(of('gen_ai.server.request.duration')).toMatchObject([[call, { count: 2 }]])
  expect(of('gen_ai.client.inference.time_to_first_chunk')).toMatchObject([[call, { count: 2, sum: 0.2 }]])
  expect(of('gen_ai.client.inference.usage.input_tokens')).toEqual([
    [modality('image'), 120],
    [modality('text'), 80],
  ])
  expect(of('gen_ai.client.inference.usage.cache_read.input_tokens')).toEqual([[modality('text'), 20]])
  expect(of('gen_ai.client.inference.usage.output_tokens')).toEqual([[modality('text'), 14]])
  expect(of('gen_ai.client.inference.usage.reasoning.output_tokens')).toEqual([[modality('text'), 6]])
  expect(JSON.stringify(found)).not.toContain('signalbox_')
  expect(() => otelMetrics(metrics, { names: 'all' as never })).toThrow('otelMetrics: unknown names "all"')
})

test('the numbers reach a collector by OTLP over a socket', async () => {
  const bodies: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      bodies.push(Buffer.concat(chunks).toString())
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await begin(new OTLPMetricExporter({ url: `http://127.0.0.1:${port}/v1/metrics` }))
  await new Promise((resolve) => {
    server.closeAllConnections()
    server.close(resolve)
  })
  const { resourceMetrics } = JSON.parse(bodies[0] ?? '{}')
  const found = resourceMetrics[0].scopeMetrics.find(
    ({ scope }: { scope: { name: string } }) => scope.name === 'signalbox',
  ).metrics as { name: string; histogram?: { dataPoints: { explicitBounds: number[]; bucketCounts: number[] }[] } }[]
  const duration = found.find(({ name }) => name === 'signalbox_request_duration_seconds')?.histogram?.dataPoints[0]

  expect(duration?.bucketCounts).toHaveLength((duration?.explicitBounds.length ?? 0) + 1)
  expect(duration?.bucketCounts.reduce((total, count) => total + count, 0)).toBe(1)
})
