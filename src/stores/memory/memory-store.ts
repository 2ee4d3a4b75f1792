import { checkMembers, memberNames } from '../../core/known-members.ts'
import { type KeyRecord, type KeyStore, keyPage } from '../api-keys.ts'
import { AUDIT_RETENTION_MS, type AuditEntry, type AuditQuery, type AuditStore } from '../audit-store.ts'
import { assertBlobId, type BlobStore } from '../blob-store.ts'
import type { BatchOutcome, BatchStore, FileRecord, FileStore } from '../file-store.ts'
import type { GatewayStore } from '../gateway-store.ts'
import type { SpendingCap } from '../principal.ts'
import { byAge } from '../resolution.ts'
import type { InteractionRecord, InteractionStore } from '../response-cache.ts'
import type { SettingStore, Settings } from '../retention.ts'
import type { StoredKind, StoredUsage } from '../sql-rows.ts'
import { accountKey } from './account-shares.ts'
import { MemoryClaims, type MemoryClaimsOptions } from './memory-cache.ts'
import { type MemoryLedgerOptions, memoryLedger } from './memory-ledger.ts'
import {
  type MemoryConversationsOptions,
  type MemoryResponsesOptions,
  memoryConversations,
  memoryResponses,
} from './memory-responses.ts'
import { MemoryTable } from './memory-table.ts'
import { type MemoryTasksOptions, MemoryTaskTable } from './memory-task-table.ts'
import { type MemoryWebhooksOptions, memoryTasks, memoryWebhooks } from './memory-tasks.ts'
import { MemoryUsage, type MemoryUsageOptions } from './memory-usage.ts'

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

const MEMORY_STORE_OPTIONS = memberNames<MemoryStoreOptions>()(
  'maxAuditEntries maxAnswers maxAnswerBytes maxConversations maxConversationBytes maxInteractions maxResponses',
  'maxResponseBytes maxFileBytes maxFinishedTasks maxUsageRecords maxUsageSums maxFinishedDeliveries',
  'maxJournalLines maxOutcomes',
)

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

/** API keys in this process. Every method returns immediately. */
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

/** Owners of conversations in this process; synchronous. */
function memoryInteractions(options: MemoryInteractionsOptions = {}): InteractionStore {
  const records = new MemoryTable<InteractionRecord>({
    nameOf: ({ accountId, id }) => accountKey(accountId, id),
    maxCount: options.maxInteractions ?? 100_000,
    expiresAtMsOf: ({ expiresAtMs }) => expiresAtMs,
  })
  return {
    // `save` has no time argument, so the time of the record counts as now.
    save: (record) => records.set(record, record.createdAtMs),
    find: (accountId, id, nowMs) => records.get(accountKey(accountId, id), nowMs),
  }
}

/** Limits of the audit in memory. */
interface MemoryAuditOptions {
  /** Maximum number of entries of the audit; the oldest are dropped first. Default 10,000. */
  readonly maxAuditEntries?: number | undefined
}

/** Creates an audit in this process. */
function memoryAudit({ maxAuditEntries = 10_000 }: MemoryAuditOptions = {}): AuditStore {
  const entries: AuditEntry[] = []

  const isWanted = (entry: AuditEntry, { subject, fromMs, untilMs, after }: AuditQuery): boolean =>
    (subject === undefined || entry.subject === subject) &&
    (fromMs === undefined || entry.createdAtMs >= fromMs) &&
    (untilMs === undefined || entry.createdAtMs < untilMs) &&
    (after === undefined || byAge(entry, after) < 0)

  return {
    add(entry) {
      entries.push(entry)
      while (entries.length > maxAuditEntries || entries[0]!.createdAtMs <= entry.createdAtMs - AUDIT_RETENTION_MS)
        entries.shift()
    },
    list: (query) =>
      entries
        .filter((entry) => isWanted(entry, query))
        .sort((one, other) => byAge(other, one))
        .slice(0, query.limit),
  }
}

/** Limits of stored files. */
interface MemoryFilesOptions {
  /** Maximum size of all files together, in bytes. A file that exceeds it is rejected. Default 512 MiB. */
  readonly maxFileBytes?: number | undefined
}

const DEFAULT_MAX_BYTES = 512 * 1024 * 1024

interface KeptBlob {
  readonly bytes: readonly Uint8Array[]
  readonly byteLength: number
  readonly expiresAtMs: number
}

/** Content in this process, limited in size. */
function memoryBlobs({ maxFileBytes = DEFAULT_MAX_BYTES }: MemoryFilesOptions = {}): BlobStore {
  const blobs = new Map<string, KeptBlob>()
  let total = 0

  function drop(id: string): boolean {
    total -= blobs.get(id)?.byteLength ?? 0
    return blobs.delete(id)
  }

  return {
    async put({ id, expiresAtMs }, content) {
      assertBlobId(id)
      const bytes: Uint8Array[] = []
      let byteLength = 0
      try {
        for await (const piece of content) {
          // Counted on arrival, because several files that arrive concurrently share the limit.
          byteLength += piece.byteLength
          total += piece.byteLength
          if (total > maxFileBytes) throw new Error(`there is no room for more than ${maxFileBytes} bytes of files`)
          bytes.push(Uint8Array.from(piece))
        }
      } catch (error) {
        total -= byteLength
        throw error
      }
      drop(id)
      blobs.set(id, { bytes, byteLength, expiresAtMs })
      return byteLength
    },

    async get(id, { start, end } = { start: 0 }) {
      const blob = blobs.get(id)
      if (blob === undefined) return undefined
      return { byteLength: blob.byteLength, content: rangeOf(blob, start, end ?? blob.byteLength) }
    },

    delete: async (id) => drop(id),

    async purge(nowMs, limit) {
      let count = 0
      for (const [id, { expiresAtMs }] of blobs) {
        if (count >= limit) break
        if (expiresAtMs <= nowMs && drop(id)) count++
      }
      return count
    },
  }
}

async function* rangeOf({ bytes }: KeptBlob, start: number, end: number): AsyncIterable<Uint8Array> {
  let position = 0
  for (const piece of bytes) {
    const part = piece.subarray(Math.max(0, start - position), Math.max(0, end - position))
    position += piece.byteLength
    if (part.byteLength > 0) yield part
  }
}

/** Owners of files in this process; synchronous. */
function memoryFiles(): FileStore & { stored(accountId: string, nowMs: number): StoredUsage } {
  const files = new MemoryTable<FileRecord, 'account'>({
    nameOf: ({ accountId, id }) => accountKey(accountId, id),
    byteLengthOf: ({ byteLength }) => byteLength,
    expiresAtMsOf: ({ expiresAtMs }) => expiresAtMs,
    indexes: { account: ({ accountId }) => [accountId] },
  })
  return {
    save: (file) => files.set(file),
    find: (accountId, id, nowMs) => files.get(accountKey(accountId, id), nowMs),
    list(accountId, { limit, order, after, purpose }, nowMs) {
      const sorted = [...files.by('account', accountId, nowMs)].sort(byAge)
      if (order === 'desc') sorted.reverse()
      const start = after === undefined ? 0 : sorted.findIndex(({ id }) => id === after) + 1
      if (after !== undefined && start === 0) return { files: [], hasMore: false }
      const behind = sorted.slice(start).filter((file) => purpose === undefined || file.purpose === purpose)
      return { files: behind.slice(0, limit), hasMore: behind.length > limit }
    },
    stored: (accountId, nowMs) => files.stored(accountId, nowMs),
    delete: (accountId, id) => files.delete(accountKey(accountId, id)),
    purge(nowMs, limit) {
      const expired = [...files.all()].filter(({ expiresAtMs }) => expiresAtMs <= nowMs).slice(0, limit)
      for (const { accountId, id } of expired) files.delete(accountKey(accountId, id))
      return expired.map(({ id }) => id)
    },
  }
}

interface KeptBatch {
  readonly outcomes: Map<number, BatchOutcome>
  readonly expiresAtMs: number
  lastLine: number
}

const NO_BATCH: KeptBatch = { outcomes: new Map(), expiresAtMs: 0, lastLine: -1 }

/** Outcomes of batches in this process; synchronous. The maximum of open batches per caller limits them. */
function memoryBatches(): BatchStore {
  const batches = new Map<string, KeptBatch>()

  function* behind(batchId: string, afterLine: number, limit: number): Iterable<BatchOutcome> {
    const { outcomes, lastLine } = batches.get(batchId) ?? NO_BATCH
    let count = 0
    for (let line = afterLine + 1; line <= lastLine && count < limit; line++) {
      const outcome = outcomes.get(line)
      if (outcome === undefined) continue
      count++
      yield outcome
    }
  }

  return {
    add(batchId, outcome, expiresAtMs) {
      const batch = batches.get(batchId) ?? { outcomes: new Map<number, BatchOutcome>(), expiresAtMs, lastLine: -1 }
      batches.set(batchId, batch)
      if (batch.outcomes.has(outcome.line)) return false
      batch.lastLine = Math.max(batch.lastLine, outcome.line)
      batch.outcomes.set(outcome.line, outcome)
      return true
    },
    tally(batchId) {
      const { outcomes } = batches.get(batchId) ?? NO_BATCH
      let answered = 0
      for (const { isAnswered } of outcomes.values()) if (isAnswered) answered++
      return { answered, failed: outcomes.size - answered }
    },
    page: (batchId, afterLine, limit) => [...behind(batchId, afterLine, limit)],
    lines: (batchId, afterLine, limit) => Array.from(behind(batchId, afterLine, limit), ({ line }) => line),
    delete(batchId, limit) {
      const taken = [...behind(batchId, -1, limit)]
      const batch = batches.get(batchId)
      for (const { line } of taken) batch?.outcomes.delete(line)
      if (batch?.outcomes.size === 0) batches.delete(batchId)
      return taken.length
    },
    purge(nowMs, limit) {
      let count = 0
      for (const [batchId, { outcomes, expiresAtMs }] of batches) {
        if (expiresAtMs > nowMs) continue
        for (const line of [...outcomes.keys()].slice(0, limit - count)) {
          outcomes.delete(line)
          count++
        }
        if (outcomes.size === 0) batches.delete(batchId)
      }
      return count
    },
  }
}
