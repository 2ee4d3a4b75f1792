import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { defineModel } from '../../src/catalog/model.ts'
import { type FakeClock, fakeClock, type Sandbox, sandboxVendors } from '../../src/testing/index.ts'
import { anthropic } from '../../src/vendors/anthropic/anthropic.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import type {
  NativeBatches,
  NativeCall,
  NativeReport,
  NativeResult,
  Vendor,
  VendorCall,
  WireAnswer,
} from '../../src/vendors/vendor.ts'

const KEY = 'sk-canary-0123456789'
const RUN_MS = 3_000

const VENDORS: readonly (readonly [id: string, vendor: Vendor, upstream: string])[] = [
  ['openai', openai({ apiKey: KEY }), 'gpt-4o'],
  ['dashscope', dashscope({ apiKey: KEY }), 'qwen-plus'],
  ['anthropic', anthropic({ apiKey: KEY }), 'claude-sonnet-4-6'],
  ['gemini', gemini({ apiKey: KEY }), 'gemini-2.5-flash'],
]

/** A vendor's batch API in front of its stand-in. */
class Bench {
  readonly clock: FakeClock = fakeClock()
  readonly sandbox: Sandbox = sandboxVendors({ clock: this.clock, batchPendingMs: 1_000, batchRunningMs: 2_000 })
  readonly batches: NativeBatches
  readonly #vendor: Vendor
  readonly #upstream: string

  constructor(vendor: Vendor, upstream: string) {
    this.#vendor = vendor
    this.#upstream = upstream
    this.batches = vendor.batches as NativeBatches
  }

  /** A single call of this text. */
  call(text: string): VendorCall<{ model: string; messages: never }> {
    return {
      request: { model: 'mine', messages: [{ role: 'user', content: text }] as never },
      bytes: undefined,
      model: defineModel({ id: 'mine', kind: 'chat', vendor: this.#vendor.id, upstream: this.#upstream }),
      publicModel: 'mine',
      apiKey: KEY,
      stream: false,
      nowMs: 0,
    }
  }

  send({ body, ...request }: NativeCall, lines: readonly string[] = []): Promise<WireAnswer> {
    const text = typeof body === 'object' && body !== null ? body.before + lines.join(body.between) + body.after : body
    return new Promise((resolve, reject) => {
      let status = 0
      const chunks: Uint8Array[] = []
      const limits = { firstByteTimeoutMs: 60_000, idleTimeoutMs: 60_000 }
      this.sandbox.transport().send(
        { ...request, ...limits, origin: this.#vendor.origin, body: text },
        {
          onHead(given) {
            status = given
          },
          onData: (chunk) => void chunks.push(chunk),
          onEnd: () => resolve({ status, headers: {}, body: Buffer.concat(chunks) }),
          onFailure: ({ error }) => reject(error),
        },
      )
    })
  }

  /** @returns Ids of the file, if there is one, and of the batch. */
  async submit(
    texts: readonly string[],
    name = 'signalbox_1',
  ): Promise<{ fileId: string | undefined; batchId: string }> {
    const requests = texts.map((text) => this.#vendor.chat!.toWire(this.call(text)))
    expect(requests.map((request) => this.batches.takes(request))).toEqual(requests.map(() => true))
    const path = requests[0]!.path
    const lines = requests.map((request, index) =>
      this.batches.line({ customId: `r${index}`, path, body: String(request.body) }),
    )
    const { upload } = this.batches
    const fileId = upload?.uploaded(await this.send(upload.call(name, KEY), lines))
    const input = { fileId, path, upstream: this.#upstream, name }
    const batchId = this.batches.created(await this.send(this.batches.create(input, KEY), lines))
    return { fileId, batchId: batchId! }
  }

  async report(batchId: string): Promise<NativeReport | undefined> {
    return this.batches.report(await this.send(this.batches.read(batchId, KEY)))
  }

  /** The results of a batch that has ended, by the ids of its requests. */
  async results(batchId: string): Promise<Map<string, NativeResult>> {
    const results = new Map<string, NativeResult>()
    for (const place of (await this.report(batchId))?.results ?? []) {
      const { status, body } = await this.send(this.batches.results(place, KEY))
      expect(status).toBe(200)
      for (const line of Buffer.from(body).toString('utf8').split('\n')) {
        const result = line === '' ? undefined : this.batches.result(line)
        if (result !== undefined) results.set(result.customId, result)
      }
    }
    return results
  }

  /** The text and the usage of an answer, as the vendor's translator reads them. */
  read(result: NativeResult | undefined): unknown {
    if (result?.kind !== 'answered') return result?.kind
    const answer = { status: result.status, headers: {}, body: Buffer.from(result.body) }
    if (result.status !== 200) return this.#vendor.errorFrom(answer, 0).kind
    const made = this.#vendor.chat!.fromWire(answer, this.call(''))
    return [made?.completion.choices[0]?.message.content, made?.usage?.outputTokens]
  }
}

describe.each(VENDORS)('the batch API of %s', (id, vendor, upstream) => {
  test('answers each request as a single call, whatever the order of the results', async () => {
    const bench = new Bench(vendor, upstream)
    bench.sandbox.reply({ when: { vendor: id, text: 'rain' }, text: 'It rains.', usage: { outputTokens: 7 } })
    const { batchId } = await bench.submit(['Hello', 'Will it rain?', '[[fault:status=429]]', '[[fault:status=400]]'])
    const begun = await bench.report(batchId)
    bench.clock.advance(RUN_MS)
    const ended = await bench.report(batchId)
    const results = await bench.results(batchId)

    expect(begun).toEqual({ state: 'running', isExpired: false, isCancelled: false, results: [], failure: undefined })
    expect(ended).toMatchObject({ state: 'ended', isExpired: false, isCancelled: false, failure: undefined })
    expect(['r0', 'r1', 'r2', 'r3'].map((customId) => bench.read(results.get(customId)))).toEqual([
      ['You said: Hello', 3],
      ['It rains.', 7],
      'rate_limited',
      'caller',
    ])
    expect(results.size).toBe(4)
    expect(bench.sandbox.requests.filter((call) => call.batchId !== undefined)).toHaveLength(4)
  })

  test('says which requests were not made because it was cancelled', async () => {
    const bench = new Bench(vendor, upstream)
    const { batchId } = await bench.submit(['one', 'two'])
    bench.clock.advance(2_000)
    const { status } = await bench.send(bench.batches.cancel(batchId, KEY))
    const cancelling = await bench.report(batchId)
    bench.clock.advance(1_000)
    const ended = await bench.report(batchId)
    const results = await bench.results(batchId)

    expect([status, cancelling?.state, ended?.state]).toEqual([200, 'running', 'ended'])
    expect(bench.read(results.get('r0'))).toEqual(['You said: one', 3])
    expect(bench.read(results.get('r1'))).toBe('cancelled')
  })

  test('ends without answers where it is cancelled before it begins', async () => {
    const bench = new Bench(vendor, upstream)
    const { batchId } = await bench.submit(['one'])
    await bench.send(bench.batches.cancel(batchId, KEY))
    bench.clock.advance(1_000)

    expect(await bench.report(batchId)).toMatchObject({ state: 'ended', isCancelled: true })
    const result = (await bench.results(batchId)).get('r0')
    expect(['cancelled', undefined]).toContain(result?.kind)
    expect(bench.sandbox.requests.some((call) => call.batchId !== undefined)).toBe(false)
  })

  test('tells that its time ran out', async () => {
    const bench = new Bench(vendor, upstream)
    const { batchId } = await bench.submit(['one', 'two [[batch:expired]]'])
    bench.clock.advance(RUN_MS)

    expect(await bench.report(batchId)).toMatchObject({ state: 'ended', isExpired: true })
    const result = (await bench.results(batchId)).get('r1')
    expect(['expired', undefined]).toContain(result?.kind)
  })

  test('is deleted with its files', async () => {
    const bench = new Bench(vendor, upstream)
    const { fileId, batchId } = await bench.submit(['one'])
    bench.clock.advance(RUN_MS)
    const { results = [] } = (await bench.report(batchId)) ?? {}
    const removals = bench.batches.remove({ fileId, batchId, results }, KEY)
    const statuses = await Promise.all(removals.map(async (call) => (await bench.send(call)).status))

    expect(removals.length).toBeGreaterThan(0)
    expect(statuses).toEqual(removals.map(() => 200))
    const { upload } = bench.batches
    expect(fileId === undefined).toBe(upload === undefined)
  })

  test('is found by our name on a later page, where the vendor keeps names', async () => {
    const bench = new Bench(vendor, upstream)
    const { search } = bench.batches
    if (search === undefined) return expect(id).toBe('anthropic')
    const sinceMs = bench.clock.now()
    const { batchId } = await bench.submit(['one'], 'sought')
    for (let index = 0; index < 101; index++) await bench.submit(['other'], `other_${index}`)
    const find = async (name: string): Promise<unknown> => {
      for (let after: string | undefined; ; ) {
        const page = search.read(await bench.send(search.call(after, KEY)), { name, sinceMs })
        if (page?.after === undefined) return page
        after = page.after
      }
    }

    expect(await find('sought')).toEqual({ batchId })
    expect(await find('nobody')).toEqual({})
  })

  test('reads no other key than the one it was created with', async () => {
    const bench = new Bench(vendor, upstream)
    const { batchId } = await bench.submit(['one'])

    expect((await bench.send(bench.batches.read(batchId, 'sk-another-0123456789'))).status).toBe(404)
  })
})

test('a batch that cannot be processed has failed, or all its requests have', async () => {
  const reports = await Promise.all(
    VENDORS.map(async ([id, vendor, upstream]) => {
      const bench = new Bench(vendor, upstream)
      const { batchId } = await bench.submit(['one [[batch:failed]]'])
      bench.clock.advance(RUN_MS)
      const report = await bench.report(batchId)
      return [id, report?.state, report?.failure?.code, bench.read((await bench.results(batchId)).get('r0'))]
    }),
  )

  expect(reports).toEqual([
    ['openai', 'failed', 'token_limit_exceeded', undefined],
    ['dashscope', 'failed', 'token_limit_exceeded', undefined],
    ['anthropic', 'ended', undefined, 'unavailable'],
    ['gemini', 'failed', 'INVALID_ARGUMENT', undefined],
  ])
})
