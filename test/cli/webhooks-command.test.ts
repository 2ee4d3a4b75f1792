import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readServeSettings } from '../../src/cli/serve-settings.ts'
import { SettingError } from '../../src/cli/setting-values.ts'
import type { Environment } from '../../src/cli/terminal.ts'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import type { DeliveryState } from '../../src/stores/webhook-store.ts'
import { checkWebhookSecret } from '../../src/tasks/webhook-payload.ts'
import { runCommand } from './support/run-command.ts'

const CREATED_AT_MS = Date.UTC(2026, 0, 2, 3, 4, 5)

let folder: string
let environment: Record<string, string>

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-webhooks-'))
  environment = { SIGNALBOX_STORE: `sqlite:${join(folder, 'money.db')}` }
  await runCommand(['accounts', 'create', '--id', 'acct_one'], environment)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const run = (...words: string[]): Promise<string[]> => runCommand(['webhooks', ...words], environment)

async function json(...words: string[]): Promise<Record<string, unknown>> {
  const [line = ''] = await run(...words, '--json')
  return JSON.parse(line)
}

/** Uses the store alongside the commands, as a gateway would. */
async function withGatewayStore<Result>(use: (store: GatewayStore) => Promise<Result>): Promise<Result> {
  const store = sqliteStore({ path: join(folder, 'money.db') })
  await store.start()
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

/** Writes down a task that has ended, with its message. */
function queueMessage(id: string, attempt?: { readonly status: number; readonly state: DeliveryState }): Promise<void> {
  return withGatewayStore(async (store) => {
    await store.tasks.insert({
      ...{ id: `task_of_${id}`, accountId: 'acct_one', keyId: 'key_one', state: 'queued', upstreamId: undefined },
      ...{ credentialId: 'vendor:1', holdId: undefined, createdAtMs: CREATED_AT_MS, updatedAtMs: CREATED_AT_MS },
      ...{ nextPollAtMs: CREATED_AT_MS, deadlineAtMs: CREATED_AT_MS + 1 },
      details: {
        ...{
          requestId: 'req_one',
          model: 'wv2.7-t2v',
          vendor: 'vendor',
          heldUsage: {},
          endpoint: 'videos',
          variant: '720p',
          facts: {},
        },
        ...{ polls: 0, unknownReports: 0 },
      },
    })
    const delivery = {
      ...{ id, accountId: 'acct_one', taskId: `task_of_${id}`, url: 'https://receiver.example.com/hook', body: '{}' },
      ...{ createdAtMs: CREATED_AT_MS, nextAttemptAtMs: CREATED_AT_MS },
    }
    const made = await store.tasks.change(
      { id: `task_of_${id}`, from: ['queued'], set: { state: 'completed' }, delivery },
      CREATED_AT_MS,
    )
    expect(made).toEqual({})
    if (attempt === undefined) return
    const { status, state } = attempt
    const error = status < 300 ? {} : { error: `answered with status ${status}` }
    await store.webhooks.record(id, {
      attempt: { atMs: CREATED_AT_MS + 1_000, status, durationMs: 12, ...error },
      state,
      nextAttemptAtMs: CREATED_AT_MS + 6_000,
    })
  })
}

describe('signalbox webhooks list', () => {
  test('prints the messages about a task and how they fared', async () => {
    await queueMessage('msg_new')
    await queueMessage('msg_late', { status: 500, state: 'pending' })
    await queueMessage('msg_done', { status: 204, state: 'delivered' })

    const lines = [
      await run('list', 'acct_one', 'task_of_msg_new'),
      await run('list', 'acct_one', 'task_of_msg_late'),
      await run('list', 'acct_one', 'task_of_msg_done'),
    ]

    expect(lines[0]?.[0]).toMatch(/^message +made +state +attempts +last +next$/)
    expect(lines.map(([, line]) => line?.replaceAll(/ {2,}/g, '  '))).toEqual([
      'msg_new  2026-01-02T03:04:05.000Z  pending  0 attempts  next 2026-01-02T03:04:05.000Z',
      'msg_late  2026-01-02T03:04:05.000Z  pending  1 attempt  answered with status 500  next 2026-01-02T03:04:11.000Z',
      'msg_done  2026-01-02T03:04:05.000Z  delivered  1 attempt  status 204',
    ])
  })

  test('prints JSON for machines', async () => {
    await queueMessage('msg_late', { status: 500, state: 'failed' })

    expect(await json('list', 'acct_one', 'task_of_msg_late')).toEqual({
      object: 'list',
      has_more: false,
      next: null,
      data: [
        {
          object: 'delivery',
          id: 'msg_late',
          account: 'acct_one',
          task: 'task_of_msg_late',
          url: 'https://receiver.example.com/hook',
          state: 'failed',
          attempts: [{ at_ms: CREATED_AT_MS + 1_000, status: 500, error: 'answered with status 500', duration_ms: 12 }],
          created_at_ms: CREATED_AT_MS,
          next_attempt_at_ms: null,
          resent_at_ms: null,
        },
      ],
    })
  })

  test('shows nothing of another account', async () => {
    await queueMessage('msg_new')

    expect(await run('list', 'acct_two', 'task_of_msg_new')).toEqual(['message  made  state  attempts  last  next'])
  })
})

describe('signalbox webhooks resend', () => {
  test('makes a message due that had been given up', async () => {
    await queueMessage('msg_late', { status: 500, state: 'failed' })

    const lines = await run('resend', 'acct_one', 'msg_late')

    expect(lines).toEqual(['msg_late is due now; a running gateway sends it within 5 seconds'])
    const nowMs = Date.now()
    const due = await withGatewayStore(async ({ webhooks }) =>
      webhooks.leaseDue({ nowMs, leaseUntilMs: nowMs + 1, limit: 5 }),
    )
    expect(due.map(({ id, attempts }) => [id, attempts.length])).toEqual([['msg_late', 1]])
    expect(await json('resend', 'acct_one', 'msg_late')).toEqual({
      ...{ object: 'delivery.resend', delivery: 'msg_late', resent: true },
    })
  })

  test.each([
    ['acct_two', 'msg_late'],
    ['acct_one', 'msg_other'],
  ])('says that account %s has no message %s', async (account, message) => {
    await queueMessage('msg_late', { status: 500, state: 'failed' })

    await expect(run('resend', account, message)).rejects.toThrow(
      new SettingError(`there is no webhook message "${message}"; see signalbox webhooks list`),
    )
  })
})

describe('signalbox webhooks secret', () => {
  test('makes a secret once, and shows it again', async () => {
    const [secret = ''] = await run('secret', 'acct_one')

    expect(checkWebhookSecret(secret)).toBe(secret)
    expect(await run('secret', 'acct_one')).toEqual([secret])
    expect(await json('secret', 'acct_one')).toEqual({ object: 'webhook.secret', account: 'acct_one', secret })
  })

  test('shows what serve signs by with the same variables', async () => {
    const general = `whsec_${Buffer.alloc(24, 9).toString('base64')}`
    environment = { ...environment, SIGNALBOX_WEBHOOK_SECRET: general }

    expect(await run('secret', 'acct_one')).toEqual([general])
    environment = { ...environment, SIGNALBOX_WEBHOOK_SECRET: 'whsec_canary' }
    await expect(run('secret', 'acct_one')).rejects.toThrow(/^SIGNALBOX_WEBHOOK_SECRET: a webhook secret must be/)
  })

  test('makes none for an account that does not exist', async () => {
    await expect(run('secret', 'acct_two')).rejects.toThrow(new SettingError('there is no account "acct_two"'))
  })
})

describe('signalbox webhooks rotate-secret', () => {
  const secretsAt = (nowMs: number) =>
    withGatewayStore(async ({ webhooks }) => (await webhooks.secrets('acct_one', nowMs)).map(({ secret }) => secret))

  test('makes a secret, shows it once, and lets the older one sign for a day', async () => {
    const older = String((await json('rotate-secret', 'acct_one'))['secret'])

    const lines = await run('rotate-secret', 'acct_one')

    const newer = lines[0]?.replace(/^secret +/, '') ?? ''
    expect(checkWebhookSecret(newer)).toBe(newer)
    expect(lines[1]).toBe('account  acct_one')
    expect(lines[2]).toMatch(/^older {4}still sign until \d{4}-\d\d-\d\dT/)
    expect(await secretsAt(Date.now())).toEqual([newer, older])
    expect(await secretsAt(Date.now() + 86_400_000)).toEqual([newer])
  })

  test('takes another overlap', async () => {
    const older = String((await json('rotate-secret', 'acct_one'))['secret'])

    const answer = await json('rotate-secret', 'acct_one', '--overlap', '1h')

    const { secret, older_until_ms: olderUntilMs } = answer
    expect(answer).toMatchObject({ object: 'webhook.secret', account: 'acct_one' })
    expect(Math.abs(Number(olderUntilMs) - Date.now() - 3_600_000)).toBeLessThan(60_000)
    expect(await secretsAt(Date.now() + 3_000_000)).toEqual([secret, older])
    expect(await secretsAt(Date.now() + 3_600_000)).toEqual([secret])
  })

  test('lets the secret of the gateway sign together with the first one of an account', async () => {
    const general = `whsec_${Buffer.alloc(24, 9).toString('base64')}`
    environment['SIGNALBOX_WEBHOOK_SECRET'] = general

    const own = String((await json('rotate-secret', 'acct_one'))['secret'])

    expect(await secretsAt(Date.now())).toEqual([own, general])
    expect(await secretsAt(Date.now() + 86_400_000)).toEqual([own])
  })

  test('makes none for an account that does not exist', async () => {
    await expect(run('rotate-secret', 'acct_two')).rejects.toThrow(new SettingError('there is no account "acct_two"'))
  })
})

test.each([
  [[], 'webhooks: say list, resend, secret or rotate-secret; see signalbox --help'],
  [['send'], 'webhooks: say list, resend, secret or rotate-secret; did you mean resend? see signalbox --help'],
  [['list', 'acct_one'], 'the task’s id is missing; see signalbox webhooks list --help'],
  [['resend', 'acct_one'], 'the message’s id is missing; see signalbox webhooks resend --help'],
  [['rotate-secret'], 'the account’s id is missing; see signalbox webhooks rotate-secret --help'],
  [['rotate-secret', 'acct_one', '--overlap', 'long'], '--overlap: "long" is not a duration'],
  [['list', 'acct_one', 'task_one', '--store', 'memory:'], '--store: this command needs a durable store'],
])('signalbox webhooks refuses %j', async (words, message) => {
  await expect(run(...words)).rejects.toThrow(SettingError)
  await expect(run(...words)).rejects.toThrow(message)
})

test('signalbox webhooks begins no database in a wrong folder', async () => {
  const path = join(folder, 'other.db')

  await expect(run('list', 'acct_one', 'task_one', '--store', `sqlite:${path}`)).rejects.toThrow(SettingError)

  expect(existsSync(path)).toBe(false)
})

describe('the settings of serve', () => {
  const SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`

  test('take a webhook secret, and 1 or 0 for private URLs', () => {
    const read = (variables: Environment) => {
      const { webhookSecret, allowPrivateUrls } = readServeSettings(variables)
      return [webhookSecret, allowPrivateUrls]
    }

    expect(read({})).toEqual([undefined, undefined])
    expect(read({ SIGNALBOX_WEBHOOK_SECRET: '', SIGNALBOX_ALLOW_PRIVATE_URLS: '' })).toEqual([undefined, undefined])
    expect(read({ SIGNALBOX_WEBHOOK_SECRET: SECRET, SIGNALBOX_ALLOW_PRIVATE_URLS: '1' })).toEqual([SECRET, true])
    expect(read({ SIGNALBOX_ALLOW_PRIVATE_URLS: '0' })).toEqual([undefined, false])
  })

  test.each(['whsec_', 'canary-7f3a', `whsec_${Buffer.alloc(23, 9).toString('base64')}`])(
    'refuse the webhook secret %j without showing it',
    (secret) => {
      const read = () => readServeSettings({ SIGNALBOX_WEBHOOK_SECRET: secret })

      expect(read).toThrow(
        new SettingError(
          'SIGNALBOX_WEBHOOK_SECRET: a webhook secret must be whsec_ and the padded base64 of 24 to 64 bytes',
        ),
      )
    },
  )

  test.each(['yes', 'true', '2'])('refuse %j for private URLs', (text) => {
    expect(() => readServeSettings({ SIGNALBOX_ALLOW_PRIVATE_URLS: text })).toThrow(
      new SettingError('SIGNALBOX_ALLOW_PRIVATE_URLS: must be 1 or 0'),
    )
  })
})
