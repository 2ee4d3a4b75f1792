// Measures the CPU time and allocated bytes that telemetry adds to one small chat, without sockets, compared with a gateway without
// telemetry. The gateways take turns, round by round, in one process; the median of the differences is printed.
//
//   node --expose-gc bench/telemetry.mjs [requests per round] [rounds] [variant …]
//
// `off-again` is the first gateway again: its difference is noise. `exported` sends all spans to a collector in
// another process, as JSON.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { CHAT, openChatGateway } from './in-process-chat.mjs'
import { compareLanes } from './in-process-lanes.mjs'
import { sendOnce } from './in-process-rounds.mjs'

const perRound = Number(process.argv[2] ?? 640)
const rounds = Number(process.argv[3] ?? 200)
const wanted = process.argv.slice(4)

const { otel } = await import('../dist/otel.js')
const { prometheus } = await import('../dist/prometheus.js')
/** Functions that release resources, in this order. */
const cleanUps = []

async function tracing(ratio, makeProcessor) {
  const { BasicTracerProvider, ParentBasedSampler, TraceIdRatioBasedSampler } = await import(
    '@opentelemetry/sdk-trace-base'
  )
  const sampler = new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) })
  const processor = await makeProcessor()
  const tracerProvider = new BasicTracerProvider({ sampler, spanProcessors: [processor] })
  cleanUps.unshift(() => tracerProvider.shutdown())
  return { observe: [otel({ tracerProvider })], flush: () => tracerProvider.forceFlush() }
}

/** The processor that hosts use, before an exporter that drops what it gets. */
async function dropping() {
  const { BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base')
  return new BatchSpanProcessor({ export: (_spans, done) => done({ code: 0 }), shutdown: async () => {} }, BATCH)
}

async function exporting() {
  const { BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base')
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http')
  const collector = spawn(process.execPath, [new URL('telemetry-collector.mjs', import.meta.url).pathname])
  const [port] = await once(collector.stdout, 'data')
  cleanUps.push(() => collector.kill())
  return new BatchSpanProcessor(new OTLPTraceExporter({ url: `http://127.0.0.1:${Number(port)}/v1/traces` }), BATCH)
}

/** Nothing is dropped, because that would cost less: spans are flushed after each round. */
const BATCH = { maxQueueSize: 100_000, maxExportBatchSize: 512, scheduledDelayMillis: 60_000 }

const variants = {
  off: () => ({}),
  'off-again': () => ({}),
  observer: () => ({ observe: [{ requestStarted: () => undefined }] }),
  prometheus: () => ({ observe: [prometheus()] }),
  'otel-without-sdk': () => ({ observe: [otel()] }),
  'otel-1-percent': () => tracing(0.01, dropping),
  'otel-recorded': () => tracing(1, dropping),
  'otel-exported': () => tracing(1, exporting),
}

const names = Object.keys(variants).filter((name) => name === 'off' || wanted.length === 0 || wanted.includes(name))
const lanes = []
for (const name of names) {
  const { flush, ...options } = await variants[name]()
  const gateway = await openChatGateway(options)
  lanes.push({ name, gateway, once: () => sendOnce(gateway, CHAT), flush })
}

await compareLanes(lanes, { perRound, rounds })

for (const { gateway } of lanes) await gateway.close({ drainMs: 0 })
for (const cleanUp of cleanUps) await cleanUp()
