import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type Preset, presets } from '../../../src/vendors/presets/presets.ts'
import type { Vendor } from '../../../src/vendors/vendor.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const UNBOUNDED_THINKING = 28_000
const UNBOUNDED_ANSWER = 8_000
const PER_TOKEN = 10_000n
const TEN_CENTS = 100_000_000n

let started: StartedGateway | undefined
let server: Server | undefined

afterEach(async () => {
  await started?.close()
  server?.close()
  started = server = undefined
})

interface SentBody {
  readonly max_tokens?: number
  readonly max_completion_tokens?: number
  readonly thinking_budget?: number
  readonly enable_thinking?: boolean
}

/** Tokens of an answer of a vendor whose models think and write as long as they may. */
type Writes = (body: SentBody) => number

/** Both names limit thinking and answer together. */
const limitsAll: Writes = ({ max_tokens: older, max_completion_tokens: newer }) =>
  newer ?? older ?? UNBOUNDED_THINKING + UNBOUNDED_ANSWER

/** The older name limits the answer only (Alibaba Cloud Model Studio). */
const limitsByNewerName: Writes = ({ max_tokens: older, max_completion_tokens: newer }) =>
  newer ?? UNBOUNDED_THINKING + (older ?? UNBOUNDED_ANSWER)

/** The newer name is unknown, and thinking has a budget of its own (SiliconFlow). */
const limitsByBudget: Writes = ({ max_tokens: answer = UNBOUNDED_ANSWER, thinking_budget, enable_thinking }) =>
  answer + (enable_thinking === false ? 0 : (thinking_budget ?? UNBOUNDED_THINKING))

async function startThinker(vendorAt: (origin: string) => Vendor, upstream: string, writes: Writes) {
  let written = 0
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const tokens = writes(JSON.parse(Buffer.concat(chunks).toString('utf8')) as SentBody)
    written += tokens + 1
    const usage = { prompt_tokens: 1, completion_tokens: tokens, total_tokens: tokens + 1 }
    const message = { role: 'assistant', content: 'hi' }
    const choices = [{ index: 0, message, finish_reason: 'length' }]
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ id: 'c_1', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
  })
  const http = server
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const vendor = vendorAt(`http://127.0.0.1:${(http.address() as AddressInfo).port}`)
  started = await startGateway({
    vendors: [vendor],
    models: [{ id: 'thinker', kind: 'chat', vendor: vendor.id, upstream }],
    prices: {
      currency: 'USD',
      prices: (['input_token', 'output_token'] as const).map((meter) => ({
        ...{ model: 'thinker', meter, amount: '10', per: 1_000_000 },
      })),
    },
  })
  const { gateway, post } = started
  await gateway.accounts.create({ id: 'acct_b' })
  await gateway.accounts.credit('acct_b', '0.10')
  const { key } = await gateway.keys.create({ accountId: 'acct_b' })
  return {
    call: (members: object) =>
      post(
        '/v1/chat/completions',
        { model: 'thinker', messages: [{ role: 'user', content: 'hi' }], ...members },
        { authorization: `Bearer ${key}` },
      ),
    bill: () => BigInt(written) * PER_TOKEN,
    account: () => gateway.accounts.get('acct_b'),
  }
}

const WITH_CHAT = Object.values(presets).filter(({ serves }: Preset) => serves.includes('chat'))
const VENDORS: readonly (readonly [string, (origin: string) => Vendor, string, Writes])[] = [
  ['DashScope', (baseURL) => dashscope({ apiKey: 'k', baseURL }), 'qwen3.6-plus', limitsByNewerName],
  ...WITH_CHAT.map((preset: Preset) => {
    const vendorAt = (baseURL: string) => openaiCompatible(preset, { apiKey: 'k', baseURL, account: 'acc' })
    const writes = preset.id === 'siliconflow' ? limitsByBudget : limitsAll
    return [preset.name, vendorAt, 'Qwen/Qwen3-8B', writes] as const
  }),
]

test.each(VENDORS)(
  '40 calls with a bound of 100 tokens cost at most $0.10 at %s',
  async (_name, at, upstream, writes) => {
    const { call, bill, account } = await startThinker(at, upstream, writes)
    for (const member of ['max_completion_tokens', 'max_tokens'])
      await Promise.all(Array.from({ length: 20 }, async () => (await call({ [member]: 100 })).text()))
    const { balance, owed } = (await account())!

    expect(bill()).toBeGreaterThanOrEqual(40n * 100n * PER_TOKEN)
    expect(bill()).toBeLessThanOrEqual(TEN_CENTS)
    expect([balance, owed]).toEqual([TEN_CENTS - bill(), 0n])
  },
)

test.each(VENDORS.slice(0, 1).concat(VENDORS.filter(([name]) => name === 'SiliconFlow')))(
  'calls without a bound cost at most the balance at %s',
  async (_name, at, upstream, writes) => {
    const { call, bill, account } = await startThinker(at, upstream, writes)
    await Promise.all(Array.from({ length: 6 }, async () => (await call({})).text()))

    expect(bill()).toBeGreaterThan(0n)
    expect(bill()).toBeLessThanOrEqual(TEN_CENTS)
    expect((await account())?.owed).toBe(0n)
  },
)
