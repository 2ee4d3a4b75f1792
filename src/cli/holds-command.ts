import { systemClock } from '../core/clock.ts'
import { textOfError } from '../core/errors.ts'
import { formatDollars } from '../core/money.ts'
import { DEFAULT_SECRET_OVERLAP_MS } from '../gateway/webhooks.ts'
import type { OpenHold } from '../stores/journal.ts'
import type { Resolution } from '../stores/resolution.ts'
import type { DeliveryAttempt, WebhookDelivery } from '../stores/webhook-store.ts'
import { checkWebhookSecret } from '../tasks/webhook-payload.ts'
import type { CommandArguments, GroupDefinition } from './command.ts'
import { existingAccount, STORE_OPTIONS, withStore } from './open-store.ts'
import { checkDollars, parseCount, parseDelay, SettingError } from './setting-values.ts'
import { dollarsText, type Environment, printNext, printRows, type Terminal } from './terminal.ts'

const DEFAULT_HOLDS = '100'

const HOLD = { name: 'HOLD', text: 'the hold’s id' }

/** Commands `signalbox holds …`. The actions throw a SettingError naming the argument. */
export const holdsCommand: GroupDefinition = {
  summary: 'manage money held for calls in progress',
  actions: {
    list: {
      summary: 'list money held for calls in progress, oldest first',
      options: {
        account: { value: 'ID', text: 'only entries of this account' },
        limit: { value: 'N', text: `maximum number of holds (default: ${DEFAULT_HOLDS})` },
        cursor: { value: 'CURSOR', text: 'continue after the previous page' },
        ...STORE_OPTIONS,
      },
      run: listHolds,
    },
    settle: {
      summary: 'charge a hold manually',
      positionals: [HOLD, { name: 'AMOUNT', text: 'the amount' }],
      options: { reason: { value: 'TEXT', text: 'reason in the journal' }, ...STORE_OPTIONS },
      run: settleHold,
    },
    void: {
      summary: 'release a hold without a charge',
      positionals: [HOLD],
      options: STORE_OPTIONS,
      run: voidHold,
    },
  },
}

async function listHolds(given: CommandArguments, terminal: Terminal): Promise<void> {
  const limit = parseCount('--limit', given.option('limit') ?? DEFAULT_HOLDS)
  const options = { accountId: given.option('account'), cursor: given.option('cursor'), limit }
  const page = await withStore(terminal, { store: given.option('store') }, ({ holds }) => holds.list(options))
  if (given.flag('json')) {
    const next = page.next ?? null
    terminal.print(JSON.stringify({ object: 'list', data: page.holds.map(holdJson), next }))
    return
  }
  const rows = page.holds.map(({ id, accountId, keyId, amount, createdAtMs, expiresAtMs }) => {
    const times = [createdAtMs, expiresAtMs].map((timeMs) => new Date(timeMs).toISOString())
    return [id, accountId, keyId, dollarsText(amount), ...times]
  })
  printRows(terminal, [['hold', 'account', 'key', 'amount', 'made', 'expires'], ...rows])
  printNext(terminal, page.next)
}

async function settleHold(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [holdId = '', text = ''] = given.positionals
  const amount = checkDollars('the amount', text)
  const resolution = await withStore(terminal, { store: given.option('store') }, ({ holds }) =>
    holds.settle(holdId, amount, { reason: given.option('reason') }),
  )
  printEnd(terminal, given.flag('json'), holdId, resolution)
}

async function voidHold(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [holdId = ''] = given.positionals
  const resolution = await withStore(terminal, { store: given.option('store') }, ({ holds }) => holds.void(holdId))
  printEnd(terminal, given.flag('json'), holdId, resolution)
}

/** @throws SettingError if the hold had ended before: nothing was changed then. */
function printEnd(terminal: Terminal, asJson: boolean, holdId: string, resolution: Resolution): void {
  const { resolved, charged, shortfall, endedBy } = resolution
  if (!resolved) throw new SettingError(`the hold ${JSON.stringify(holdId)} was ${endedBy} before; nothing was changed`)
  if (asJson) {
    const amounts = { charged: formatDollars(charged), owed: formatDollars(shortfall) }
    terminal.print(JSON.stringify({ object: 'hold', id: holdId, ...amounts }))
    return
  }
  const owed = shortfall === 0n ? '' : `, and ${dollarsText(shortfall)} is owed`
  terminal.print(`${holdId} has ended: ${dollarsText(charged)} was charged${owed}`)
}

function holdJson({ id, accountId, keyId, amount, createdAtMs, expiresAtMs }: OpenHold) {
  return {
    object: 'hold',
    id,
    account: accountId,
    key: keyId,
    amount: formatDollars(amount),
    created_at: Math.floor(createdAtMs / 1000),
    expires_at: Math.floor(expiresAtMs / 1000),
  }
}

const ACCOUNT = { name: 'ACCOUNT', text: 'the account’s id' }

/** Commands `signalbox webhooks …`. The actions throw a SettingError naming the argument. */
export const webhooksCommand: GroupDefinition = {
  summary: 'manage messages to callers’ webhooks, and their secrets',
  actions: {
    list: {
      summary: 'list messages about a task, and the results of their attempts',
      positionals: [ACCOUNT, { name: 'TASK', text: 'the task’s id' }],
      options: STORE_OPTIONS,
      run: listDeliveries,
    },
    resend: {
      summary: 'send a message again',
      positionals: [ACCOUNT, { name: 'MESSAGE', text: 'the message’s id' }],
      options: STORE_OPTIONS,
      run: resendDelivery,
    },
    secret: {
      summary: 'show the secret that signs the messages of an account; creates one if there is none',
      positionals: [ACCOUNT],
      options: STORE_OPTIONS,
      run: showSecret,
    },
    'rotate-secret': {
      summary: 'give an account a new secret; older ones still sign during the overlap',
      positionals: [ACCOUNT],
      options: {
        overlap: { value: 'TIME', text: 'how long older secrets still sign (default: 1d)' },
        ...STORE_OPTIONS,
      },
      run: rotateSecret,
    },
  },
}

async function listDeliveries(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [accountId = '', taskId = ''] = given.positionals
  const deliveries = await withStore(terminal, { store: given.option('store') }, ({ webhooks }) =>
    webhooks.deliveries(accountId, taskId),
  )
  if (given.flag('json')) terminal.print(JSON.stringify({ object: 'list', data: deliveries.map(deliveryJson) }))
  else printRows(terminal, [['message', 'made', 'state', 'attempts', 'last', 'next'], ...deliveries.map(deliveryRow)])
}

async function resendDelivery(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [accountId = '', deliveryId = ''] = given.positionals
  const isKnown = await withStore(terminal, { store: given.option('store') }, ({ webhooks }) =>
    webhooks.resend(accountId, deliveryId),
  )
  if (!isKnown)
    throw new SettingError(
      `there is no message ${JSON.stringify(deliveryId)} of the account ${JSON.stringify(accountId)}; see signalbox webhooks list`,
    )
  if (given.flag('json'))
    terminal.print(JSON.stringify({ object: 'webhook.delivery', id: deliveryId, state: 'pending' }))
  else terminal.print(`${deliveryId} is due now; a running gateway sends it within 5 seconds`)
}

async function showSecret(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [accountId = ''] = given.positionals
  const wanted = { store: given.option('store'), webhookSecret: generalSecret(terminal.environment) }
  const secret = await withStore(terminal, wanted, async (administration) => {
    await existingAccount(administration, accountId)
    return administration.webhooks.secret(accountId)
  })
  if (given.flag('json')) terminal.print(JSON.stringify({ object: 'webhook.secret', account: accountId, secret }))
  else terminal.print(secret)
}

/** Returns the secret with which `serve` signs, from the same variables. */
function generalSecret(environment: Environment): string | undefined {
  const name = 'SIGNALBOX_WEBHOOK_SECRET'
  const text = environment[name]?.trim()
  if (text === undefined || text === '') return undefined
  try {
    return checkWebhookSecret(text)
  } catch (cause) {
    throw new SettingError(`${name}: ${textOfError(cause)}`)
  }
}

async function rotateSecret(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [accountId = ''] = given.positionals
  const overlap = given.option('overlap')
  const overlapMs = overlap === undefined ? DEFAULT_SECRET_OVERLAP_MS : parseDelay('--overlap', overlap)
  const wanted = { store: given.option('store'), webhookSecret: generalSecret(terminal.environment) }
  const secret = await withStore(terminal, wanted, async (administration) => {
    // A secret for a misspelt account would go unnoticed until a receiver rejects the first message.
    await existingAccount(administration, accountId)
    return administration.webhooks.rotateSecret(accountId, { overlapMs })
  })
  const olderUntilMs = systemClock.now() + overlapMs
  if (given.flag('json')) {
    const olderUntil = Math.floor(olderUntilMs / 1000)
    terminal.print(JSON.stringify({ object: 'webhook.secret', account: accountId, secret, older_until: olderUntil }))
    return
  }
  printRows(terminal, [
    ['secret', secret],
    ['account', accountId],
    ['older', `still sign until ${new Date(olderUntilMs).toISOString()}`],
  ])
  terminal.print('Give the secret to the receiver; signalbox webhooks secret shows it again.')
}

function deliveryRow(delivery: WebhookDelivery): string[] {
  const { id, state, attempts, createdAtMs } = delivery
  const last = attempts.at(-1)
  return [
    id,
    new Date(createdAtMs).toISOString(),
    state,
    `${attempts.length} ${attempts.length === 1 ? 'attempt' : 'attempts'}`,
    last === undefined ? '' : (last.error ?? `status ${last.status}`),
    state === 'pending' ? `next ${new Date(delivery.nextAttemptAtMs).toISOString()}` : '',
  ]
}

/** Returns a message as JSON, with times in Unix seconds. */
function deliveryJson(delivery: WebhookDelivery) {
  return {
    object: 'webhook.delivery',
    id: delivery.id,
    account: delivery.accountId,
    task: delivery.taskId,
    url: delivery.url,
    state: delivery.state,
    attempts: delivery.attempts.map(attemptJson),
    created_at: Math.floor(delivery.createdAtMs / 1000),
    next_attempt_at: delivery.state === 'pending' ? Math.floor(delivery.nextAttemptAtMs / 1000) : null,
  }
}

function attemptJson({ atMs, status, error, durationMs }: DeliveryAttempt) {
  return { at: Math.floor(atMs / 1000), status: status ?? null, error: error ?? null, duration_ms: durationMs }
}
