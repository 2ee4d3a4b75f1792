import { describe, test } from 'vitest'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import { VIDEO_KILLS, VIDEO_KILLS_TIMEOUT, videoKills } from './support/video-kills-drill.ts'

const newPath = temporaryPaths()

describe(VIDEO_KILLS, () => {
  const drill = videoKills()

  test('on one SQLite file', VIDEO_KILLS_TIMEOUT, () => drill({ kind: 'sqlite', path: newPath() }))
})
