import { readFile, rename, writeFile } from 'node:fs/promises'
import type { KeyRecord, KeyStore } from '../../../src/index.ts'

/** API keys in a JSON file, for one process. */
export function fileKeys(path: string): KeyStore {
  let last: Promise<unknown> = Promise.resolve()

  /** One after the other, so that no change overwrites another; a change that fails does not stop the next. */
  function change<Value>(edit: (records: KeyRecord[]) => Value): Promise<Value> {
    const changed = last.then(async () => {
      const records = await readRecords(path)
      const value = edit(records)
      // Renaming replaces the file in one step: a crash leaves the old file or the new one.
      await writeFile(`${path}.new`, JSON.stringify(records, writeBigint))
      await rename(`${path}.new`, path)
      return value
    })
    last = changed.catch(() => undefined)
    return changed
  }

  return {
    findByHash: async (hash) => (await readRecords(path)).find((record) => record.hash === hash),
    insert: (record) =>
      change((records) => {
        if (!records.some(({ hash }) => hash === record.hash)) records.push(record)
      }),
    async list(accountId) {
      const records = await readRecords(path)
      return records
        .filter((record) => accountId === undefined || record.accountId === accountId)
        .sort((one, other) => one.createdAtMs - other.createdAtMs)
    },
    update: (keyId, { accountId, limits, spendingCap, namesEndUsers }) =>
      change((records) =>
        replace(records, keyId, (record) => ({
          accountId: accountId ?? record.accountId,
          limits: limits === undefined ? record.limits : (limits ?? undefined),
          spendingCap: spendingCap === undefined ? record.spendingCap : (spendingCap ?? undefined),
          namesEndUsers: namesEndUsers ?? record.namesEndUsers,
        })),
      ),
    revoke: (keyId, nowMs) =>
      change((records) => replace(records, keyId, ({ revokedAtMs = nowMs }) => ({ revokedAtMs }))),
    expire: (keyId, endMs) =>
      change((records) =>
        replace(records, keyId, ({ expiresAtMs = endMs }) => ({ expiresAtMs: Math.min(expiresAtMs, endMs) })),
      ),
  }
}

/** False when there is no such key. */
function replace(records: KeyRecord[], keyId: string, edit: (record: KeyRecord) => Partial<KeyRecord>): boolean {
  const index = records.findIndex(({ id }) => id === keyId)
  const record = records[index]
  if (record === undefined) return false
  records[index] = { ...record, ...edit(record) }
  return true
}

async function readRecords(path: string): Promise<KeyRecord[]> {
  try {
    return JSON.parse(await readFile(path, 'utf8'), readBigint) as KeyRecord[]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** JSON has no bigint. The amount of a spending cap is the only one in a record. */
function writeBigint(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

function readBigint(name: string, value: unknown): unknown {
  return name === 'amount' ? BigInt(value as string) : value
}
