import { describe, test } from 'vitest'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import {
  BACKGROUND_UNDER_KILLS,
  FOLLOW_UPS_AFTER_KILLS,
  RESPONSES_KILLS_TIMEOUT,
  responsesKills,
} from './support/responses-kills-drill.ts'

const newPath = temporaryPaths()

describe('on one SQLite file', () => {
  const { followUps, background } = responsesKills()

  test(FOLLOW_UPS_AFTER_KILLS, RESPONSES_KILLS_TIMEOUT, () => followUps({ kind: 'sqlite', path: newPath() }))
  test(BACKGROUND_UNDER_KILLS, RESPONSES_KILLS_TIMEOUT, () => background({ kind: 'sqlite', path: newPath() }))
})
