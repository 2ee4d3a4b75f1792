import { afterEach, describe, expect, test } from 'vitest'
import type { ModelDefinition } from '../../src/catalog/model.ts'
import type { PriceFile } from '../../src/catalog/prices/prices.ts'
import { type Sandbox, sandboxVendors } from '../../src/testing/index.ts'
import { CREDIT } from '../gateway/images/image-error-shapes.ts'
import { everyShape, generation, IMAGES, interaction } from '../gateway/images/image-requests.ts'
import { rawPost } from '../support/raw-caller.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'

const SHAPES = everyShape('a paper boat')
/** The multimodal shape has no streams. */
const FORMS = SHAPES.flatMap(([shape, path, body]) => [
  [shape, 'whole', path, body] as const,
  ...(shape === 'multimodal' ? [] : [[shape, 'stream', path, { ...body, stream: true }] as const]),
])

/** For each shape a model that falls back to one of another shape, which must never be asked, and to one of its own. */
const CHAINS: readonly ModelDefinition[] = [
  {
    id: 'multimodal-first',
    kind: 'image',
    vendor: 'dashscope',
    upstream: 'qwen-image-2.0',
    protocol: 'multimodal',
    fallbacks: ['gp-image-2', 'qw-image-max'],
  },
  {
    id: 'interactions-first',
    kind: 'image',
    vendor: 'gemini',
    upstream: 'gemini-3.1-flash-image-preview',
    protocol: 'interactions',
    fallbacks: ['qw-image-max', 'gmn-2.5-flash-image'],
  },
  {
    id: 'generations-first',
    kind: 'image',
    vendor: 'openai',
    upstream: 'gpt-image-2',
    protocol: 'generations',
    fallbacks: ['gmn-2.5-flash-image', 'gp-image-2'],
  },
  {
    id: 'edits-first',
    kind: 'image_edit',
    vendor: 'openai',
    upstream: 'gpt-image-2',
    protocol: 'generations',
    fallbacks: ['gp-image-1'],
  },
]
const SECOND: Readonly<Record<string, string>> = {
  multimodal: 'qw-image-max',
  interactions: 'gmn-2.5-flash-image',
  generations: 'gp-image-2',
  edits: 'gp-image-1',
}
const PRICES: PriceFile = {
  ...testPrices,
  prices: [...testPrices.prices, ...CHAINS.map(({ id }) => ({ model: id, meter: 'image' as const, amount: '0.01' }))],
}

let started: StartedGateway
let inProcess: Sandbox | undefined

afterEach(async () => {
  await started.close()
  await inProcess?.close()
  inProcess = undefined
})

const endedCount = (): number => started.events.filter(({ type }) => type === 'request-ended').length

describe.each(FORMS)('a caller in the shape %s (%s) who leaves while the vendor draws', (_shape, _form, path, body) => {
  test('pays what was held, once, and the vendor is stopped', async () => {
    started = await startGateway()
    started.sandbox.fault({ kind: 'hang' })
    const caller = rawPost(started.url, path, body)
    await started.sandbox.nextRequest()
    const during = await started.account()
    const ending = started.nextEnded()
    caller.leave()
    await started.sandbox.nextAbort()
    const ended = await ending

    expect(during.held).toBeGreaterThan(0n)
    expect(ended).toMatchObject({ ending: 'abandoned', costNanoDollars: during.held })
    expect(await started.account()).toEqual({ balance: CREDIT - during.held, held: 0n })
    expect(started.sandbox.requests).toHaveLength(1)
    expect(endedCount()).toBe(1)
  })

  test("pays the vendor's report with the policy drain, and the image is read to its end", async () => {
    started = await startGateway({ disconnect: { default: 'cancel', images: 'drain', image_edits: 'drain' } })
    started.sandbox.fault({ kind: 'delay', delayMs: 100 })
    const caller = rawPost(started.url, path, body)
    await started.sandbox.nextRequest()
    const ending = started.nextEnded()
    caller.leave()
    const ended = await ending

    // Callers that disconnect before the first bytes get no stream, but the vendor was called and generated the image.
    expect(ended.ending).toBe('completed')
    expect(ended.usage?.images).toBe(1)
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
    expect(started.sandbox.aborted).toBe(0)
    expect(await started.account()).toEqual({ balance: CREDIT - ended.costNanoDollars, held: 0n })
  })
})

describe.each(FORMS)('a paid job in the shape %s (%s)', (shape, _form, path, body) => {
  const chained = { ...body, model: `${shape}-first` }
  const start = async (timeouts = {}): Promise<void> => {
    started = await startGateway({ models: CHAINS, prices: PRICES, timeouts })
  }

  test.each([
    ['does not answer in time', { kind: 'hang' }, 504],
    ['resets the connection', { kind: 'reset' }, 503],
    ['answers with something that nobody can read', { kind: 'garbage' }, 502],
    ['answers with nothing', { kind: 'empty' }, 502],
  ] as const)('is never sent twice, nor to a fallback, when the vendor has it and %s', async (_name, fault, status) => {
    await start({ firstByteMs: 200, idleMs: 200, totalMs: 600 })
    started.sandbox.fault({ ...fault, times: 5 })

    const answer = await started.post(path, chained)
    await answer.arrayBuffer()

    expect(answer.status).toBe(status)
    expect(started.sandbox.requests).toHaveLength(1)
    // Nor may the caller's own retries send it twice.
    expect(answer.headers.get('x-should-retry')).toBe('false')
    // Nobody got anything, so nobody pays.
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
    expect(endedCount()).toBe(1)
  })

  test.each([
    ['429', { kind: 'status', status: 429, times: 1 }, 2],
    // A rejected call has not begun, so the same vendor is retried before the fallback.
    ['503', { kind: 'status', status: 503, times: 2 }, 3],
  ] as const)(
    'goes to a fallback of the same shape after a %s, and costs what that one costs',
    async (_name, fault, calls) => {
      await start()
      started.sandbox.fault(fault)

      const answer = await started.post(path, chained)
      await answer.arrayBuffer()
      const ended = await started.ended(answer)

      expect(answer.status).toBe(200)
      expect(ended.model).toBe(SECOND[shape])
      expect(started.sandbox.requests).toHaveLength(calls)
      expect(new Set(started.sandbox.requests.map(({ path: called }) => called)).size).toBe(1)
      expect(ended.costNanoDollars).not.toBe(10_000_000n)
      expect(await started.account()).toEqual({ balance: CREDIT - ended.costNanoDollars, held: 0n })
    },
  )

  test.each([429, 503])('may be sent again by the caller when everybody has refused it with %i', async (status) => {
    await start()
    started.sandbox.fault({ kind: 'status', status, times: 5 })

    const answer = await started.post(path, chained)
    await answer.arrayBuffer()

    expect(answer.status).toBe(status)
    expect(answer.headers.get('x-should-retry')).toBeNull()
  })

  test('is sent again when no connection came about', async () => {
    const sandbox = sandboxVendors()
    inProcess = sandbox
    started = await startGateway({ transport: sandbox.transport() })
    sandbox.fault({ kind: 'refuse' })

    const answer = await started.post(path, body)
    await answer.arrayBuffer()
    const ended = await started.ended(answer)

    expect(answer.status).toBe(200)
    expect(sandbox.requests).toHaveLength(2)
    expect(started.events.filter(({ type }) => type === 'attempt-failed')).toHaveLength(1)
    expect(await started.account()).toEqual({ balance: CREDIT - ended.costNanoDollars, held: 0n })
  })
})

describe('a stream of images that is cut', () => {
  const PARTS = { stream: true, partial_images: 2 }
  const cuts = [
    ['generations', generation('a paper boat', PARTS), 1, /^data: \{"error":\{/],
    ['interactions', interaction('a paper boat', { stream: true }), 4, /^event: error\ndata: \{"error":\{/],
  ] as const
  const cases = cuts.flatMap((row) =>
    (['reset-mid-stream', 'end-early', 'hang-body', 'error-event'] as const).map((kind) => [...row, kind] as const),
  )

  test.each(cases)(
    'in the shape %s ends with an error event, is asked for once and paid for as held (%#)',
    async (_shape, body, events, beginning, kind) => {
      started = await startGateway({ timeouts: { idleMs: 200 } })
      started.sandbox.fault({ kind, events })

      const answer = await started.post(IMAGES, body)
      const text = await answer.text()
      const ended = await started.ended(answer)
      const last = text.trimEnd().split('\n\n').at(-1) ?? ''

      expect(answer.status).toBe(200)
      expect(last).toMatch(beginning)
      expect(text).not.toContain('[DONE]')
      expect(text).not.toContain('.completed')
      expect(ended.ending).toBe('failed')
      expect(ended.costNanoDollars).toBeGreaterThan(0n)
      expect(started.sandbox.requests).toHaveLength(1)
      expect(await started.account()).toEqual({ balance: CREDIT - ended.costNanoDollars, held: 0n })
    },
  )

  test.each([
    ['reset-mid-stream', 503],
    ['end-early', 502],
    ['hang-body', 504],
  ] as const)(
    'before its first content (%s) is an ordinary error, asked for once and not paid for',
    async (kind, status) => {
      started = await startGateway({ timeouts: { idleMs: 200 } })
      started.sandbox.fault({ kind, events: 3 })

      const answer = await started.post(IMAGES, interaction('a paper boat', { stream: true }))
      await answer.arrayBuffer()

      expect(answer.status).toBe(status)
      expect(started.sandbox.requests).toHaveLength(1)
      expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
    },
  )

  test('charges the hold once if the caller disconnects after the first partial image', async () => {
    started = await startGateway()
    started.sandbox.fault({ kind: 'hang-body', events: 1 })
    const caller = rawPost(started.url, IMAGES, generation('a paper boat', PARTS))
    await caller.received('partial_image_index')
    const during = await started.account()
    const ending = started.nextEnded()
    caller.leave()
    await started.sandbox.nextAbort()
    const ended = await ending

    expect(ended).toMatchObject({ ending: 'abandoned', costNanoDollars: during.held })
    expect(await started.account()).toEqual({ balance: CREDIT - during.held, held: 0n })
    expect(endedCount()).toBe(1)
  })
})
