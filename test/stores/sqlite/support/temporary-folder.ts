import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { sqliteStore } from '../../../../src/stores/sqlite/sqlite-store.ts'

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

/** The same, with an empty database at each path that has all tables: making them takes 30 ms, and a test of a driver less. */
export function migratedPaths(): () => string {
  const newPath = temporaryPaths()
  const template = newPath()
  beforeAll(async () => {
    const store = sqliteStore({ path: template })
    await store.start()
    await store.close()
  })
  return () => {
    const path = newPath()
    copyFileSync(template, path)
    return path
  }
}
