import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

/** Key of the second account. */
export const OTHER_KEY = 'sk-other-0123456789'

/** A gateway on which two accounts have a key and money. */
export async function startTwoAccounts(options: Partial<GatewayOptions> = {}): Promise<StartedGateway> {
  const started = await startGateway({
    keys: [
      { key: TEST_KEY, account: 'acct_test' },
      { key: OTHER_KEY, account: 'acct_other' },
    ],
    ...options,
  })
  await started.gateway.accounts.credit('acct_other', '100')
  return started
}

/** Registers a folder of its own for each test of a file, with a path for a database in it; gone when the test is over. */
export function databasePaths(): { readonly path: string; readonly folder: string } {
  const paths = { folder: '', path: '' }
  beforeEach(() => {
    paths.folder = mkdtempSync(join(tmpdir(), 'signalbox-gateway-'))
    paths.path = join(paths.folder, 'store.db')
  })
  afterEach(() => rmSync(paths.folder, { recursive: true }))
  return paths
}

/** The store of a test that runs on each driver. */
export function storeOf(driver: string, path: string): Partial<GatewayOptions> {
  return driver === 'memory' ? {} : { store: sqliteStore({ path }) }
}

/** Sends JSON, or nothing, with a key; resolves with the status and the JSON of the answer. */
export async function askGateway(
  { url }: Pick<StartedGateway, 'url'>,
  method: string,
  path: string,
  body?: unknown,
  key = TEST_KEY,
): Promise<[number, Record<string, unknown>]> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
  const answer = await fetch(`${url}${path}`, init)
  return [answer.status, (await answer.json()) as Record<string, unknown>]
}
