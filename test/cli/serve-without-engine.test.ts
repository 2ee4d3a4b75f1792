import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { serve } from '../../src/cli/serve-command.ts'
import { runSignalbox } from '../../src/cli/signalbox.ts'
import { SqliteStoreError } from '../../src/stores/sqlite/sqlite-store.ts'

vi.mock('../../src/stores/sqlite/sqlite-engine.ts', () => ({
  openWithEngine: async () => {
    throw new SqliteStoreError('engine_missing', 'this Node has no SQLite: install @photostructure/sqlite')
  },
}))

const before = process.cwd()
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-engine-'))
  process.chdir(folder)
})
afterEach(() => {
  process.chdir(before)
  rmSync(folder, { recursive: true, force: true })
})

const start = (environment: Record<string, string>, useStandIns: boolean, lines: string[] = []) =>
  serve({
    environment: { PORT: '0', ...environment },
    useStandIns,
    print: (line) => void lines.push(line),
    logger: { debug: note, info: note, warn: (message) => void lines.push(`warn: ${message}`), error: note },
    version: '0.0.0',
  })

function note(): void {}

test('a machine without SQLite serves from memory, loudly, and names the one command that changes it', async () => {
  const lines: string[] = []
  const running = await start({}, false, lines)
  const health = await fetch(`${running.url}/healthz`)
  await running.close()

  expect(health.status).toBe(200)
  expect(lines.filter((line) => line.startsWith('warn: '))).toEqual([
    expect.stringContaining('warn: nothing survives a restart'),
  ])
  const shown = lines.join('\n')
  expect(shown).toContain('store     memory: ')
  expect(shown).toContain('NOTHING SURVIVES A RESTART')
  expect(shown).toContain('npm install @photostructure/sqlite, then start again')
  expect(existsSync('signalbox.db')).toBe(false)
})

test.each([
  ['a store that is set', { SIGNALBOX_STORE: 'sqlite:signalbox.db' }, false],
  ['billing, which moves money', { SIGNALBOX_LIST_PRICES: '1' }, false],
  ['the database of an earlier start', {}, true],
])('a machine without SQLite keeps nothing in memory unasked with %s', async (_name, environment, isThere) => {
  if (isThere) writeFileSync('signalbox.db', '')

  await expect(start(environment, false)).rejects.toThrow(
    'SIGNALBOX_STORE: sqlite:signalbox.db cannot be used: this Node has no SQLite: install @photostructure/sqlite; ' +
      'or set SIGNALBOX_STORE=memory: to keep nothing',
  )
})

test.each([
  [{ SIGNALBOX_STORE: 'memory:' }, false],
  [{}, true],
])('a machine without SQLite serves with %j, sandbox %s', async (environment, useStandIns) => {
  const running = await start(environment, useStandIns)

  const health = await fetch(`${running.url}/healthz`)

  expect(health.status).toBe(200)
  await running.close()
})

test('check says what a machine without SQLite would do, and the one command that changes it', async () => {
  const checkOf = async (environment: Record<string, string>) => {
    const lines: string[] = []
    await runSignalbox(['check', '--json'], { environment, print: (line) => void lines.push(line) }, '0.0.0')
    return (JSON.parse(lines[0]!) as { data: { name: string }[] }).data.find(({ name }) => name === 'store')
  }
  const remedy = 'npm install @photostructure/sqlite'

  expect(await checkOf({})).toMatchObject({ status: 'warning', message: expect.stringContaining('in memory'), remedy })
  expect(await checkOf({ SIGNALBOX_STORE: 'sqlite:money.db' })).toMatchObject({ status: 'failed', remedy })
})
