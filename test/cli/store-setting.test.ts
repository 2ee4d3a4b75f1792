import { describe, expect, test } from 'vitest'
import { describeStore, parseStoreSetting } from '../../src/cli/store-setting.ts'

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
