import { describe, test } from 'vitest'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import { sendToFourProcesses, sendToOneProcess } from './support/money-for-137-drill.ts'

const TIMEOUT = { timeout: 120_000 }
const newPath = temporaryPaths()

describe('many parallel requests with money for 137', () => {
  const send = sendToOneProcess()
  const stores: readonly (readonly [string, () => GatewayStore])[] = [
    ['memory', () => memoryStore()],
    ['SQLite', () => sqliteStore({ path: newPath() })],
  ]

  test.each(stores)('exactly 137 reach the vendor of one process on %s', TIMEOUT, (_name, makeStore) =>
    send(makeStore()),
  )
})

describe('many parallel requests to 4 processes on one account with money for 137', () => {
  const send = sendToFourProcesses()

  test('exactly 137 reach the vendor on one SQLite file', TIMEOUT, () => send(`sqlite:${newPath()}`))
})
