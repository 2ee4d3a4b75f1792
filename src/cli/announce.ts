import type { Gateway } from '../gateway/gateway.ts'
import type { ConfiguredVendor } from './configured-clouds.ts'
import { describeStore, describeUrl, type StoreSetting } from './open-store.ts'
import type { StartKeys } from './serve-keys.ts'
import type { ServeSettings } from './serve-settings.ts'
import { dollarsText } from './terminal.ts'

/** What is printed once a server listens. */
export interface Announcement {
  readonly print: (line: string) => void
  readonly version: string
  readonly url: string
  readonly vendors: readonly ConfiguredVendor[]
  readonly gateway: Gateway
  readonly settings: ServeSettings
  readonly store: StoreSetting
  readonly keys: StartKeys
}

/** Prints the address, what is configured and what is not, and an example call. */
export async function announce(announcement: Announcement): Promise<void> {
  const { print, version, url, vendors, settings, store } = announcement
  print(`signalbox ${version} listening on ${url}`)
  print(`vendors   ${vendors.map(vendorText).join(', ')}`)
  print(`store     ${storeText(store)}`)
  if (settings.redisUrl !== undefined) print(`limits    shared through ${describeUrl(settings.redisUrl)}`)
  print(
    settings.prices === undefined
      ? 'billing   off: set SIGNALBOX_PRICES to a price file, or SIGNALBOX_LIST_PRICES=1, to charge for calls'
      : `billing   on, by ${settings.prices.source} (SIGHUP reads it again)`,
  )
  await announceKeys(announcement)
  announceCall(announcement)
}

function vendorText({ vendor, state }: ConfiguredVendor): string {
  return `${vendor.id} (${state === 'not configured' ? `not configured: set ${vendor.configuredBy}` : state})`
}

function storeText(store: StoreSetting): string {
  return store.kind === 'memory'
    ? 'memory: (accounts, keys and balances are gone when this process ends)'
    : describeStore(store)
}

async function announceKeys({ print, gateway, store, keys }: Announcement): Promise<void> {
  if (keys.source === 'stored') {
    print(`keys      ${keys.count} in the store; signalbox keys create makes another`)
    return
  }
  // Given keys stay out of logs; only a key made here is shown whole.
  if (keys.source === 'given') print(`key       ${keys.first.key.slice(0, 6)}…`)
  else print(`key       ${keys.key}   (${store.kind === 'memory' ? 'made for this run' : 'made now, shown this once'})`)
  const account = await gateway.accounts.get(keys.source === 'given' ? keys.first.account : keys.account)
  print(`balance   ${dollarsText(account?.balance ?? 0n)}`)
}

function announceCall({ print, url, gateway, keys }: Announcement): void {
  const model = gateway.models().find((row) => row.available && row.kinds.includes('chat'))?.id
  if (model === undefined) {
    print('models    no chat model is available: configure a vendor, or start with --sandbox')
    return
  }
  const key = keys.source === 'made' ? keys.key : '<your key>'
  print('')
  print(
    `curl ${url}/v1/chat/completions -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" -d '{"model":"${model}","max_tokens":100,"messages":[{"role":"user","content":"Say hello"}]}'`,
  )
}
