import type { UsageStore } from '../usage/usage-store.ts'
import type { BatchStore } from './batch-store.ts'
import type { BlobStore } from './blob-store.ts'
import type { ConversationStore } from './conversation-store.ts'
import type { FileStore } from './file-store.ts'
import type { IdempotencyStore } from './idempotency-store.ts'
import type { InteractionStore } from './interaction-store.ts'
import type { KeyStore } from './key-store.ts'
import type { Ledger } from './ledger.ts'
import type { ResponseStore } from './response-store.ts'
import type { TaskStore } from './task-store.ts'
import type { WebhookStore } from './webhook-store.ts'

/** All durable data of one driver. */
export interface GatewayStore {
  readonly ledger: Ledger
  readonly keys: KeyStore
  readonly idempotency: IdempotencyStore
  readonly interactions: InteractionStore
  readonly responses: ResponseStore
  readonly conversations: ConversationStore
  readonly tasks: TaskStore
  readonly webhooks: WebhookStore
  /** Absent: no call is recorded, and questions about usage are refused. */
  readonly usage?: UsageStore | undefined
  /** Absent, one of the three: files and batches are refused. */
  readonly files?: FileStore | undefined
  readonly blobs?: BlobStore | undefined
  readonly batches?: BatchStore | undefined
  /** Opens connections and brings the schema up to date. */
  start(): Promise<void>
  close(): Promise<void>
}
