import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { IdempotencyStore } from '../../../src/stores/idempotency-store.ts'
import type { KeyStore } from '../../../src/stores/key-store.ts'
import { describeIdempotencyStore } from '../../../src/testing/contracts/idempotency-store-contract.ts'
import { describeKeyStore } from '../../../src/testing/contracts/key-store-contract.ts'
import { describeLedger } from '../../../src/testing/contracts/ledger-contract.ts'
import { realServer } from '../../support/real-servers.ts'
import { type Schemas, schemasOn } from './support/fresh-schema.ts'

const server = await realServer('postgres')
const runner = { describe, it, expect }

describe.skipIf(server.missing !== undefined)('PostgreSQL store', () => {
  let schemas: Schemas
  const wholes = new Map<KeyStore | IdempotencyStore, GatewayStore>()

  beforeAll(() => {
    schemas = schemasOn(server.url)
  })
  afterAll(() => schemas.end())

  async function part<Part extends KeyStore | IdempotencyStore>(choose: (store: GatewayStore) => Part): Promise<Part> {
    const store = await schemas.create()
    wholes.set(choose(store), store)
    return choose(store)
  }
  const disposePart = (chosen: KeyStore | IdempotencyStore) => schemas.dispose(wholes.get(chosen)!)

  describeLedger(runner, { create: () => schemas.create(), dispose: (store) => schemas.dispose(store as GatewayStore) })
  describeKeyStore(runner, { create: () => part((store) => store.keys), dispose: disposePart })
  describeIdempotencyStore(runner, { create: () => part((store) => store.idempotency), dispose: disposePart })
})
