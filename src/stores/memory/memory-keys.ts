import type { KeyRecord, KeyStore } from '../key-store.ts'

/** API keys in this process; answers at once. */
export function memoryKeys(): KeyStore {
  const byHash = new Map<string, KeyRecord>()

  function change(keyId: string, changed: (record: KeyRecord) => KeyRecord): boolean {
    for (const record of byHash.values()) {
      if (record.id !== keyId) continue
      byHash.set(record.hash, changed(record))
      return true
    }
    return false
  }

  return {
    findByHash: (hash) => byHash.get(hash),
    insert(record) {
      if (!byHash.has(record.hash)) byHash.set(record.hash, record)
    },
    list: (accountId) =>
      [...byHash.values()]
        .filter((record) => accountId === undefined || record.accountId === accountId)
        .sort((one, other) => one.createdAtMs - other.createdAtMs),
    revoke: (keyId, nowMs) => change(keyId, (record) => ({ ...record, revokedAtMs: record.revokedAtMs ?? nowMs })),
    expire: (keyId, expiresAtMs) =>
      change(keyId, (record) => ({
        ...record,
        expiresAtMs: Math.min(record.expiresAtMs ?? expiresAtMs, expiresAtMs),
      })),
  }
}
