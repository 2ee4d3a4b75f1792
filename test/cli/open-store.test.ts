import { describe, expect, test } from 'vitest'
import { describeStore, loadOptionalPackage, parseStoreSetting } from '../../src/cli/open-store.ts'
import { SettingError } from '../../src/cli/setting-values.ts'

describe('SIGNALBOX_STORE', () => {
  test.each([
    ['memory:', { kind: 'memory' }, 'memory:'],
    ['sqlite::memory:', { kind: 'memory' }, 'memory:'],
    ['sqlite:signalbox.db', { kind: 'sqlite', path: 'signalbox.db' }, 'sqlite:signalbox.db'],
    ['sqlite:/srv/data/a b.db', { kind: 'sqlite', path: '/srv/data/a b.db' }, 'sqlite:/srv/data/a b.db'],
    [
      'postgres://gateway:secret@db.example:5433/money?sslmode=require',
      { kind: 'postgres', url: 'postgres://gateway:secret@db.example:5433/money?sslmode=require' },
      'postgres://db.example:5433/money',
    ],
    ['postgresql://db.example', { kind: 'postgres', url: 'postgresql://db.example' }, 'postgresql://db.example'],
  ])('%s is read, and shown as without secrets', (text, setting, shown) => {
    const read = parseStoreSetting('SIGNALBOX_STORE', text)

    expect(read).toEqual(setting)
    expect(describeStore(read)).toBe(shown)
  })

  test.each(['memory', 'sqlite:', 'sqlite', 'signalbox.db', 'mysql://db.example/money', 'postgres:', 'postgres://'])(
    '%j is refused, naming the setting',
    (text) => {
      expect(() => parseStoreSetting('SIGNALBOX_STORE', text)).toThrow(
        'SIGNALBOX_STORE: must be memory:, sqlite:PATH or postgres://user:password@host/database',
      )
    },
  )

  test('a URL with a slip in it is refused without its password', () => {
    const read = () => parseStoreSetting('--store', 'postgress://gateway:canary-7f3a@db.example/money')

    expect(read).toThrow('--store: ')
    expect(read).not.toThrow('canary-7f3a')
  })
})

test('a package that is not installed is named with the setting that asks for it', async () => {
  const load = loadOptionalPackage('a-package-nobody-has-installed', 'REDIS_URL')

  await expect(load).rejects.toThrow(
    new SettingError(
      'REDIS_URL: needs the package a-package-nobody-has-installed; install it next to signalbox (npm install a-package-nobody-has-installed)',
    ),
  )
})

test('a package that is installed is loaded', async () => {
  expect(await loadOptionalPackage('node:path', 'SIGNALBOX_STORE')).toHaveProperty('join')
})
