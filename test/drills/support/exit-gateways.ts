import { charge, definePrices, type PriceFile } from '../../../src/catalog/prices/prices.ts'
import type { GatewayEvent } from '../../../src/core/events.ts'
import type { Usage } from '../../../src/core/usage.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { AnyHook, HookCall } from '../../../src/hooks/hook.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { voyage } from '../../../src/vendors/voyage/voyage.ts'
import { SPEECH_PRICES } from '../../gateway/audio/speech-gateway.ts'
import { type StartedGateway, startGateway, TEST_KEY, TEST_MODELS } from '../../support/start-gateway.ts'
import { FALLING_MODEL, FALLING_UPSTREAM, LONGER_MARK } from './exit-forms.ts'
import type { ExitPolicy } from './exit-plan.ts'

/** Units that the hook of the drill charges for each call of its model. */
export const HOOK_UNITS = 2
export const GUARDED_MODEL = 'chat-guarded'
const [RELAYED] = TEST_MODELS
/** Models of our own, with the id of each at its vendor. */
const OWN_MODELS = {
  'chat-reasoning': 'o3',
  [FALLING_MODEL]: FALLING_UPSTREAM,
  'chat-tiered': 'gpt-5.4',
  [GUARDED_MODEL]: 'gpt-5.4',
  'chat-cached': 'gpt-4.1-mini',
  'chat-batched': 'gpt-5.4',
} as const

const MODELS: NonNullable<GatewayOptions['models']> = [
  ...TEST_MODELS,
  ...Object.entries(OWN_MODELS).map(([id, upstream]) => ({
    ...RELAYED,
    id,
    upstream,
    ...(id === FALLING_MODEL ? { fallbacks: [RELAYED.id] } : {}),
  })),
]

const tokenPrices = (model: string, factor: number, when?: Readonly<Record<string, string>>) =>
  (['input_token', 'output_token'] as const).map((meter) => ({
    model,
    meter,
    amount: ((meter === 'input_token' ? 1 : 4) * factor).toFixed(2),
    per: 1_000_000,
    ...(when === undefined ? {} : { when }),
  }))

/** Prices of the vendors, which callers pay too. */
const PRICES: PriceFile = {
  ...SPEECH_PRICES,
  prices: [
    ...SPEECH_PRICES.prices,
    ...Object.keys(OWN_MODELS).flatMap((model) => tokenPrices(model, 1)),
    ...tokenPrices('chat-tiered', 1.7, { service_tier: 'priority' }),
    ...tokenPrices('chat-batched', 1, { batch: 'true' }),
    { model: GUARDED_MODEL, meter: 'hook_unit', amount: '0.0001' },
    { model: 'chat-cached', meter: 'request', amount: '0.0001', when: { cache: 'hit' } },
    { model: 'gpt-transcribe', meter: 'audio_second', amount: '0.0001' },
  ],
}

/** Long enough for every answer of the drill that comes. */
const TIMEOUTS = { firstByteMs: 5_000, totalMs: 15_000 }

const HOOKS: readonly AnyHook[] = [
  {
    name: 'guard',
    endpoints: ['chat'],
    request(call: HookCall) {
      if (call.model === GUARDED_MODEL) call.charge('hook_unit', HOOK_UNITS)
    },
  },
  {
    name: 'longer',
    endpoints: ['chat'],
    request(call: HookCall) {
      const marked =
        call.model === 'chat-batched' ? call.texts().find(({ text }) => text.endsWith(LONGER_MARK)) : undefined
      return marked === undefined ? undefined : { texts: new Map([[marked.id, `${marked.text} and more`.repeat(9)]]) }
    },
  },
]

type Ended = Extract<GatewayEvent, { type: 'request-ended' | 'task-ended' }>

/** Sum of the `unbilled-usage` events of an account, and their number. */
export interface Told {
  readonly amount: bigint
  readonly calls: number
}

/** A gateway with one policy. */
export interface PolicyGateway {
  readonly started: StartedGateway
  /** Resolves with the next end of this type of a call of the account. */
  ended(type: Ended['type'], account: string): Promise<Ended>
  told(account: string): Told
}

const prices = definePrices(PRICES)

/** Returns the cost of usage by the price list, in nano-dollars. */
export function costOf(model: string, usage: Usage, fields: Readonly<Record<string, string>>): bigint {
  const { serviceTier: _tier, ...counts } = usage
  const rate = prices.quote(model, fields)
  return rate === undefined ? 0n : (charge(rate, counts) ?? 0n)
}

/** Price fields of an event's usage. An event without a tier means the requested one. */
function fieldsTold(model: string, { serviceTier }: Usage): Readonly<Record<string, string>> {
  if (model === 'chat-batched') return { batch: 'true' }
  return model === 'chat-tiered' && serviceTier !== 'default' ? { service_tier: 'priority' } : {}
}

/** Starts a gateway with this policy before a vendor. */
export async function startPolicyGateway(
  origin: string,
  policy: ExitPolicy,
  keys: readonly { readonly key: string; readonly account: string }[],
): Promise<PolicyGateway> {
  const waiting = new Map<string, (ended: Ended) => void>()
  const told = new Map<string, Told>()
  const toldOf = (account: string): Told => told.get(account) ?? { amount: 0n, calls: 0 }
  const connection = { apiKey: 'key', baseURL: origin }
  const started = await startGateway({
    store: memoryStore(),
    vendors: [openai(connection), anthropic(connection), dashscope(connection), voyage(connection)],
    models: MODELS,
    prices: PRICES,
    keys: [{ key: TEST_KEY, account: 'acct_test' }, ...keys],
    hooks: HOOKS,
    batches: { native: false },
    cache: { rules: [{ endpoints: ['chat'], models: ['chat-cached'] }] },
    timeouts: TIMEOUTS,
    onEvent(event: GatewayEvent) {
      if (event.type === 'request-ended' || event.type === 'task-ended')
        waiting.get(`${event.type} ${event.accountId}`)?.(event)
      if (event.type !== 'unbilled-usage') return
      const { accountId, model, usage } = event
      const { amount, calls } = toldOf(accountId)
      told.set(accountId, { amount: amount + costOf(model, usage, fieldsTold(model, usage)), calls: calls + 1 })
    },
    ...(policy === undefined ? {} : { disconnect: policy }),
  })
  for (const { account } of keys) await started.gateway.accounts.credit(account, '1000')
  return {
    started,
    told: toldOf,
    ended: (type, account) => new Promise((resolve) => waiting.set(`${type} ${account}`, resolve)),
  }
}
