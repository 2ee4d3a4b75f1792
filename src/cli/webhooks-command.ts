import { systemClock } from '../core/clock.ts'
import { DEFAULT_SECRET_OVERLAP_MS } from '../gateway/webhooks.ts'
import type { DeliveryAttempt, WebhookDelivery } from '../stores/webhook-store.ts'
import { commandArguments, runAction } from './command-arguments.ts'
import { existingAccount, withStore } from './open-store.ts'
import { parseDuration, SettingError } from './setting-values.ts'
import { printRows, type Terminal } from './terminal.ts'

/**
 * `signalbox webhooks list|resend|rotate-secret`.
 * @throws SettingError naming the argument.
 */
export async function webhooksCommand(words: readonly string[], terminal: Terminal): Promise<void> {
  const actions = { list: listDeliveries, resend: resendDelivery, 'rotate-secret': rotateSecret }
  return runAction('webhooks', actions, words, terminal)
}

async function listDeliveries(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, {
    options: ['store'],
    flags: ['json'],
    positionals: ['the account’s id', 'the task’s id'],
  })
  const [accountId = '', taskId = ''] = given.positionals
  const deliveries = await withStore(terminal, { store: given.option('store') }, ({ webhooks }) =>
    webhooks.deliveries(accountId, taskId),
  )
  if (given.flag('json')) terminal.print(JSON.stringify({ object: 'list', data: deliveries.map(deliveryJson) }))
  else printRows(terminal, deliveries.map(deliveryRow))
}

async function resendDelivery(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, {
    options: ['store'],
    flags: ['json'],
    positionals: ['the account’s id', 'the message’s id'],
  })
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

async function rotateSecret(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, {
    options: ['overlap', 'store'],
    flags: ['json'],
    positionals: ['the account’s id'],
  })
  const [accountId = ''] = given.positionals
  const overlap = given.option('overlap')
  const overlapMs = overlap === undefined ? DEFAULT_SECRET_OVERLAP_MS : parseDuration('--overlap', overlap)
  const secret = await withStore(terminal, { store: given.option('store') }, async (administration) => {
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
    ['older', `sign beside it until ${new Date(olderUntilMs).toISOString()}`],
  ])
  terminal.print('Give the secret to the receiver now: no command shows it again.')
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

/** Times are Unix seconds. */
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
