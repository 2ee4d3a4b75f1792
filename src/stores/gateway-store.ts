import type { MaybePromise } from '../core/maybe-promise.ts'
import type { UsageStore } from '../usage/usage-store.ts'
import type { KeyStore } from './api-keys.ts'
import type { AuditStore } from './audit-store.ts'
import type { BlobStore } from './blob-store.ts'
import type { BatchStore, FileStore } from './file-store.ts'
import type { IdempotencyStore } from './idempotency-store.ts'
import type { Ledger } from './ledger.ts'
import type { InteractionStore } from './response-cache.ts'
import type { ConversationStore, ResponseStore } from './response-store.ts'
import type { SettingStore } from './retention.ts'
import type { StoredKind, StoredUsage } from './sql-rows.ts'
import type { TaskStore } from './task-store.ts'
import type { WebhookStore } from './webhook-store.ts'

/** Durable data of one driver. */
export interface GatewayStore {
  /** Whether processes on several machines may use the data at the same time. Default false. */
  readonly isShared?: boolean | undefined
  /** Accounts, balances, holds and the journal. */
  readonly ledger: Ledger
  /** Changes by operators. If omitted, only events and log lines report them. */
  readonly audit?: AuditStore | undefined
  /** Settings that all processes of the store share. If omitted, each process deletes old rows by its own options. */
  readonly settings?: SettingStore | undefined
  /** API keys, by their hashes. */
  readonly keys: KeyStore
  /** Idempotency keys in flight, and their stored answers. */
  readonly idempotency: IdempotencyStore
  /** Vendor keys of interactions, so that the same key continues an interaction. */
  readonly interactions: InteractionStore
  /** Stored answers of the Responses API. */
  readonly responses: ResponseStore
  /** Conversations of the Responses API. */
  readonly conversations: ConversationStore
  /** Long jobs: videos, background answers, batches. */
  readonly tasks: TaskStore
  /** Messages to be delivered, and the secrets that sign them. */
  readonly webhooks: WebhookStore
  /** Usage records. If omitted, no call is recorded, and usage queries are rejected. */
  readonly usage?: UsageStore | undefined
  /** File records. If one of `files`, `blobs` and `batches` is omitted, files and batches are rejected. */
  readonly files?: FileStore | undefined
  /** Bytes of the files. */
  readonly blobs?: BlobStore | undefined
  /** Outcomes of the requests of batches. */
  readonly batches?: BatchStore | undefined
  /** Returns how much an account has stored of a kind, without expired data. Called before an object is created. */
  stored(accountId: string, kind: StoredKind, nowMs: number): MaybePromise<StoredUsage>
  /** Opens connections and updates the schema. */
  start(): Promise<void>
  /** Rejects if the store is read-only; changes nothing. For probes. If omitted, a readable store counts as writable. */
  checkWritable?(): MaybePromise<void>
  /** Closes the connections that `start` opened. */
  close(): Promise<void>
}
