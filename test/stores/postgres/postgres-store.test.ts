import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { KeyStore } from '../../../src/stores/api-keys.ts'
import type { AuditStore } from '../../../src/stores/audit-store.ts'
import type { BlobStore } from '../../../src/stores/blob-store.ts'
import type { BatchStore, FileStore } from '../../../src/stores/file-store.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { IdempotencyStore } from '../../../src/stores/idempotency-store.ts'
import type { InteractionStore } from '../../../src/stores/response-cache.ts'
import type { ResponseStore } from '../../../src/stores/response-store.ts'
import type { SettingStore } from '../../../src/stores/retention.ts'
import { describeAuditStore } from '../../../src/testing/contracts/audit-store-contract.ts'
import { describeBlobStore } from '../../../src/testing/contracts/blob-store-contract.ts'
import { describeConversationStore } from '../../../src/testing/contracts/conversation-store-contract.ts'
import { describeBatchStore, describeFileStore } from '../../../src/testing/contracts/file-store-contract.ts'
import { describeIdempotencyStore } from '../../../src/testing/contracts/idempotency-store-contract.ts'
import { describeKeyStore } from '../../../src/testing/contracts/key-store-contract.ts'
import { describeLedger } from '../../../src/testing/contracts/ledger-contract.ts'
import {
  describeInteractionStore,
  describeResponseStore,
} from '../../../src/testing/contracts/response-store-contract.ts'
import { describeSettingStore } from '../../../src/testing/contracts/setting-store-contract.ts'
import { describeStoredUsage } from '../../../src/testing/contracts/stored-usage-contract.ts'
import { describeTaskStore } from '../../../src/testing/contracts/task-store-contract.ts'
import { describeUsageStore } from '../../../src/testing/contracts/usage-store-contract.ts'
import { describeWebhookStore } from '../../../src/testing/contracts/webhook-store-contract.ts'
import { missingProgram } from '../../support/real-servers.ts'
import { type StartedPostgres, startPostgres } from '../../support/start-postgres.ts'
import { type Schemas, schemasOn } from './support/fresh-schema.ts'

const runner = { describe, it, expect }

type Part =
  | AuditStore
  | KeyStore
  | IdempotencyStore
  | InteractionStore
  | ResponseStore
  | FileStore
  | BlobStore
  | BatchStore
  | SettingStore

// A server of its own: the sums of usage wait for each open transaction of a server, and the cases say what one step adds.
describe.skipIf(missingProgram('postgres') !== undefined)('PostgreSQL store', () => {
  let server: StartedPostgres
  let schemas: Schemas
  const wholes = new Map<Part, GatewayStore>()

  beforeAll(async () => {
    server = await startPostgres({ fsync: 'off' })
    schemas = schemasOn(server.url)
  })
  afterAll(async () => {
    await schemas.end()
    await server.stop()
  })

  async function part<Chosen extends Part>(choose: (store: GatewayStore) => Chosen): Promise<Chosen> {
    const store = await schemas.create()
    wholes.set(choose(store), store)
    return choose(store)
  }
  const disposePart = (chosen: Part) => schemas.dispose(wholes.get(chosen)!)
  const whole = { create: () => schemas.create(), dispose: (store: unknown) => schemas.dispose(store as GatewayStore) }

  describeLedger(runner, whole)
  describeConversationStore(runner, whole)
  describeStoredUsage(runner, whole)
  describeTaskStore(runner, whole)
  describeWebhookStore(runner, whole)
  describeUsageStore(runner, whole)
  describeKeyStore(runner, { create: () => part((store) => store.keys), dispose: disposePart })
  describeAuditStore(runner, { create: () => part((store) => store.audit!), dispose: disposePart })
  describeSettingStore(runner, { create: () => part((store) => store.settings!), dispose: disposePart })
  describeInteractionStore(runner, { create: () => part((store) => store.interactions), dispose: disposePart })
  describeResponseStore(runner, { create: () => part((store) => store.responses), dispose: disposePart })
  describeFileStore(runner, { create: () => part((store) => store.files!), dispose: disposePart })
  describeBlobStore(runner, { create: () => part((store) => store.blobs!), dispose: disposePart })
  describeBatchStore(runner, { create: () => part((store) => store.batches!), dispose: disposePart })
  describeIdempotencyStore(runner, { create: () => part((store) => store.idempotency), dispose: disposePart })
})
