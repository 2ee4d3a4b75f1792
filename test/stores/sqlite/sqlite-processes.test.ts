import { describe, expect, it } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { MIGRATIONS } from '../../../src/stores/sqlite/sqlite-migrations.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { defaultEngine } from './support/sqlite-engines.ts'
import { type StoreProcess, storeProcesses } from './support/store-processes.ts'
import { temporaryPaths } from './support/temporary-folder.ts'

const newPath = temporaryPaths()
const startProcess = storeProcesses()
const isLong = process.env['DRILL'] === 'long'
const NOW_MS = 1_750_000_000_000
const ACCOUNT_ID = 'account_1'

async function fundedStore(path: string, amount: bigint): Promise<GatewayStore> {
  const store = sqliteStore({ path, busyTimeoutMs: 30_000, clock: 'caller' })
  await store.start()
  await store.ledger.createAccount({ id: ACCOUNT_ID }, NOW_MS)
  await store.ledger.credit({ creditId: 'credit_1', accountId: ACCOUNT_ID, amount, description: 'start' }, NOW_MS)
  return store
}

async function runTogether(processes: readonly StoreProcess[]): Promise<(number | string | null)[]> {
  await Promise.all(processes.map((process) => process.line(/^ready$/)))
  for (const process of processes) process.tell()
  return Promise.all(processes.map((process) => process.ended))
}

function numberAfter(word: string, processes: readonly StoreProcess[]): number[] {
  return processes.map(({ lines }) => Number(lines.find((line) => line.startsWith(word))?.slice(word.length)))
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

describe('sqlite store shared by processes', () => {
  it('admits exactly 137 of 2,000 requests of 4 processes with money for 137', { timeout: 120_000 }, async () => {
    const path = newPath()
    const store = await fundedStore(path, 137n * 50n + 49n)
    const processes = ['a', 'b', 'c', 'd'].map((name) => startProcess('reserve', path, name, '500', '50'))
    const codes = await runTogether(processes)

    expect(codes).toEqual([0, 0, 0, 0])
    expect(sum(numberAfter('held ', processes))).toBe(137)
    expect(await store.ledger.account(ACCOUNT_ID)).toMatchObject({ balance: 49n, held: 137n * 50n })
    await store.close()
  })

  it('migrates once when 8 processes start on a new file at once', { timeout: 120_000 }, async () => {
    const path = newPath()
    const processes = Array.from({ length: 8 }, () => startProcess('migrate', path))
    const codes = await runTogether(processes)
    const database = defaultEngine.open(path)

    expect(codes).toEqual(Array.from({ length: 8 }, () => 0))
    const counted = database.prepare('SELECT count(*) AS n FROM signalbox_migrations').get()
    expect(counted).toMatchObject({ n: MIGRATIONS.length })
    database.close()
  })

  it('ends each of 100 holds once when 4 processes settle all of them', { timeout: 120_000 }, async () => {
    const path = newPath()
    const store = await fundedStore(path, 10_000n)
    const holds = Array.from({ length: 100 }, (_, index) => `hold_${index}`)
    const base = { accountId: ACCOUNT_ID, keyId: 'key_1', amount: 10n, expiresAtMs: NOW_MS + 1_000 }
    await Promise.all(holds.map((holdId) => store.ledger.reserve({ ...base, holdId }, NOW_MS)))
    const processes = Array.from({ length: 4 }, () => startProcess('settle', path, '100'))
    await runTogether(processes)

    expect(sum(numberAfter('ended ', processes))).toBe(100)
    expect(await store.ledger.account(ACCOUNT_ID)).toMatchObject({ balance: 9_900n, held: 0n })
    await store.close()
  })

  it('gives each of 50 accounts one first secret when 4 processes ask for it', { timeout: 120_000 }, async () => {
    const path = newPath()
    await (await fundedStore(path, 1n)).close()
    const processes = ['a', 'b', 'c', 'd'].map((name) => startProcess('secret', path, name))
    const codes = await runTogether(processes)

    const answers = new Set(processes.flatMap(({ lines }) => lines.filter((line) => line.startsWith('account_'))))
    expect(codes).toEqual([0, 0, 0, 0])
    expect(answers.size).toBe(50)
  })

  const kills = isLong ? 10 : 3
  const acknowledgements = isLong ? 4_000 : 900
  const title = `loses none of ${acknowledgements} acknowledged reservations over ${kills} kills (SIGKILL)`
  it(title, { timeout: 300_000 }, async () => {
    const path = newPath()
    const store = await fundedStore(path, 10_000_000n)
    const acknowledged: string[] = []
    for (let kill = 0; kill < kills; kill++) {
      const process = startProcess('acknowledge', path, `run${kill}`, '0')
      await untilLines(process, Math.ceil(acknowledgements / kills))
      process.child.kill('SIGKILL')
      await process.ended
      acknowledged.push(...process.lines.filter((line) => /^run\d+_\d+_\d+$/.test(line)))
    }
    const again = await Promise.all(acknowledged.map((holdId) => store.ledger.void(holdId, NOW_MS)))
    const account = await store.ledger.account(ACCOUNT_ID)

    expect(acknowledged.length).toBeGreaterThanOrEqual(acknowledgements)
    expect(again.filter(({ resolved }) => !resolved)).toEqual([])
    // Reservations that were written but not acknowledged are still held, and still add up.
    expect((account?.balance ?? 0n) + (account?.held ?? 0n)).toBe(10_000_000n)
    await store.close()
  })
})

/** Resolves when the process has written so many lines. */
function untilLines(process: StoreProcess, count: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      if (process.lines.length < count) return
      process.child.stdout!.off('data', look)
      resolve()
    }
    process.child.stdout!.on('data', look)
    void process.ended.then((code) => reject(new Error(`ended with ${code}`)))
  })
}
