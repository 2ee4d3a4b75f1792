import { BUILT_IN_MODELS } from '../catalog/models/built-in-models.ts'
import { GatewayError } from '../core/errors.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { ListedModel } from '../gateway/model-list.ts'
import { variablesOf } from './check-report.ts'
import type { ConfiguredVendor } from './configured-clouds.ts'
import { EXAMPLE_CALLS, EXAMPLE_CHATS } from './example-run.ts'
import { describeStore, describeUrl, ENGINE_COMMAND, type StoreSetting } from './open-store.ts'
import type { ServedOperatorKey } from './serve-console.ts'
import type { StartKeys } from './serve-keys.ts'
import type { ServeSettings } from './serve-settings.ts'
import { dollarsText } from './terminal.ts'

/** Facts that are printed when a server listens. */
export interface Announcement {
  readonly print: (line: string) => void
  readonly version: string
  readonly url: string
  readonly vendors: readonly ConfiguredVendor[]
  readonly gateway: Gateway
  readonly settings: ServeSettings
  readonly store: StoreSetting
  /** Whether the store is in memory because there is no engine for SQLite. */
  readonly isUnasked: boolean
  readonly keys: StartKeys
  /** Key of the operator, or `undefined` if no console is served. */
  readonly operator: ServedOperatorKey | undefined
  /** Whether example calls were made. */
  readonly hasExamples: boolean
}

/** Prints the address, the configured and unconfigured vendors, and an example call. */
export async function announce(announcement: Announcement): Promise<void> {
  const { print, version, url, vendors, settings, store } = announcement
  print(`signalbox ${version} listening on ${url}`)
  print(`vendors   ${vendors.map(vendorText).join(', ')}`)
  print(`store     ${storeText(store)}`)
  if (announcement.isUnasked) {
    print('          NOTHING SURVIVES A RESTART: this Node has no SQLite engine that can be used')
    print(`          to keep accounts, keys and usage: ${ENGINE_COMMAND}, then start again`)
  }
  if (settings.redisUrl !== undefined) print(`limits    shared through ${describeUrl(settings.redisUrl)}`)
  print(`billing   ${billingText(settings)}`)
  const { unpriced = 0, models = 0 } = announcement.gateway.unpricedModels() ?? {}
  if (unpriced > 0)
    print(`prices    ${unpriced} of ${models} models have no price, and are refused; name them in SIGNALBOX_PRICES`)
  const { date, ageDays, isOld } = (await announcement.gateway.health()).catalog
  print(`catalog   models and list prices of ${date}${isOld ? `, ${ageDays} days old: update signalbox` : ''}`)
  await announceKeys(announcement)
  if (settings.corsOrigins !== undefined) print(`cors      ${corsText(settings.corsOrigins)}`)
  announceConsole(announcement)
  await announceCall(announcement)
}

function corsText(origins: NonNullable<ServeSettings['corsOrigins']>): string {
  return origins === '*' ? 'pages of every origin may call' : `pages of ${origins.join(', ')} may call`
}

function billingText({ prices, billing }: ServeSettings): string {
  if (billing === 'off') return 'off, as SIGNALBOX_BILLING says'
  if (prices === undefined)
    return 'off: set SIGNALBOX_PRICES to a price file, or SIGNALBOX_LIST_PRICES=1, to charge for calls'
  return `${billing === 'metered' ? 'metered' : 'on'}, by ${prices.source}${prices.isReloadable ? ' (SIGHUP reads it again)' : ''}`
}

/** Keys from the settings are not printed in logs. */
function announceConsole({ print, url, operator, hasExamples }: Announcement): void {
  if (operator === undefined) return
  const key = operator.isMade ? 'the operator key below' : 'SIGNALBOX_OPERATOR_KEY'
  print(`console   ${url}/console/   open it in a browser, and enter ${key}`)
  if (operator.isMade) print(`operator  ${operator.key}   (made for this run)`)
  if (hasExamples) print(`examples  ${EXAMPLE_CALLS}`)
}

function vendorText({ vendor, state }: ConfiguredVendor): string {
  return `${vendor.id} (${state === 'not configured' ? `not configured: set ${variablesOf(vendor.configuredBy)}` : state})`
}

function storeText(store: StoreSetting): string {
  return store.kind === 'memory'
    ? 'memory: (accounts, keys and balances are gone when this process ends)'
    : describeStore(store)
}

async function announceKeys({ print, gateway, settings, store, keys }: Announcement): Promise<void> {
  if (keys.source === 'stored') {
    print(
      `keys      ${keys.hasMore ? 'more than ' : ''}${keys.count} in the store; signalbox keys create makes another`,
    )
    return
  }
  // Keys from the settings are not printed; only a key that was created here is shown whole.
  if (keys.source === 'given') print(`key       ${keys.first.key.slice(0, 6)}…`)
  else print(`key       ${keys.key}   (${store.kind === 'memory' ? 'made for this run' : 'made now, shown this once'})`)
  const id = keys.source === 'given' ? keys.first.account : keys.account
  const balance = (await gateway.accounts.get(id))?.balance ?? 0n
  print(`balance   ${dollarsText(balance)}${balance > 0n || !isPrepaid(settings) ? '' : creditText(store, id)}`)
}

function isPrepaid({ prices, billing }: ServeSettings): boolean {
  return prices !== undefined && (billing ?? 'prepaid') === 'prepaid'
}

/** Another process cannot reach the memory of this one. */
function creditText({ kind }: StoreSetting, account: string): string {
  const way = kind === 'memory' ? 'start with --credit 10' : `signalbox accounts credit ${account} 10`
  return `: calls that cost are refused until it has money; ${way}`
}

async function announceCall({ print, url, gateway, settings, keys }: Announcement): Promise<void> {
  const models = callableChats(gateway)
  if (models.length === 0) {
    print('models    no chat model is available: configure a vendor, or start with --sandbox')
    return
  }
  const body = await exampleChat(gateway, models, settings)
  if (body === undefined) {
    print('models    no chat model of the configured vendors has a price: name one in SIGNALBOX_PRICES')
    return
  }
  const key = keys.source === 'made' ? keys.key : '<your key>'
  print('')
  print(
    `curl ${url}/v1/chat/completions -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" -d '${JSON.stringify(body)}'`,
  )
}

/** Ids of chat models: the operator's rows first, then the models of the examples, built-in rows, and the newest model. */
function callableChats(gateway: Gateway): readonly string[] {
  const builtIn = new Set(BUILT_IN_MODELS.map(({ id }) => id))
  const rows = new Set(gateway.catalog.rows.map(({ id }) => id))
  const examples: readonly string[] = EXAMPLE_CHATS
  const rankOf = ({ id }: ListedModel): number =>
    rows.has(id) && !builtIn.has(id) ? 0 : examples.includes(id) ? 1 : rows.has(id) ? 2 : 3
  return gateway
    .models()
    .filter((model) => model.unavailable_reason !== 'model_not_configured' && model.kinds.includes('chat'))
    .map((model) => ({ id: model.id, rank: rankOf(model), created: rows.has(model.id) ? 0 : model.created }))
    .sort((one, other) => one.rank - other.rank || other.created - one.created)
    .map(({ id }) => id)
}

/** Enough for a model that reasons before it answers. */
const EXAMPLE_MAX_TOKENS = 1_000

/** Writes a chat with the first priced model. Returns `undefined` if the gateway would reject all of them. */
async function exampleChat(
  gateway: Gateway,
  models: readonly string[],
  { tier = 'paid' }: ServeSettings,
): Promise<object | undefined> {
  const rows = gateway.prices()
  // Thousands of models may have no price.
  const priced = rows === undefined ? undefined : new Set(rows.map(({ model }) => model))
  for (const model of models) {
    if (priced?.has(model) === false) continue
    const body = { model, max_tokens: EXAMPLE_MAX_TOKENS, messages: [{ role: 'user', content: 'Say hello' }] }
    try {
      await gateway.estimate({ accountId: 'example', keyId: 'example', tier }, { endpoint: 'chat', body })
      return body
    } catch (error) {
      if (!GatewayError.isInstance(error)) throw error
    }
  }
  return undefined
}
