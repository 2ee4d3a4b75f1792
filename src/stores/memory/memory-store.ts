import { checkMembers, type MemberNames } from '../../core/known-members.ts'
import type { GatewayStore } from '../gateway-store.ts'
import type { InteractionRecord, InteractionStore } from '../interaction-store.ts'
import { type KeyRecord, type KeyStore, keyPage } from '../key-store.ts'
import type { SpendingCap } from '../principal.ts'
import type { SettingStore, Settings } from '../setting-store.ts'
import type { StoredKind, StoredUsage } from '../stored-usage.ts'
import { AccountShares } from './account-shares.ts'
import { accountKey, MapCursor } from './map-scans.ts'
import { type MemoryAuditOptions, memoryAudit } from './memory-audit.ts'
import { MemoryClaims, type MemoryClaimsOptions } from './memory-claims.ts'
import { type MemoryConversationsOptions, memoryConversations } from './memory-conversations.ts'
import { type MemoryFilesOptions, memoryBatches, memoryBlobs, memoryFiles } from './memory-files.ts'
import { type MemoryLedgerOptions, memoryLedger } from './memory-ledger.ts'
import { type MemoryResponsesOptions, memoryResponses } from './memory-responses.ts'
import { type MemoryTasksOptions, MemoryTaskTable } from './memory-task-table.ts'
import { memoryTasks } from './memory-tasks.ts'
import { MemoryUsage, type MemoryUsageOptions } from './memory-usage.ts'
import { type MemoryWebhooksOptions, memoryWebhooks } from './memory-webhooks.ts'

/** Limits of stored conversation owners. */
export interface MemoryInteractionsOptions {
  /** Maximum number of records; the oldest of accounts with more than their share are dropped first. Default 100,000. */
  readonly maxInteractions?: number | undefined
}

/** Limits of a memory store. */
export interface MemoryStoreOptions
  extends MemoryAuditOptions,
    MemoryClaimsOptions,
    MemoryConversationsOptions,
    MemoryFilesOptions,
    MemoryInteractionsOptions,
    MemoryResponsesOptions,
    MemoryTasksOptions,
    MemoryUsageOptions,
    MemoryWebhooksOptions,
    Omit<MemoryLedgerOptions, 'addRecord' | 'claims' | 'tasks' | 'keyCap'> {}

const MEMORY_STORE_OPTIONS = {
  maxAuditEntries: true,
  maxAnswers: true,
  maxAnswerBytes: true,
  maxConversations: true,
  maxConversationBytes: true,
  maxInteractions: true,
  maxResponses: true,
  maxResponseBytes: true,
  maxFileBytes: true,
  maxFinishedTasks: true,
  maxUsageRecords: true,
  maxUsageSums: true,
  maxFinishedDeliveries: true,
  maxJournalLines: true,
  maxOutcomes: true,
} satisfies MemberNames<MemoryStoreOptions>

/**
 * Creates a store for accounts, keys, idempotency keys, tasks, messages and conversations in this process: for tests, for
 * evaluation, and for hosts without billing here. Its data ends with the process, and other processes cannot see it.
 */
export function memoryStore(options: MemoryStoreOptions = {}): GatewayStore {
  checkMembers(options, MEMORY_STORE_OPTIONS, 'memoryStore')
  const claims = new MemoryClaims(options)
  const table = new MemoryTaskTable(options)
  const webhooks = memoryWebhooks(options)
  const keys = memoryKeys()
  const conversations = memoryConversations(options)
  const responses = memoryResponses(options, conversations)
  const addRecord: MemoryLedgerOptions['addRecord'] = (draft, ended) => usage.add(draft, ended)
  const ledger = memoryLedger({ ...options, claims, tasks: table, keyCap: keys.capOf, addRecord })
  const files = memoryFiles()
  const stored: Readonly<Record<StoredKind, (accountId: string, nowMs: number) => StoredUsage>> = {
    idempotencyKeys: (accountId, nowMs) => claims.stored(accountId, nowMs),
    responses: responses.stored,
    conversations: conversations.stored,
    files: files.stored,
    tasks: (accountId) => table.stored(accountId),
    webhookSecrets: webhooks.stored,
  }
  const usage = new MemoryUsage(options, (accountId) => ledger.entries(accountId, Number.MAX_SAFE_INTEGER))
  return {
    ledger,
    audit: memoryAudit(options),
    settings: memorySettings(),
    keys,
    idempotency: {
      claim: (claim, nowMs) => claims.claim(claim, nowMs),
      complete: (claim, answer) => claims.complete(claim, answer),
      release: (claim) => claims.release(claim),
    },
    interactions: memoryInteractions(options),
    responses,
    conversations,
    tasks: memoryTasks({ table, ledger, claims, webhooks, responses }),
    webhooks,
    usage,
    files,
    blobs: memoryBlobs(options),
    batches: memoryBatches(),
    stored: (accountId, kind, nowMs) => stored[kind](accountId, nowMs),
    start: async () => {},
    close: async () => {},
  }
}

/** Settings of the gateways that share a store in this process. */
function memorySettings(): SettingStore {
  let settings: Settings = {}
  return {
    read: () => settings,
    write(given) {
      settings = { ...settings, ...given }
    },
  }
}

/** API keys in this process; answers at once. */
function memoryKeys(): KeyStore & { capOf(keyId: string): SpendingCap | undefined } {
  const byHash = new Map<string, KeyRecord>()
  const hashById = new Map<string, string>()

  function change(keyId: string, changed: (record: KeyRecord) => KeyRecord): boolean {
    const record = byHash.get(hashById.get(keyId) ?? '')
    if (record === undefined) return false
    byHash.set(record.hash, changed(record))
    return true
  }

  const list = (accountId?: string): readonly KeyRecord[] =>
    [...byHash.values()]
      .filter((record) => accountId === undefined || record.accountId === accountId)
      .sort((one, other) => one.createdAtMs - other.createdAtMs)

  return {
    findByHash: (hash) => byHash.get(hash),
    find: (keyId) => byHash.get(hashById.get(keyId) ?? ''),
    capOf: (keyId) => byHash.get(hashById.get(keyId) ?? '')?.spendingCap,
    insert(record) {
      if (byHash.has(record.hash)) return
      byHash.set(record.hash, record)
      hashById.set(record.id, record.hash)
    },
    update: (keyId, { accountId, limits, spendingCap, namesEndUsers }) =>
      change(keyId, (record) => ({
        ...record,
        accountId: accountId ?? record.accountId,
        limits: limits === undefined ? record.limits : (limits ?? undefined),
        spendingCap: spendingCap === undefined ? record.spendingCap : (spendingCap ?? undefined),
        namesEndUsers: namesEndUsers ?? record.namesEndUsers,
      })),
    list,
    page: (query) => keyPage(list(query.accountId), query),
    revoke: (keyId, nowMs) => change(keyId, (record) => ({ ...record, revokedAtMs: record.revokedAtMs ?? nowMs })),
    expire: (keyId, expiresAtMs) =>
      change(keyId, (record) => ({
        ...record,
        expiresAtMs: Math.min(record.expiresAtMs ?? expiresAtMs, expiresAtMs),
      })),
  }
}

const SWEPT_PER_SAVE = 2

/** Owners of conversations in this process; synchronous. */
function memoryInteractions(options: MemoryInteractionsOptions = {}): InteractionStore {
  const shares = new AccountShares(options.maxInteractions ?? 100_000)
  const records = new Map<string, InteractionRecord>()
  const cursor = new MapCursor(records)
  let newestMs = Number.NEGATIVE_INFINITY

  function drop(accountId: string, name: string): void {
    records.delete(name)
    shares.delete(accountId, name)
  }

  function sweep(accountId: string): void {
    for (let count = 0; count < SWEPT_PER_SAVE; count++) {
      const next = cursor.next()
      if (next !== undefined && next[1].expiresAtMs <= newestMs) drop(next[1].accountId, next[0])
    }
    for (const name of shares.surplus(accountId)) drop(records.get(name)!.accountId, name)
  }

  return {
    save(record) {
      const name = accountKey(record.accountId, record.id)
      records.delete(name)
      records.set(name, record)
      shares.set(record.accountId, name)
      // `save` has no time argument, so the time of the record counts as now.
      newestMs = Math.max(newestMs, record.createdAtMs)
      sweep(record.accountId)
    },

    find(accountId, id, nowMs) {
      const record = records.get(accountKey(accountId, id))
      return record === undefined || record.expiresAtMs <= nowMs ? undefined : record
    },
  }
}
