import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
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

const runner = { describe, it, expect }

describeLedger(runner, { create: () => memoryStore() })
describeKeyStore(runner, { create: () => memoryStore().keys })
describeIdempotencyStore(runner, { create: () => memoryStore().idempotency })
describeAuditStore(runner, { create: () => memoryStore().audit! })
describeSettingStore(runner, { create: () => memoryStore().settings! })
describeInteractionStore(runner, { create: () => memoryStore().interactions })
describeFileStore(runner, { create: () => memoryStore().files! })
describeBlobStore(runner, { create: () => memoryStore().blobs! })
describeBatchStore(runner, { create: () => memoryStore().batches! })
describeResponseStore(runner, { create: () => memoryStore().responses })
describeConversationStore(runner, { create: () => memoryStore() })
describeStoredUsage(runner, { create: () => memoryStore() })
describeTaskStore(runner, { create: () => memoryStore() })
describeUsageStore(runner, { create: () => memoryStore() })
describeWebhookStore(runner, { create: () => memoryStore() })

describe('memory store', () => {
  it('answers at once, without a promise', () => {
    const { ledger, keys, idempotency } = memoryStore()
    const claim = { accountId: 'account_1', key: 'k', fingerprint: 'f', expiresAtMs: 10_000 }

    expect(ledger.createAccount({ id: 'account_1' }, 1)).toMatchObject({ id: 'account_1', tier: 'paid' })
    expect(keys.findByHash('0')).toBeUndefined()
    expect(idempotency.claim(claim, 1)).toEqual({ status: 'claimed' })
  })

  it('starts and closes', async () => {
    const store = memoryStore()

    await expect(store.start()).resolves.toBeUndefined()
    await expect(store.close()).resolves.toBeUndefined()
  })
})
