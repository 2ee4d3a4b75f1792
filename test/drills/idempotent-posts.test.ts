import { describe, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import { IDEMPOTENT_POSTS, idempotentPosts, TAKEN_OVER, takenOver } from './support/idempotent-posts-drill.ts'

const LIMIT = { timeout: 120_000 }
const newPath = temporaryPaths()
const drill = idempotentPosts()

describe('a gateway on memory', () => {
  test(IDEMPOTENT_POSTS, LIMIT, () => drill(memoryStore()))

  test(TAKEN_OVER, () => {
    const store = memoryStore()
    return takenOver([store, store])
  })
})

describe('a gateway on SQLite', () => {
  test(IDEMPOTENT_POSTS, LIMIT, () => drill(sqliteStore({ path: newPath() })))

  test(TAKEN_OVER, () => {
    const path = newPath()
    return takenOver([sqliteStore({ path, clock: 'caller' }), sqliteStore({ path, clock: 'caller' })])
  })
})
