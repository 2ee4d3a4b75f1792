import { describe, test } from 'vitest'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import { BATCH_KILLS, BATCH_KILLS_TIMEOUT, batchKillsDrill } from './support/batch-kills-drill.ts'

const newPath = temporaryPaths()

describe('on one SQLite file', () => {
  const kills = batchKillsDrill()

  test(BATCH_KILLS, BATCH_KILLS_TIMEOUT, () => kills({ kind: 'sqlite', path: newPath() }))
})

describe('batches of messages on one SQLite file', () => {
  const kills = batchKillsDrill('messages')

  test(BATCH_KILLS, BATCH_KILLS_TIMEOUT, () => kills({ kind: 'sqlite', path: newPath() }))
})
