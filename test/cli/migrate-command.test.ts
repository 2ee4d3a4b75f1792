import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { MIGRATIONS } from '../../src/stores/sqlite/sqlite-migrations.ts'
import { defaultEngine } from '../stores/sqlite/support/sqlite-engines.ts'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import { runCommand, runCommandWithWarnings } from './support/run-command.ts'

const newPath = temporaryPaths()
const NEWEST = MIGRATIONS.length

describe('migrate, of a SQLite database', () => {
  test('checks without a change, migrates, and checks again', async () => {
    const path = newPath()
    defaultEngine.open(path).close()
    const store = `sqlite:${path}`

    const before = await runCommandWithWarnings(['migrate', '--check', '--store', store], {})
    const asJson = await runCommand(['migrate', '--check', '--store', store, '--json'], {})
    const migrated = await runCommandWithWarnings(['migrate', '--store', store], {})
    const after = await runCommandWithWarnings(['migrate', '--check', '--store', store], {})

    const missing = `${NEWEST} of ${NEWEST} migrations are missing; the next start runs them`
    expect(before).toEqual({ lines: [`${store}: ${missing}`], warnings: [], hasFailed: true })
    expect(JSON.parse(asJson[0]!)).toEqual({ object: 'migration', from: 0, to: NEWEST, missing, applied: false })
    expect(migrated.lines).toEqual([`${store}: migrated from version 0 to ${NEWEST}`])
    expect(after).toEqual({ lines: [`${store} is up to date, with version ${NEWEST}`], warnings: [], hasFailed: false })
  })

  test('refuses the options of PostgreSQL, and creates no database', async () => {
    const path = newPath()
    const missing = newPath()
    defaultEngine.open(path).close()

    for (const options of [['--print'], ['--schema', 'money']])
      await expect(runCommand(['migrate', ...options, '--store', `sqlite:${path}`], {})).rejects.toThrow(
        '--print and --schema need PostgreSQL; a SQLite database is migrated by each start',
      )
    await expect(runCommand(['migrate'], { SIGNALBOX_STORE: `sqlite:${missing}` })).rejects.toThrow(
      `SIGNALBOX_STORE: there is no database sqlite:${missing}`,
    )
    expect(existsSync(missing)).toBe(false)
  })
})

test('migrate refuses a store in memory and options that exclude each other', async () => {
  await expect(runCommand(['migrate', '--store', 'memory:'], {})).rejects.toThrow(
    '--store: this command needs a durable store',
  )
  for (const other of ['--check', '--json'])
    await expect(
      runCommand(['migrate', '--print', other], { SIGNALBOX_STORE: 'postgres://db.example' }),
    ).rejects.toThrow('--print cannot be combined with --check or --json')
})

test('SIGNALBOX_MIGRATE is checked by serve, check and the commands on a store', async () => {
  const store = `sqlite:${newPath()}`
  const environment = { SIGNALBOX_STORE: store, SIGNALBOX_MIGRATE: 'never' }
  const message = 'SIGNALBOX_MIGRATE: never needs SIGNALBOX_STORE=postgres://…; each start migrates other stores'

  await expect(runCommand(['serve', '--sandbox', '--port', '0'], environment)).rejects.toThrow(message)
  expect((await runCommand(['check', '--sandbox'], environment)).join('\n')).toContain(message)
  await expect(
    runCommand(['accounts', 'create', '--id', 'acct_acme'], { ...environment, SIGNALBOX_MIGRATE: 'often' }),
  ).rejects.toThrow('SIGNALBOX_MIGRATE: must be start or never')
})
