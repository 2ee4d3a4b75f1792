import { connect } from 'node:net'
import { charge, definePrices, type PriceFile } from '../../../src/catalog/prices/prices.ts'
import type { GatewayEvent } from '../../../src/core/events.ts'
import type { Usage } from '../../../src/core/usage.ts'
import type { GatewayOptions } from '../../../src/gateway/gateway-options.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { SPEECH_PRICES } from '../../gateway/speech-gateway.ts'
import { type RequestEnded, type StartedGateway, startGateway, TEST_MODELS } from '../../support/start-gateway.ts'
import { FALLING_MODEL, FALLING_UPSTREAM, startBillingVendor } from './billing-vendor.ts'
import type { ExitPlan, ExitPolicy } from './exit-plan.ts'
import type { ExitResult } from './loss-table.ts'

const AT_ONCE = 36
const CALLS_PER_ACCOUNT = 40

const MODELS: NonNullable<GatewayOptions['models']> = [
  ...TEST_MODELS,
  { ...TEST_MODELS[0], id: 'chat-reasoning', upstream: 'o3' },
  { ...TEST_MODELS[0], id: FALLING_MODEL, upstream: FALLING_UPSTREAM, fallbacks: ['chat-relayed'] },
]
const PRICES: PriceFile = {
  ...SPEECH_PRICES,
  prices: [
    ...SPEECH_PRICES.prices,
    ...['chat-reasoning', FALLING_MODEL].flatMap((model) => [
      { model, meter: 'input_token' as const, amount: '1.00', per: 1_000_000 },
      { model, meter: 'output_token' as const, amount: '4.00', per: 1_000_000 },
    ]),
  ],
}

/** Gateways with every policy before one vendor. */
export interface ExitRun {
  makeAll(): Promise<ExitResult[]>
  /** Money that is held in the end. */
  held(): Promise<bigint>
  close(): Promise<void>
}

/** Long enough for every answer of the drill that comes. */
const TIMEOUTS = { firstByteMs: 1_500, totalMs: 6_000 }

interface PolicyGateway {
  readonly started: StartedGateway
  /** Of each account, the end of its call under way. */
  readonly endings: Map<string, (ended: RequestEnded) => void>
  readonly told: Map<string, Told>
}

/** What was told of an account's calls, and of how many calls of vendors. */
interface Told {
  readonly amount: bigint
  readonly calls: number
}

const NOTHING_TOLD: Told = { amount: 0n, calls: 0 }

export async function startExits(plans: readonly ExitPlan[], options: Partial<GatewayOptions> = {}): Promise<ExitRun> {
  const vendor = await startBillingVendor(plans)
  const prices = definePrices(PRICES)
  const costOf = (model: string, usage: Usage): bigint => {
    const rate = prices.quote(model, {})
    return rate === undefined ? 0n : (charge(rate, usage) ?? 0n)
  }
  const accounts = Math.ceil(plans.length / CALLS_PER_ACCOUNT / AT_ONCE) * AT_ONCE
  const keys = Array.from({ length: accounts }, (_, index) => ({ key: `sk-exit-${index}`, account: `exit_${index}` }))
  const gateways = new Map<ExitPolicy, PolicyGateway>()
  const startOne = async (policy: ExitPolicy): Promise<void> => {
    const endings = new Map<string, (ended: RequestEnded) => void>()
    const told = new Map<string, Told>()
    const onEvent = (event: GatewayEvent): void => {
      if (event.type === 'request-ended') endings.get(event.accountId)?.(event)
      if (event.type !== 'unbilled-usage') return
      const { amount, calls } = told.get(event.accountId) ?? NOTHING_TOLD
      told.set(event.accountId, { amount: amount + costOf(event.model, event.usage), calls: calls + 1 })
    }
    const connection = { apiKey: 'key', baseURL: vendor.origin }
    const store = memoryStore()
    const started = await startGateway({
      store,
      vendors: [openai(connection), anthropic(connection), dashscope(connection)],
      models: MODELS,
      prices: PRICES,
      keys: [{ key: 'sk-test-0123456789', account: 'acct_test' }, ...keys],
      onEvent,
      timeouts: TIMEOUTS,
      ...options,
      ...(policy === undefined ? {} : { disconnect: policy }),
    })
    for (const { account } of keys) await started.gateway.accounts.credit(account, '1000')
    gateways.set(policy, { started, endings, told })
  }
  for (const policy of ['cancel', 'drain', undefined] as const) await startOne(policy)

  /** One call; gives what it was charged. */
  const call = async (plan: ExitPlan, keyIndex: number, leaves: boolean): Promise<bigint> => {
    const { started, endings } = gateways.get(plan.policy)!
    const { key, account } = keys[keyIndex]!
    const ended = new Promise<RequestEnded>((resolve) => endings.set(account, resolve))
    const head = await post(started.url, plan, key, leaves ? () => vendor.arrived(plan) : undefined)
    if (head.includes('idempotent-replayed: true')) return 0n
    return (await ended).costNanoDollars
  }

  const make = async (plan: ExitPlan, keyIndex: number): Promise<ExitResult> => {
    const { told } = gateways.get(plan.policy)!
    const { account } = keys[keyIndex]!
    const toldBefore = told.get(account) ?? NOTHING_TOLD
    const leaves = plan.kind.startsWith('caller leaves')
    const charges = [await call(plan, keyIndex, leaves)]
    if (plan.kind === 'replay' || plan.kind === 'caller leaves, asks again')
      charges.push(await call(plan, keyIndex, false))
    const toldAfter = told.get(account) ?? NOTHING_TOLD
    const explained = charges.filter((charge) => charge > 0n).length + toldAfter.calls - toldBefore.calls
    const billed = vendor.billsOf(plan).reduce((sum, { model, usage }) => sum + costOf(model, usage), 0n)
    return {
      plan,
      account: `${account}, ${plan.policy ?? 'default'}`,
      billed,
      charged: charges.reduce((sum, charge) => sum + charge),
      told: toldAfter.amount - toldBefore.amount,
      untoldCalls: Math.max(0, vendor.billedCallsOf(plan) - explained),
    }
  }

  return {
    async makeAll() {
      const results: ExitResult[] = new Array(plans.length)
      let next = 0
      let round = 0
      const free = Array.from({ length: keys.length }, (_, index) => index)
      const worker = async (): Promise<void> => {
        while (next < plans.length) {
          const index = next++
          const keyIndex = free.splice(round++ % free.length, 1)[0]!
          results[index] = await make(plans[index]!, keyIndex)
          free.push(keyIndex)
        }
      }
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, keys.length) }, worker))
      return results
    },
    async held() {
      let held = 0n
      for (const { started } of gateways.values())
        for (const { account } of keys) held += (await started.gateway.accounts.get(account))?.held ?? 0n
      return held
    },
    async close() {
      for (const { started } of gateways.values()) await started.close()
      await vendor.close()
    },
  }
}

/**
 * Posts the request of a plan on a socket of its own and resolves with the head of the answer once the connection is closed.
 * @param arrived Set where the caller leaves: when its call has arrived at the vendor.
 */
function post(url: string, plan: ExitPlan, key: string, arrived: (() => Promise<void>) | undefined): Promise<string> {
  const { hostname, port } = new URL(url)
  const { path, body } = requestOf(plan)
  const json = JSON.stringify(body)
  const isKeyed = plan.kind === 'replay' || plan.kind === 'caller leaves, asks again'
  const socket = connect(Number(port), hostname)
  let head = ''
  let byteLength = 0
  // A caller of a stream leaves after so many bytes; one of a whole answer while it is made.
  const leaveAfter = arrived !== undefined && plan.isStream ? plan.at * expectedBytes(plan) : Number.POSITIVE_INFINITY
  socket.on('error', () => undefined)
  socket.on('data', (chunk) => {
    byteLength += chunk.byteLength
    if (head.length < 4_096) head += chunk.toString('latin1')
    if (byteLength > leaveAfter) socket.destroy()
  })
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${
      isKeyed ? `idempotency-key: exit-${plan.id}\r\n` : ''
    }content-length: ${Buffer.byteLength(json)}\r\nconnection: close\r\n\r\n${json}`,
  )
  if (arrived !== undefined && (!plan.isStream || leaveAfter < 200))
    void arrived().then(() => setTimeout(() => socket.destroy(), plan.at * (plan.isStream ? 10 : 40)))
  return new Promise((resolve) => socket.on('close', () => resolve(head)))
}

function expectedBytes({ form, tokens, tokensPerChunk, pictures }: ExitPlan): number {
  if (form === 'images') return 200 + pictures * 300
  if (form === 'speech') return 200 + 4 * 4_800
  return 300 + (tokens.length / tokensPerChunk) * 180 + tokens.length * 4.2
}

function requestOf(plan: ExitPlan): { readonly path: string; readonly body: object } {
  const { form, prompt, isStream, maxTokens, pictures } = plan
  const model = plan.kind === 'fallback' ? FALLING_MODEL : plan.model
  const messages = [{ role: 'user', content: prompt }]
  switch (form) {
    case 'chat':
      return { path: '/v1/chat/completions', body: { model, messages, stream: isStream, max_tokens: maxTokens } }
    case 'messages':
      return { path: '/v1/messages', body: { model, messages, stream: isStream, max_tokens: maxTokens } }
    case 'embeddings':
      return { path: '/v1/embeddings', body: { model, input: prompt } }
    case 'images': {
      const picture = { model, prompt, n: pictures, quality: 'low', size: '1024x1024' }
      return { path: '/v1/images/generations', body: isStream ? { ...picture, stream: true } : picture }
    }
    case 'speech':
      return { path: '/v1/audio/speech', body: { model, input: prompt, voice: 'Cherry', response_format: 'wav' } }
  }
}
