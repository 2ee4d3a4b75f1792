import { describe, test } from 'vitest'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import {
  NATIVE_BATCH_KILLS,
  NATIVE_BATCH_KILLS_TIMEOUT,
  nativeBatchKillsDrill,
} from './support/native-batch-kills-drill.ts'

const newPath = temporaryPaths()

describe('on one SQLite file', () => {
  const kills = nativeBatchKillsDrill()

  test(NATIVE_BATCH_KILLS, NATIVE_BATCH_KILLS_TIMEOUT, () => kills({ kind: 'sqlite', path: newPath() }))
})
