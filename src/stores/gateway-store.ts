import type { MaybePromise } from '../core/maybe-promise.ts'
import type { UsageStore } from '../usage/usage-store.ts'
import type { AuditStore } from './audit-store.ts'
import type { BatchStore } from './batch-store.ts'
import type { BlobStore } from './blob-store.ts'
import type { ConversationStore } from './conversation-store.ts'
import type { FileStore } from './file-store.ts'
import type { IdempotencyStore } from './idempotency-store.ts'
import type { InteractionStore } from './interaction-store.ts'
import type { KeyStore } from './key-store.ts'
import type { Ledger } from './ledger.ts'
import type { ResponseStore } from './response-store.ts'
import type { SettingStore } from './setting-store.ts'
import type { StoredKind, StoredUsage } from './stored-usage.ts'
import type { TaskStore } from './task-store.ts'
import type { WebhookStore } from './webhook-store.ts'

/** All durable data of one driver. */
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
  /** Answers kept under an Idempotency-Key, and those in progress. */
  readonly idempotency: IdempotencyStore
  /** Which vendor key made which interaction, so that the same one continues it. */
  readonly interactions: InteractionStore
  /** Stored answers of the Responses API. */
  readonly responses: ResponseStore
  /** Conversations of the Responses API. */
  readonly conversations: ConversationStore
  /** Long jobs: videos, background answers, batches. */
  readonly tasks: TaskStore
  /** Messages to be delivered, and the secrets that sign them. */
  readonly webhooks: WebhookStore
  /** Absent: no call is recorded, and questions about usage are refused. */
  readonly usage?: UsageStore | undefined
  /** Absent, one of the three: files and batches are refused. */
  readonly files?: FileStore | undefined
  /** Bytes of the files. */
  readonly blobs?: BlobStore | undefined
  /** Outcomes of the requests of batches. */
  readonly batches?: BatchStore | undefined
  /** Counts what an account has stored of a kind and what has not expired. Called before something is created. */
  stored(accountId: string, kind: StoredKind, nowMs: number): MaybePromise<StoredUsage>
  /** Opens connections and brings the schema up to date. */
  start(): Promise<void>
  /** Rejects while the store can be read only, for probes; changes nothing. Absent: what can be read can be changed. */
  checkWritable?(): MaybePromise<void>
  /** Closes what `start` opened. */
  close(): Promise<void>
}
