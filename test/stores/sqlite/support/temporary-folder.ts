import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** A folder for the databases of one test file, deleted when its tests are over. Gives a new path with each call. */
export function temporaryPaths(): () => string {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-sqlite-'))
  let count = 0
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return () => {
    count += 1
    return join(folder, `store-${count}.db`)
  }
}
