import { existsSync } from 'node:fs'
import { systemClock } from '../core/clock.ts'
import { timeOrderedIds } from '../core/ids.ts'
import { type Accounts, accountsOf } from '../gateway/accounts.ts'
import { type Keys, keysOf } from '../gateway/keys.ts'
import { type Webhooks, webhooksOf } from '../gateway/webhooks.ts'
import { SqliteStoreError } from '../stores/sqlite/sqlite-store.ts'
import { openStore, storeError } from './open-store.ts'
import { SettingError } from './setting-error.ts'
import { DEFAULT_STORE, describeStore, parseStoreSetting, type StoreSetting } from './store-setting.ts'
import type { Terminal } from './terminal.ts'

/** Administration of a store. */
export interface Administration {
  readonly accounts: Accounts
  readonly keys: Keys
  readonly webhooks: Webhooks
}

/**
 * Runs a command on the store of `--store`, else of `SIGNALBOX_STORE`, else on `sqlite:signalbox.db`, and closes it.
 * @param wanted `mayCreate`: the command may begin a new SQLite database. Others would only leave an empty one behind when
 *   they are run in the wrong folder.
 * @throws SettingError for a store that keeps nothing or cannot be used, and for what the store refuses.
 */
export async function withStore<Result>(
  terminal: Terminal,
  wanted: { readonly store: string | undefined; readonly mayCreate?: boolean },
  run: (administration: Administration) => Promise<Result>,
): Promise<Result> {
  const name = wanted.store === undefined ? 'SIGNALBOX_STORE' : '--store'
  const text = wanted.store ?? terminal.environment['SIGNALBOX_STORE']?.trim()
  const setting = text === undefined || text === '' ? DEFAULT_STORE : parseStoreSetting(name, text)
  if (setting.kind === 'memory')
    throw new SettingError(
      `${name}: this command needs a durable store, sqlite:PATH or postgres://…; memory: keeps nothing`,
    )
  if (setting.kind === 'sqlite' && wanted.mayCreate !== true && !existsSync(setting.path))
    throw new SettingError(
      `${name}: there is no database ${describeStore(setting)}; signalbox serve or signalbox accounts create makes one`,
    )
  const { store, release } = await openStore(name, setting)
  try {
    await started(name, setting, () => store.start())
    const ready = async (): Promise<void> => undefined
    return await run({
      accounts: accountsOf(store, systemClock, timeOrderedIds, ready),
      keys: keysOf(store, systemClock, timeOrderedIds, ready),
      webhooks: webhooksOf(store, systemClock, ready),
    })
  } catch (error) {
    // What a store refuses is the operator's to mend; other errors are ours and keep their stack.
    if (error instanceof RangeError) throw new SettingError(error.message)
    if (error instanceof SqliteStoreError) throw storeError(name, setting, error)
    throw error
  } finally {
    await store.close()
    await release()
  }
}

async function started(name: string, setting: StoreSetting, start: () => Promise<void>): Promise<void> {
  try {
    await start()
  } catch (cause) {
    throw storeError(name, setting, cause)
  }
}
