import { formatDollars } from '../core/money.ts'
import type { OpenHold } from '../stores/journal.ts'
import type { Resolution } from '../stores/resolution.ts'
import type { CommandArguments, GroupDefinition } from './command.ts'
import { STORE_OPTIONS, withStore } from './open-store.ts'
import { checkDollars, parseCount, SettingError } from './setting-values.ts'
import { dollarsText, printNext, printRows, type Terminal } from './terminal.ts'

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
