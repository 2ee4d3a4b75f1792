import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SettingError } from '../../src/cli/setting-values.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { runCommand, runForJson } from './support/run-command.ts'

const ACTIONS = 'list, create, update, freeze, unfreeze, credit, adjust, refund, statement, journal, show or ledger'
let folder: string
let environment: Record<string, string>

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-accounts-'))
  environment = { SIGNALBOX_STORE: `sqlite:${join(folder, 'money.db')}` }
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const run = (...words: string[]) => runCommand(['accounts', ...words], environment)
const json = (...words: string[]) => runForJson(['accounts', ...words], environment)

describe('signalbox accounts create', () => {
  test('makes an account and prints it', async () => {
    const lines = await run('create', '--id', 'acct_one', '--tier', 'free', '--cap', '50/month')

    expect(lines.slice(0, 6)).toEqual([
      'account  acct_one',
      'balance  $0',
      'held     $0',
      'owed     $0',
      'tier     free',
      'cap      $50 a month',
    ])
    expect(lines[6]).toMatch(/^made {5}\d{4}-\d\d-\d\dT/)
  })

  test('makes up an id, and prints JSON for machines', async () => {
    const account = await json('create')

    expect(account).toEqual({
      object: 'account',
      id: expect.stringMatching(/^acct_[0-9a-f]{32}$/),
      balance: '0',
      held: '0',
      owed: '0',
      currency: 'USD',
      tier: 'paid',
      spending_cap: null,
      name: null,
      plan: null,
      billing: null,
      credit_held: '0',
      credit_limit: null,
      frozen: null,
      created_at_ms: expect.any(Number),
    })
    expect((await json('show', String(account['id'])))['id']).toBe(account['id'])
  })

  test('does not touch an account that exists', async () => {
    await run('create', '--id', 'acct_one', '--cap', '50/month')

    await expect(run('create', '--id', 'acct_one', '--cap', '90/month')).rejects.toThrow(
      new SettingError('--id: the account "acct_one" exists already; nothing was changed'),
    )

    expect((await json('show', 'acct_one'))['spending_cap']).toEqual({ amount: '50', period: 'month' })
  })
})

describe('signalbox accounts update', () => {
  const SETTINGS = [
    ...['--name', 'Acme Inc.', '--tier', 'free', '--plan', 'pro'],
    ...['--billing', 'metered', '--credit-limit', '500', '--cap', '50/month'],
  ]

  test('changes what is given and leaves the rest', async () => {
    await run('create', '--id', 'acct_one', '--tier', 'free')

    const account = await json('update', 'acct_one', '--plan', 'pro', '--billing', 'metered', '--credit-limit', '$500')
    const lines = await run('update', 'acct_one', '--name', 'Acme Inc.')

    expect(account).toMatchObject({ tier: 'free', plan: 'pro', billing: 'metered', credit_limit: '500', name: null })
    expect(lines.slice(4)).toEqual([
      'tier     free',
      'cap      none',
      expect.stringMatching(/^made /),
      'name     Acme Inc.',
      'plan     pro',
      'billing  metered',
      'limit    $500 of credit',
    ])
  })

  test('removes a value with none, and create accepts the same settings', async () => {
    const made = await json('create', '--id', 'acct_one', ...SETTINGS)
    const none = ['--name', 'none', '--plan', 'none', '--billing', 'none', '--credit-limit', 'none', '--cap', 'none']

    const account = await json('update', 'acct_one', ...none)

    expect(made).toMatchObject({
      name: 'Acme Inc.',
      tier: 'free',
      plan: 'pro',
      billing: 'metered',
      credit_limit: '500',
    })
    expect(made['spending_cap']).toEqual({ amount: '50', period: 'month' })
    expect(account).toMatchObject({
      name: null,
      tier: 'free',
      plan: null,
      billing: null,
      credit_limit: null,
      spending_cap: null,
    })
  })

  test.each([
    [['acct_one'], 'accounts update: say what to change: --name, --tier, --plan, --billing, --credit-limit, --cap'],
    [['acct_one', '--billing', 'free'], '--billing: must be prepaid or metered'],
    [['acct_one', '--credit-limit', 'much'], '--credit-limit: "much" is not a dollar amount such as 25 or 0.50'],
    [['acct_two', '--plan', 'pro'], 'there is no account "acct_two"'],
  ])('refuses %j', async (words, message) => {
    await run('create', '--id', 'acct_one')

    await expect(run('update', ...words)).rejects.toThrow(new SettingError(message))
  })
})

describe('the plan of an account', () => {
  beforeEach(() => {
    const path = join(folder, 'plans.json')
    writeFileSync(path, JSON.stringify({ free: { limits: { perAccount: { requestsPerMinute: 10 } } }, pro: {} }))
    environment = { ...environment, SIGNALBOX_PLANS: path }
  })

  test('is one of those that are configured', async () => {
    const created = await run('create', '--id', 'acct_one', '--plan', 'free')
    const updated = await json('update', 'acct_one', '--plan', 'pro')

    expect(created.at(-1)).toBe('plan     free')
    expect(updated['plan']).toBe('pro')
    expect((await json('update', 'acct_one', '--plan', 'none'))['plan']).toBeNull()
  })

  test('is one of the configuration file where that has plans', async () => {
    const config = join(folder, 'signalbox.config.json')
    writeFileSync(config, JSON.stringify({ plans: { team: {} } }))
    environment = { ...environment, SIGNALBOX_PLANS: '', SIGNALBOX_CONFIG: config }

    expect((await json('create', '--id', 'acct_one', '--plan', 'team'))['plan']).toBe('team')
    await expect(run('update', 'acct_one', '--plan', 'pro')).rejects.toThrow('--plan: there is no plan "pro"')
  })

  test.each([
    ['fre', 'did you mean free?'],
    ['enterprise', 'there are free, pro'],
  ])('is not %s, which is not configured', async (plan, hint) => {
    await run('create', '--id', 'acct_one', '--plan', 'pro')
    const message = `--plan: there is no plan "${plan}" in the configuration; ${hint}`

    await expect(run('create', '--id', 'acct_two', '--plan', plan)).rejects.toThrow(new SettingError(message))
    await expect(run('update', 'acct_one', '--plan', plan)).rejects.toThrow(new SettingError(message))
    await expect(run('show', 'acct_two')).rejects.toThrow('there is no account "acct_two"')
    expect((await json('show', 'acct_one'))['plan']).toBe('pro')
  })

  test('may have any name where no plans are configured, and the command says that it was not checked', async () => {
    environment = { ...environment, SIGNALBOX_PLANS: '' }
    const unchecked = expect.stringMatching(/^The name of the plan was not checked: no plans are configured here/)

    const created = await run('create', '--id', 'acct_one', '--plan', 'of-code')
    const updated = await run('update', 'acct_one', '--plan', 'other')
    const unnamed = await run('update', 'acct_one', '--plan', 'none')

    expect(created.at(-1)).toEqual(unchecked)
    expect(updated.at(-1)).toEqual(unchecked)
    expect(unnamed).not.toContainEqual(unchecked)
  })
})

describe('signalbox accounts freeze and unfreeze', () => {
  test('keep the reason and the time until it is taken away', async () => {
    await run('create', '--id', 'acct_one')

    const frozen = await json('freeze', 'acct_one', '--reason', 'chargeback')
    const shown = await run('show', 'acct_one')
    const free = await json('unfreeze', 'acct_one')

    expect(frozen['frozen']).toEqual({ reason: 'chargeback', at_ms: expect.any(Number) })
    expect(shown.at(-1)).toMatch(/^frozen {3}since \d{4}-\d\d-\d\dT\S+: chargeback$/)
    expect(free['frozen']).toBeNull()
  })

  test('refuse an unknown account and a freeze without a reason', async () => {
    await run('create', '--id', 'acct_one')

    await expect(run('freeze', 'acct_one')).rejects.toThrow(
      new SettingError('--reason is missing; see signalbox --help'),
    )
    await expect(run('freeze', 'acct_two', '--reason', 'x')).rejects.toThrow('there is no account "acct_two"')
    await expect(run('unfreeze', 'acct_two')).rejects.toThrow('there is no account "acct_two"')
  })
})

describe('signalbox accounts credit', () => {
  beforeEach(async () => void (await run('create', '--id', 'acct_one')))

  test('adds dollars, to the nano-dollar', async () => {
    await run('credit', 'acct_one', '25.50')

    const lines = await run('credit', 'acct_one', '0.000000001')

    expect(lines).toEqual(['credited $0.000000001 to acct_one; the balance is $25.500000001'])
  })

  test('adds a credit with an id once only', async () => {
    await run('credit', 'acct_one', '25', '--id', 'event_1')

    const lines = await run('credit', 'acct_one', '25', '--id', 'event_1')
    const again = await json('credit', 'acct_one', '25', '--id', 'event_1')

    expect(lines).toEqual(['event_1 was made before, so nothing was changed; the balance is $25'])
    expect(again).toMatchObject({ balance: '25', is_new: false, amount: null })
    expect((await json('ledger', 'acct_one')).data).toHaveLength(1)
  })

  test.each([
    [['acct_one', '-5'], '-5: must not be negative'],
    [['acct_one', '0'], 'a credit must be above zero'],
    [['acct_one', '0.0000000001'], 'the amount: "0.0000000001" is not a dollar amount'],
    [['acct_one', '1e3'], 'the amount: "1e3" is not a dollar amount'],
    [['acct_one', '999999999999999'], 'amount'],
    [['acct_one', 'ten'], 'the amount: "ten" is not a dollar amount'],
    [['acct_one'], 'the amount is missing; see signalbox accounts credit --help'],
    [[], 'the account’s id is missing; see signalbox accounts credit --help'],
    [['acct_one', '5', '6'], 'unexpected argument "6"; see signalbox accounts credit --help'],
    [['acct_two', '5'], 'there is no account "acct_two"'],
  ])('refuses %j and changes nothing', async (words, message) => {
    const refused = run('credit', ...words)

    await expect(refused).rejects.toThrow(SettingError)
    await expect(refused).rejects.toThrow(message)
    expect((await json('ledger', 'acct_one')).data).toEqual([])
  })
})

describe('signalbox accounts show and ledger', () => {
  test('print the balance and the journal, newest first', async () => {
    await run('create', '--id', 'acct_one')
    for (const amount of ['1', '2.5', '3']) await run('credit', 'acct_one', amount)

    const lines = await run('ledger', 'acct_one', '--limit', '2')

    expect(lines.map((line) => line.replace(/^\S+Z/, 'time'))).toEqual([
      'time                      kind    amount  text',
      'time  credit  $3      credit by hand',
      'time  credit  $2.5    credit by hand',
      expect.stringMatching(/^more: --cursor \S+$/),
    ])
    expect((await json('ledger', 'acct_one')).data.map((entry) => entry['amount'])).toEqual(['3', '2.5', '1'])
    expect((await run('show', 'acct_one'))[1]).toBe('balance  $6.5')
  })

  test('show what was spent, and what the cap still allows', async () => {
    const store = `sqlite:${join(folder, 'spent.db')}`
    await run('create', '--id', 'acct_one', '--cap', '50/month', '--store', store)
    await run('credit', 'acct_one', '20', '--store', store)
    const opened = sqliteStore({ path: join(folder, 'spent.db') })
    await opened.start?.()
    const nowMs = Date.now()
    const hold = { holdId: 'hold_1', accountId: 'acct_one', keyId: 'key_1', amount: 2_000_000_000n }
    await opened.ledger.reserve({ ...hold, expiresAtMs: nowMs + 60_000 }, nowMs)
    await opened.ledger.settle({ holdId: 'hold_1', amount: 1_500_000_000n, description: 'chat' }, nowMs)
    await opened.close?.()

    const lines = await run('show', 'acct_one', '--store', store)

    expect(lines).toContain('spent    $1.5 today, $1.5 this month; the cap allows $48.5 more')
    expect(await json('show', 'acct_one', '--store', store)).toMatchObject({
      spending: { spent_month: '1.5', left: '48.5' },
    })
  })

  test.each(['show', 'ledger'])('%s says that an account does not exist', async (action) => {
    await run('create', '--id', 'acct_one')

    await expect(run(action, 'acct_two')).rejects.toThrow(new SettingError('there is no account "acct_two"'))
  })
})

describe('the store of a command', () => {
  test.each([
    [['borrow'], `accounts: say ${ACTIONS}; see signalbox --help`],
    [[], `accounts: say ${ACTIONS}; see signalbox --help`],
    [['create', '--tier', 'gold'], '--tier: must be paid or free'],
    [['create', '--cap', '50'], '--cap: "50" is not a cap such as 50/month or 2.50/day'],
    [['create', '--cap', '50/year'], '--cap: "50/year" is not a cap such as 50/month or 2.50/day'],
    [['create', '--cap', 'x/day'], '--cap: "x" is not a dollar amount'],
    [['create', '--id', 'two words'], '--id: must be 1 to 200 printable ASCII characters without spaces'],
    [['create', '--balance', '5'], 'there is no option --balance here'],
    [['ledger', 'acct_one', '--limit', '0'], '--limit: "0" is not a whole number above 0'],
  ])('is not opened for %j', async (words, message) => {
    await expect(run(...words)).rejects.toThrow(SettingError)
    await expect(run(...words)).rejects.toThrow(message)
    expect(existsSync(join(folder, 'money.db'))).toBe(false)
  })

  test.each([
    [{ SIGNALBOX_STORE: 'memory:' }, []],
    [{}, ['--store', 'memory:']],
  ])('must be a durable one: %j %j', async (given, words) => {
    await expect(runCommand(['accounts', 'create', ...words], given)).rejects.toThrow(
      /^(?:--store|SIGNALBOX_STORE): this command needs a durable store/,
    )
  })

  test('is the one of --store before that of the environment', async () => {
    await run('create', '--id', 'acct_one')

    const elsewhere = run('show', 'acct_one', '--store', `sqlite:${join(folder, 'other.db')}`)

    await expect(elsewhere).rejects.toThrow('--store: there is no database sqlite:')
    expect(existsSync(join(folder, 'other.db'))).toBe(false)
  })

  test('is named when it cannot be used', async () => {
    writeFileSync(join(folder, 'money.db'), 'this is no database, however long it is made to be'.repeat(40))

    await expect(run('show', 'acct_one')).rejects.toThrow(SettingError)
    await expect(run('show', 'acct_one')).rejects.toThrow(/^SIGNALBOX_STORE: sqlite:\S+money\.db cannot be used: /)
  })

  test('is named without its password when its server does not answer', async () => {
    const refused = run('show', 'acct_one', '--store', 'postgres://gateway:canary-7f3a@127.0.0.1:1/money')

    await expect(refused).rejects.toThrow(/^--store: postgres:\/\/127\.0\.0\.1:1\/money cannot be used: .*ECONNREFUSED/)
    await expect(refused).rejects.not.toThrow('canary-7f3a')
  })
})
