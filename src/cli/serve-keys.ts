import type { Gateway } from '../gateway/gateway.ts'
import type { FixedKey } from '../gateway/gateway-options.ts'
import { hashApiKey } from '../stores/api-key.ts'
import type { ServeSettings } from './serve-settings.ts'

/** Keys that a server starts with. */
export type StartKeys =
  | { readonly source: 'given'; readonly first: FixedKey; readonly count: number }
  | { readonly source: 'made'; readonly key: string; readonly account: string }
  | { readonly source: 'stored'; readonly count: number; readonly hasMore: boolean }

/** Returns the keys of `SIGNALBOX_API_KEYS`. Each account id is derived from its key, so that it stays the same over all starts. */
export function fixedKeys(settings: ServeSettings): FixedKey[] {
  return settings.apiKeys.map((key) => ({
    key,
    account: `acct_${hashApiKey(key).slice(0, 16)}`,
    ...(settings.tier === undefined ? {} : { tier: settings.tier }),
  }))
}

/**
 * Ensures that the started gateway has a usable key. Credits the accounts of the configured keys, once each over all starts, or
 * creates a key if neither the settings nor the store have one.
 * @param credit Dollars for each account of a configured or created key.
 */
export async function startKeys(
  gateway: Gateway,
  settings: ServeSettings,
  credit: string | undefined,
): Promise<StartKeys> {
  const given = fixedKeys(settings)
  const [first] = given
  if (first !== undefined) {
    for (const { account } of given) {
      // Updates accounts of earlier starts.
      if (settings.tier !== undefined) await gateway.accounts.update(account, { tier: settings.tier })
      await creditOnce(gateway, account, credit)
    }
    return { source: 'given', first, count: given.length }
  }
  // Reads one page: there may be very many keys, and the start waits for it.
  const { keys, next } = await gateway.keys.page()
  if (keys.length > 0) return { source: 'stored', count: keys.length, hasMore: next !== undefined }
  const { id: account } = await gateway.accounts.create(settings.tier === undefined ? {} : { tier: settings.tier })
  await creditOnce(gateway, account, credit)
  const { key } = await gateway.keys.create({ accountId: account, label: 'made at the first start' })
  return { source: 'made', key, account }
}

async function creditOnce(gateway: Gateway, account: string, credit: string | undefined): Promise<void> {
  if (credit === undefined || !(Number(credit) > 0)) return
  await gateway.accounts.credit(account, credit, { creditId: `initial:${account}`, description: 'initial credit' })
}
