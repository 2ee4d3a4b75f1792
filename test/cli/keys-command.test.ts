import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SettingError } from '../../src/cli/setting-values.ts'
import { hashApiKey } from '../../src/stores/api-keys.ts'
import { runCommand, runForJson } from './support/run-command.ts'

const DAY_MS = 24 * 60 * 60 * 1000

let folder: string
let environment: Record<string, string>

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-keys-'))
  environment = { SIGNALBOX_STORE: `sqlite:${join(folder, 'money.db')}` }
  await runCommand(['accounts', 'create', '--id', 'acct_one'], environment)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const run = (...words: string[]) => runCommand(['keys', ...words], environment)
const json = (...words: string[]) => runForJson(['keys', ...words], environment)
const create = (...words: string[]) => json('create', '--account', 'acct_one', ...words)

describe('signalbox keys create', () => {
  test('prints the key once, and stores its SHA-256 only', async () => {
    const lines = await run('create', '--account', 'acct_one', '--label', 'laptop')
    const key = /^key +(\S+)$/.exec(lines[0] ?? '')?.[1] ?? ''
    const database = ['money.db', 'money.db-wal'].map((name) => readIfThere(join(folder, name))).join('')

    expect(key).toMatch(/^sk-[0-9A-Za-z]{49}$/)
    expect(lines.slice(2)).toEqual([
      'account    acct_one',
      'label      laptop',
      'endpoints  all',
      'models     all',
      'limits     those of the gateway',
      'cap        none',
      'expires    never',
      'Keep the key now: only its SHA-256 is stored, and it cannot be shown again.',
    ])
    expect(database).not.toContain(key)
    expect(database).toContain(hashApiKey(key))
  })

  test('takes scopes, limits, a cap and an end', async () => {
    const made = await create(
      ...['--label', 'batch', '--endpoints', 'chat,embeddings', '--models', 'claude-sonnet-4-6,cl-sonnet-4-6,vy-4'],
      ...['--rpm', '60', '--tpm', '10000', '--concurrency', '2', '--cap', '2.50/day', '--expires', '30d'],
    )

    const { key, ...stored } = made
    expect(stored).toEqual({
      object: 'key',
      id: expect.stringMatching(/^key_/),
      account: 'acct_one',
      label: 'batch',
      endpoints: ['chat', 'embeddings'],
      models: ['cl-sonnet-4-6', 'vy-4'],
      fingerprint: expect.stringMatching(/^[0-9a-f]{8}$/),
      limits: { requests_per_minute: 60, tokens_per_minute: 10_000, concurrency: 2 },
      spending_cap: { amount: '2.5', period: 'day' },
      tags: [],
      names_end_users: false,
      replaces: null,
      created_at_ms: expect.any(Number),
      expires_at_ms: expect.closeTo(Number(made['created_at_ms']) + 30 * DAY_MS, -4),
      revoked_at_ms: null,
    })
    expect((await json('list')).data).toEqual([stored])
  })

  test('accepts the scope of batches in addition to those of endpoints', async () => {
    expect((await create('--endpoints', 'batches,chat'))['endpoints']).toEqual(['batches', 'chat'])
  })

  test('takes patterns and groups for models to come', async () => {
    expect((await create('--models', 'our-*,group:cheap'))['models']).toEqual(['our-*', 'group:cheap'])
  })

  test('takes tags of every call, and trust in the end users that it names', async () => {
    const made = await create('--tags', 'team:a,beta', '--names-end-users')

    expect(made).toMatchObject({ tags: ['team:a', 'beta'], names_end_users: true })
    await expect(create('--tags', 'no tag')).rejects.toThrow('tags must be at most 8, each of 1 to 64 letters')
  })

  test('knows the models of SIGNALBOX_MODELS', async () => {
    const path = join(folder, 'models.json')
    writeFileSync(path, JSON.stringify([{ id: 'our-chat', kind: 'chat', vendor: 'openai' }]))
    environment = { ...environment, SIGNALBOX_MODELS: path }

    expect((await create('--models', 'our-chat'))['models']).toEqual(['our-chat'])
  })

  test.each([
    [[], '--account is missing; see signalbox --help'],
    [['--account', 'acct_two'], 'there is no account "acct_two"'],
    [
      ['--account', 'acct_one', '--endpoints', 'chat,speak'],
      '--endpoints: there is no endpoint "speak"; there are chat,',
    ],
    [
      ['--account', 'acct_one', '--endpoints', 'chatt'],
      '--endpoints: there is no endpoint "chatt"; did you mean chat?',
    ],
    [['--account', 'acct_one', '--endpoints', ''], '--endpoints: "" is not a list such as one,two'],
    [
      ['--account', 'acct_one', '--models', 'our-chat'],
      '--models: there is no model "our-chat"; see signalbox models, or set SIGNALBOX_MODELS as for serve',
    ],
    [['--account', 'acct_one', '--expires', '30'], '--expires: "30" is not a duration such as 250ms'],
    [['--account', 'acct_one', '--rpm', '0'], '--rpm: "0" is not a whole number above 0'],
    [['--account', 'acct_one', '--tpm', 'many'], '--tpm: "many" is not a whole number above 0'],
    [['--account', 'acct_one', '--concurrency', '1.5'], '--concurrency: "1.5" is not a whole number above 0'],
    [['--account', 'acct_one', '--cap', '-1/day'], '-1/day: must not be negative'],
    [['--account', 'acct_one', '--label', 'two\nlines'], '--label: must be one line of at most 200 characters'],
    [['acct_one'], 'unexpected argument "acct_one"'],
  ])('refuses %j and makes no key', async (words, message) => {
    const refused = run('create', ...words)

    await expect(refused).rejects.toThrow(SettingError)
    await expect(refused).rejects.toThrow(message)
    expect((await json('list')).data).toEqual([])
  })
})

describe('signalbox keys list', () => {
  test('shows ids and states, of one account or of all', async () => {
    await runCommand(['accounts', 'create', '--id', 'acct_two'], environment)
    const first = await create('--label', 'laptop')
    const second = await json('create', '--account', 'acct_two')
    await run('revoke', String(second['id']))

    const lines = await run('list')

    expect(lines[0]).toMatch(/^key +account +state +label$/)
    expect(lines[1]).toBe(`${first['id']}  acct_one  valid               laptop`)
    expect(lines[2]).toMatch(new RegExp(`^${second['id']}  acct_two  revoked \\d{4}-\\d\\d-\\d\\d$`))
    expect((await json('list', '--account', 'acct_two')).data.map(({ id }) => id)).toEqual([second['id']])
  })
})

describe('signalbox keys revoke', () => {
  test('ends a key', async () => {
    const { id } = await create()

    const lines = await run('revoke', String(id))

    expect(lines).toEqual([`revoked ${id}; every gateway refuses it within 5 seconds`])
    expect((await json('list')).data[0]?.['revoked_at_ms']).toEqual(expect.any(Number))
  })

  test('says that a key does not exist', async () => {
    await expect(run('revoke', 'key_none')).rejects.toThrow(
      new SettingError('there is no key "key_none"; see signalbox keys list'),
    )
  })
})

describe('signalbox keys rotate', () => {
  test('makes a key like the old one, which ends after the overlap', async () => {
    const old = await create('--label', 'laptop', '--rpm', '60')

    const made = await json('rotate', String(old['id']), '--overlap', '2h')

    const [oldRow] = (await json('list')).data
    expect(made).toMatchObject({ label: 'laptop', limits: { requests_per_minute: 60 }, expires_at_ms: null })
    expect(made['key']).not.toBe(old['key'])
    expect(Number(oldRow?.['expires_at_ms']) - Number(made['created_at_ms'])).toBe(2 * 60 * 60 * 1000)
  })

  test('ends the old key at once without an overlap', async () => {
    const old = await create()

    const made = await json('rotate', String(old['id']), '--overlap', '0s')

    const [oldRow] = (await json('list')).data
    expect(Number(oldRow?.['expires_at_ms']) - Number(made['created_at_ms'])).toBe(0)
  })

  test('refuses a key that was revoked', async () => {
    const { id } = await create()
    await run('revoke', String(id))

    await expect(run('rotate', String(id))).rejects.toThrow(new SettingError(`there is no valid key "${id}"`))
  })
})

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
