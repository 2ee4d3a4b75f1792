import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { fetchHandler } from '../../src/adapters/fetch.ts'
import type { RequestEnd } from '../../src/core/observer.ts'
import type { GatewayOptions } from '../../src/gateway/options.ts'
import { type GatewayMetrics, metricsHandler, type PrometheusOptions, prometheus } from '../../src/metrics/index.ts'
import { MAX_SERIES } from '../../src/metrics/metric-family.ts'
import { exposition, formatFor } from '../../src/metrics/metrics-handler.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import { voyage } from '../../src/vendors/voyage/voyage.ts'
import { MOUNTS } from '../adapters/support/mounts.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../support/start-gateway.ts'

const OPERATOR_KEY = 'operator-key-0123456789abcdef'
const CHAT = '/v1/chat/completions'

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

async function begin(options: Partial<GatewayOptions> = {}, prometheusOptions: PrometheusOptions = {}) {
  const metrics = prometheus(prometheusOptions)
  started = await startGateway({ observe: [metrics], ...options })
  const { post, ended, gateway } = started
  const chat = async (text: string, rest: Record<string, unknown> = {}) => {
    const response = await post(CHAT, chatBody('chat-relayed', text, rest))
    await response.text()
    return response
  }
  return { metrics, chat, post, ended, gateway }
}

/** Every sample by its name and labels. */
async function samplesOf(metrics: GatewayMetrics): Promise<ReadonlyMap<string, string>> {
  return samplesIn(await exposition(metrics, formatFor(undefined)))
}

function samplesIn(text: string): ReadonlyMap<string, string> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), line.slice(line.lastIndexOf(' ') + 1)]))
}

/** Facts of a chat for observers. */
const CHAT_FACTS = { requestId: 'r', endpoint: 'chat', startedAtMs: 0, header: () => undefined }
const CHAT_END: RequestEnd = {
  ...{ endpoint: 'chat', outcome: 'completed', status: 200, code: undefined, accountId: 'a', keyId: 'k' },
  ...{ requestedModel: 'm', model: 'm', vendor: 'v', isStream: false, usage: { inputTokens: 1 }, costNanoDollars: 1n },
  ...{ endedAtMs: 0, durationMs: 1, firstByteMs: 1, overheadMs: 1, attempts: 1 },
}

const OPENAI = 'model="chat-relayed",vendor="openai"'

test('counters whose first step raises an alert begin at 0', async () => {
  const metrics = prometheus()
  const before = await samplesOf(metrics)
  metrics.event({
    ...{ type: 'settlement-given-up', requestId: 'r', holdId: 'h', taskId: undefined, accountId: 'a', keyId: 'k' },
    ...{ amountNanoDollars: 1n, reason: 'expired', error: undefined },
  })
  const after = await samplesOf(metrics)

  for (const reason of ['expired', 'too-many', 'closing', 'hold-ended'])
    expect(before.get(`signalbox_settlements_given_up_total{reason="${reason}"}`)).toBe('0')
  for (const state of ['pending', 'delivered', 'failed', 'disabled'])
    expect(before.get(`signalbox_webhook_attempts_total{state="${state}"}`)).toBe('0')
  expect(before.get('signalbox_usage_dropped_total')).toBe('0')
  expect(after.get('signalbox_settlements_given_up_total{reason="expired"}')).toBe('1')
})

describe('the metrics of a gateway', () => {
  test('count hits of the response cache, and answers that it could not take', async () => {
    const { metrics, chat, ended } = await begin({ cache: { rules: [{ sampling: 'any' }] } })
    for (let count = 0; count < 3; count++) await ended(await chat('hello'))
    const labels = 'endpoint="chat",model="chat-relayed"'
    metrics.event({ type: 'cache-write-failed', requestId: 'r', error: new Error('full') })
    const samples = await samplesOf(metrics)

    expect(samples.get(`signalbox_cache_hits_total{${labels}}`)).toBe('2')
    expect(samples.get('signalbox_cache_write_failures_total')).toBe('1')
    expect(samples.get(`signalbox_attempts_total{vendor="openai",model="chat-relayed",outcome="ok"}`)).toBe('1')
  })

  test('count a whole answer: its request, attempt, tokens, exact cost and times', async () => {
    const { metrics, chat, ended } = await begin()
    const { usage, costNanoDollars } = await ended(await chat('hello'))
    const samples = await samplesOf(metrics)

    const labels = `endpoint="chat",${OPENAI}`
    expect(samples.get(`signalbox_requests_total{${labels},ending="completed",code=""}`)).toBe('1')
    expect(samples.get('signalbox_attempts_total{vendor="openai",model="chat-relayed",outcome="ok"}')).toBe('1')
    expect(samples.get(`signalbox_tokens_total{${OPENAI},kind="input"}`)).toBe(String(usage?.inputTokens))
    expect(samples.get(`signalbox_tokens_total{${OPENAI},kind="output"}`)).toBe(String(usage?.outputTokens))
    expect(costNanoDollars).toBeGreaterThan(0n)
    const cost = samples.get(`signalbox_cost_dollars_total{${OPENAI},endpoint="chat"}`)
    expect(Math.round(Number(cost) * 1e9)).toBe(Number(costNanoDollars))
    expect(samples.get(`signalbox_request_duration_seconds_count{${labels}}`)).toBe('1')
    expect(samples.get(`signalbox_first_byte_seconds_count{${labels}}`)).toBe('1')
    expect(samples.get('signalbox_store_seconds_count{operation="reserve",outcome="ok"}')).toBe('1')
    expect(samples.get('signalbox_store_seconds_count{operation="settle",outcome="ok"}')).toBe('1')
    expect(samples.get('signalbox_in_flight{endpoint="chat"}')).toBe('0')
    expect(samples.get('signalbox_vendor_in_flight{vendor="openai"}')).toBe('0')
    expect(samples.get('signalbox_vendor_keys{vendor="openai"}')).toBe('1')
    const overhead = Number(samples.get('signalbox_overhead_seconds_sum{endpoint="chat"}'))
    const duration = Number(samples.get(`signalbox_request_duration_seconds_sum{${labels}}`))
    expect(overhead).toBeGreaterThan(0)
    expect(overhead).toBeLessThan(duration)
  })

  test('count a stream with its time for each token, a refusal, and a vendor that fails', async () => {
    const { metrics, chat, ended } = await begin()
    await ended(await chat('one two three', { stream: true }))
    await chat('hello', { temperature: 'hot' })
    await ended(await chat('[[fault:status=400]] hello'))
    await fetch(`${started?.url}/nowhere/${'x'.repeat(20)}`)
    const samples = await samplesOf(metrics)

    expect(samples.get(`signalbox_time_per_output_token_seconds_count{${OPENAI}}`)).toBe('1')
    expect(samples.get('signalbox_refusals_total{endpoint="chat",code="invalid_request"}')).toBe('1')
    expect(samples.get('signalbox_refusals_total{endpoint="",code="route_not_found"}')).toBe('1')
    expect(
      samples.get(`signalbox_requests_total{endpoint="chat",${OPENAI},ending="failed",code="upstream_rejected"}`),
    ).toBe('1')
    expect(samples.get('signalbox_attempts_total{vendor="openai",model="chat-relayed",outcome="caller"}')).toBe('1')
    expect(samples.get('signalbox_in_flight{endpoint="chat"}')).toBe('0')
  })

  test('count a replay as such, and neither its tokens nor its cost again', async () => {
    const { metrics, post } = await begin()
    const body = chatBody('chat-relayed', 'hello')
    const header = { 'idempotency-key': 'same-key-twice' }
    await (await post(CHAT, body, header)).text()
    const once = await samplesOf(metrics)
    await (await post(CHAT, body, header)).text()
    const twice = await samplesOf(metrics)

    expect(
      twice.get(`signalbox_requests_total{endpoint="chat",${OPENAI.replace('openai', '')},ending="replayed",code=""}`),
    ).toBe('1')
    for (const [name, value] of once) if (/^signalbox_(?:tokens|cost)/.test(name)) expect(twice.get(name)).toBe(value)
  })

  test('count an answer in the background as submitted, its calls once they are made, and what they cost at its end', async () => {
    const { metrics, post } = await begin()
    started?.sandbox.fault({ kind: 'status', status: 500, times: 1 })
    const body = { model: 'chat-relayed', input: 'hello', background: true }
    const { id } = (await (await post('/v1/responses', body)).json()) as { id: string }
    const { usage } = await started!.taskEnded(id)
    const samples = await samplesOf(metrics)

    for (const outcome of ['unavailable', 'ok'])
      expect(samples.get(`signalbox_attempts_total{vendor="openai",model="chat-relayed",outcome="${outcome}"}`)).toBe(
        '1',
      )
    expect(samples.get(`signalbox_tokens_total{${OPENAI},kind="input"}`)).toBe(String(usage?.inputTokens))
    expect(samples.get('signalbox_in_flight{endpoint="responses"}')).toBe('0')
    expect(samples.get('signalbox_overhead_seconds_count{endpoint="responses"}')).toBe('1')
    // Alerts wait for its first step.
    expect(samples.get('signalbox_unbilled_calls_total{vendor="openai",model="chat-relayed"}')).toBe('0')

    expect([...samples.keys()].filter((name) => name.startsWith('signalbox_requests_total'))).toEqual([
      'signalbox_requests_total{endpoint="responses",model="chat-relayed",vendor="",ending="submitted",code=""}',
    ])
  })

  test('count the calls of a batch, and no further requests', async () => {
    // At a vendor's own batch API a request has no call of its own.
    const { metrics, post } = await begin({ billing: 'off', batches: { native: false } })
    const params = { ...chatBody('cl-sonnet-4-6', 'hello'), max_tokens: 20 }
    const requests = ['one', 'two'].map((id) => ({ custom_id: id, params }))
    const { id } = (await (await post('/v1/messages/batches', { requests })).json()) as { id: string }
    await started!.taskEnded(id)
    const samples = await samplesOf(metrics)
    const counted = [...samples].filter(([name]) => /^signalbox_(?:attempts|requests)_total/.test(name))

    expect(counted).toEqual([['signalbox_attempts_total{vendor="anthropic",model="cl-sonnet-4-6",outcome="ok"}', '2']])
  })

  test('count calls that only the operator pays for, faults inside, and hooks that let a call pass', async () => {
    const metrics = prometheus()
    const before = await samplesOf(metrics)
    const bypass = { name: 'check', onFailure: 'allow', request: () => Promise.reject(new Error('away')) } as const
    started = await startGateway({ observe: [metrics], hooks: [bypass] })
    const { post, ended } = started
    const response = await post(CHAT, chatBody('chat-relayed', '[[fault:reset-mid-stream=0]] hello', { stream: true }))
    await response.text()
    await ended(response)
    metrics.event({ type: 'internal-error', requestId: undefined, where: 'usage', error: new Error('disk full') })
    const samples = await samplesOf(metrics)

    // Alerts wait for their first step.
    for (const name of ['signalbox_hook_bypasses_total', 'signalbox_internal_errors_total'])
      expect([before.get(name), samples.get(name)]).toEqual(['0', '1'])
    // It is tried again, once.
    expect(samples.get('signalbox_unbilled_calls_total{vendor="openai",model="chat-relayed"}')).toBe('2')
  })

  test('have labels of accounts only on request, and never the names of more than 500', async () => {
    const { metrics, chat, ended } = await begin({}, { accountLabel: true })
    await ended(await chat('hello'))
    const event = { type: 'task-ended', endpoint: 'videos', state: 'completed', model: 'm', vendor: 'v' } as const
    const ids = { requestId: 'r', taskId: 't', keyId: 'k', code: undefined }
    const amounts = { usage: {}, costNanoDollars: 1n, dueNanoDollars: 1n, durationMs: 1, tags: [] }
    for (let index = 0; index < 1_000; index++)
      metrics.event({ ...event, ...ids, ...amounts, accountId: `acct_${index}` })
    const samples = await samplesOf(metrics)
    const accounts = [...samples.keys()].filter((name) => name.startsWith('signalbox_cost_dollars_total'))

    expect(samples.has(`signalbox_cost_dollars_total{${OPENAI},endpoint="chat",account="${TEST_ACCOUNT}"}`)).toBe(true)
    expect(accounts).toHaveLength(501)
    expect(samples.get('signalbox_cost_dollars_total{model="m",vendor="v",endpoint="videos",account="other"}')).toBe(
      '0.000000501',
    )
  })

  test('tell vendors and codes apart however many accounts have series', () => {
    const metrics = prometheus({ accountLabel: true })
    const series = metrics.requestStarted(CHAT_FACTS)
    for (let account = 0; account < 400; account++)
      for (let model = 0; model < 6; model++)
        metrics.requestEnded(series, { ...CHAT_END, accountId: `acct_${account}`, model: `model_${model}` })
    metrics.requestEnded(series, { ...CHAT_END, accountId: 'acct_1', outcome: 'failed', code: 'upstream_timeout' })
    const { requests, cost } = metrics.set

    expect(requests.series.at(-1)?.labelText).toBe(
      'endpoint="chat",model="m",vendor="v",ending="failed",code="upstream_timeout",account="other"',
    )
    expect(requests.series.length).toBeLessThan(MAX_SERIES)
    expect(requests.series.reduce((sum, { value }) => sum + value, 0)).toBe(2_401)
    expect(cost.series.reduce((sum, { nanoDollars }) => sum + nanoDollars, 0n)).toBe(2_401n)
    expect(metrics.set.overflow.only.value).toBe(0)
  })

  test('have a bounded number of series, whatever models callers name', async () => {
    const metrics = prometheus()
    for (let index = 0; index < 10_000; index++)
      metrics.requestEnded(metrics.requestStarted(CHAT_FACTS), { ...CHAT_END, model: `model-${index}` })
    const samples = await samplesOf(metrics)
    const requests = [...samples].filter(([name]) => name.startsWith('signalbox_requests_total'))

    expect(requests).toHaveLength(MAX_SERIES + 1)
    expect(requests.reduce((sum, [, value]) => sum + Number(value), 0)).toBe(10_000)
    expect(samples.get('signalbox_tokens_total{model="other",vendor="other",kind="other"}')).toBe('8000')
    expect(Number(samples.get('signalbox_series_overflow_total'))).toBeGreaterThan(8_000)
  })

  test('have in no label what came from a caller: canaries in path, model, user and tags are nowhere', async () => {
    const { metrics, post } = await begin()
    const canary = 'canary-9c1f'
    await post(`/v1/${canary}`, {})
    await post(CHAT, chatBody(canary, canary))
    await (
      await post(CHAT, { ...chatBody('chat-relayed', canary), user: canary }, { 'x-signalbox-tags': canary })
    ).text()

    expect(await exposition(metrics, formatFor(undefined))).not.toContain('canary')
  })

  test('show a vendor without a key as 0 keys', async () => {
    const metrics = prometheus()
    const keyless = await startGateway({ observe: [metrics], vendors: [voyage()], models: [] })
    const samples = await samplesOf(metrics)
    await keyless.close()

    expect(samples.get('signalbox_vendor_keys{vendor="voyage"}')).toBe('0')
    expect([...samples.keys()].filter((name) => name.startsWith('signalbox_vendor_key_up'))).toEqual([])
  })

  test('forget the gauges of a closed gateway while another one continues', async () => {
    const { metrics, chat, gateway } = await begin()
    await chat('one')
    const other = await startGateway({
      observe: [metrics],
      vendors: [openaiCompatible({ id: 'second', apiKey: 'k', baseURL: 'http://127.0.0.1:9', models: [] })],
    })
    const both = await samplesOf(metrics)
    await gateway.close()
    const one = await samplesOf(metrics)
    await other.close()
    const none = await samplesOf(metrics)

    const vendorsOf = (samples: ReadonlyMap<string, string>) => [
      ...new Set(
        [...samples.keys()]
          .filter((name) => /^signalbox_vendor_/.test(name))
          .map((name) => /vendor="(\w+)"/.exec(name)?.[1]),
      ),
    ]
    expect(vendorsOf(both)).toEqual(expect.arrayContaining(['openai', 'second']))
    expect(vendorsOf(one)).toEqual(['second'])
    expect(vendorsOf(none)).toEqual([])
    expect(Number(both.get('signalbox_retries_left'))).toBe(2 * Number(one.get('signalbox_retries_left')))
    expect(none.get('signalbox_retries_left')).toBe('0')
    // Counts are kept.
    expect(none.get(`signalbox_requests_total{endpoint="chat",${OPENAI},ending="completed",code=""}`)).toBe('1')
  })

  test('keep the count of requests in progress when a caller disconnects', async () => {
    const { metrics, post } = await begin()
    const controller = new AbortController()
    const ended = started?.nextEnded()
    const response = await post(
      CHAT,
      chatBody('chat-relayed', '[[fault:hang-body=3]] one two three four', { stream: true }),
      {},
      controller.signal,
    )
    await response.body?.getReader().read()
    expect((await samplesOf(metrics)).get('signalbox_in_flight{endpoint="chat"}')).toBe('1')
    controller.abort()
    await ended
    const samples = await samplesOf(metrics)

    expect(samples.get('signalbox_in_flight{endpoint="chat"}')).toBe('0')
    expect(
      samples.get(
        `signalbox_requests_total{endpoint="chat",${OPENAI},ending="abandoned",code="client_closed_request"}`,
      ),
    ).toBe('1')
  })
})

describe('an observer that throws', () => {
  test('keeps nothing from callers, the bill or other observers', async () => {
    const metrics = prometheus()
    const fault = () => {
      throw new Error('observer fault')
    }
    const broken = { requestStarted: fault, requestEnded: fault, attemptStarted: fault, attemptEnded: fault }
    const worse = { store: fault, event: fault, runSend: fault, attemptHeaders: fault }
    started = await startGateway({ observe: [{ ...broken, ...worse }, metrics] })
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))
    const { costNanoDollars } = await started.ended(response)

    expect(response.status).toBe(200)
    expect(costNanoDollars).toBeGreaterThan(0n)
    const samples = await samplesOf(metrics)
    expect(samples.get(`signalbox_requests_total{endpoint="chat",${OPENAI},ending="completed",code=""}`)).toBe('1')
  })
})

describe('the handler', () => {
  test.each(Object.entries(MOUNTS))('gives the metrics to the operator, mounted in %s', async (name, mount) => {
    const { metrics, chat } = await begin()
    await chat('hello')
    const { origin, close } = await mount(metricsHandler(metrics, { operatorKey: OPERATOR_KEY }))
    const url = `${origin}/ai`
    const headers = { authorization: `Bearer ${OPERATOR_KEY}` }
    const response = await fetch(`${url}/metrics`, { headers })
    const text = await response.text()
    const refused = await fetch(`${url}/metrics`, { headers: { authorization: 'Bearer wrong' } })
    const posted = await fetch(`${url}/metrics`, { method: 'POST', headers })
    const head = await fetch(`${url}/metrics`, { method: 'HEAD', headers })
    const atMount = [await fetch(url, { headers }), await fetch(`${url}/`, { headers })]
    await close()

    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(samplesIn(text).size).toBeGreaterThan(50)
    expect([refused.status, posted.status, head.status]).toEqual([401, 405, 200])
    // Hono's mount does not say where it is.
    expect(atMount.map(({ status }) => status)).toEqual(name === 'hono' ? [404, 404] : [200, 200])
    expect(await head.text()).toBe('')
  })

  test('writes OpenMetrics for scrapers that accept it', async () => {
    const { metrics, chat } = await begin()
    await chat('hello')
    const answer = fetchHandler(metricsHandler(metrics, { authorize: () => true }))
    const accept = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5'
    const response = await answer(new Request('http://gateway.test/metrics', { headers: { accept } }))
    const text = await response.text()

    expect(response.headers.get('content-type')).toContain('application/openmetrics-text; version=1.0.0')
    expect(text.endsWith('\n# EOF\n')).toBe(true)
    expect(text).toContain('# TYPE signalbox_requests counter\n')
    expect(text).toContain('signalbox_requests_total{')
    expect(text).toContain('le="1.0"')
  })

  test('is closed where the host refuses, 503 where its check fails, and made only with one of both', async () => {
    const metrics = prometheus()
    const statusOf = async (authorize: () => boolean | Promise<boolean>) =>
      (await fetchHandler(metricsHandler(metrics, { authorize }))(new Request('http://gateway.test/'))).status

    expect(await statusOf(() => false)).toBe(401)
    expect(await statusOf(() => Promise.reject(new Error('directory away')))).toBe(503)
    expect(() => metricsHandler(metrics, {})).toThrow('give an operatorKey, or authorize')
    expect(() => metricsHandler(metrics, { operatorKey: 'short' })).toThrow('at least 24 characters')
  })
})

describe('the rules and the dashboard', () => {
  const folder = join(import.meta.dirname, '../../docs/monitoring')

  test.each(['signalbox.rules.yml', 'grafana.json'])(
    '%s name only metrics and labels that are exposed',
    async (file) => {
      const text = readFileSync(join(folder, file), 'utf8')
      const { families } = prometheus().set
      const samples = new Set(families.flatMap(({ description: { name, kind } }) => namesOf(name, kind)))
      const named = [...text.matchAll(/\bsignalbox_\w+/g)].map(([name]) => name)
      const labels = new Set(['le', 'day', ...families.flatMap(({ description }) => description.labels)])
      const used = [...text.matchAll(/\bby \(([^)]*)\)|[{,](\w+)(?:=~|!=|=)\\?"/g)].flatMap(([, by, label]) =>
        by === undefined ? [label ?? ''] : by.split(', '),
      )

      expect(named.length).toBeGreaterThan(10)
      expect(named.filter((name) => !samples.has(name))).toEqual([])
      expect(used.length).toBeGreaterThan(5)
      expect(used.filter((label) => !labels.has(label))).toEqual([])
    },
  )

  test('the page lists every metric with its labels', () => {
    const page = readFileSync(join(folder, '../monitoring.md'), 'utf8')
    const rows = prometheus().set.families.map(({ description: { name, labels } }) => {
      const listed = labels.length === 0 ? '' : labels.map((label) => `\`${label}\``).join(', ')
      return `| \`${name}\` | ${listed} |`
    })

    expect(rows.filter((row) => !page.includes(row))).toEqual([])
  })
})

function namesOf(name: string, kind: string): string[] {
  return kind === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]
}
