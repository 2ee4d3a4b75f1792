// @ts-check
import { formatDollars, parseDollars } from 'signalbox'
import { ClientError } from 'signalbox/client'

/** The cost of a free row. */
export const FREE = '0'

/**
 * The result of a row: `note` goes into the table, `value` to the caller. `cost` is in decimal dollars, if the response
 * headers lack it; {@link FREE} if the call is free.
 * @template Value
 * @typedef {{ note: string, value?: Value, cost?: string | undefined }} Outcome
 */

/**
 * A finished row. Amounts are nano-dollars; `balance` is what the account has left, without holds.
 * @typedef {{ endpoint: string, model: string, isOk: boolean, note: string, latencyMs: number, cost: bigint, balance: bigint }} Row
 */

/** @typedef {Awaited<ReturnType<typeof createTable>>} Table */

/**
 * Starts a table. Each row is printed when it ends.
 * @param {Pick<import('signalbox/client').GatewayClient, 'account'>} client
 * @param {(line: string) => void} print
 */
export async function createTable(client, print) {
  /** @type {Row[]} */
  const rows = []
  const started = await readAccount(client)
  let account = started
  print(`balance at the start: ${formatDollars(account.balance)}\n`)
  print(line(['call', 'model', 'ms', 'cost', 'balance', 'result']))

  /**
   * Runs a call and prints its row. The row is ok if `work` does not throw and the balance falls by exactly the reported
   * cost. Returns the value of `work`; undefined if it threw.
   * @template Value
   * @param {string} endpoint
   * @param {string} model
   * @param {(options: import('signalbox/client').CallOptions) => Promise<Outcome<Value>>} work gets options for its call
   * @returns {Promise<Value | undefined>}
   */
  async function row(endpoint, model, work) {
    const before = account
    /** @type {string | undefined} */
    let told
    const onResponse = (/** @type {import('signalbox/client').ResponseFacts} */ facts) => {
      told = facts.cost
    }
    const startedAtMs = performance.now()
    /** @type {Outcome<Value> | undefined} */
    let outcome
    /** @type {unknown} */
    let fault
    try {
      outcome = await work({ onResponse })
    } catch (error) {
      fault = error
    }
    const latencyMs = Math.round(performance.now() - startedAtMs)
    account = await readAccount(client)
    const cost = outcome?.cost ?? told
    const spent = before.total - account.total
    if (fault === undefined) fault = faultOfCost(cost, spent)
    const note = fault === undefined ? `ok: ${outcome?.note}` : `FAILED: ${textOf(fault)}`
    const { balance } = account
    const amount = cost === undefined ? 0n : parseDollars(cost)
    rows.push({ endpoint, model, isOk: fault === undefined, note, latencyMs, cost: amount, balance })
    print(line([endpoint, model, String(latencyMs), formatDollars(amount), formatDollars(balance), note]))
    return outcome?.value
  }

  /**
   * Prints what the following rows prove.
   * @param {string} text
   */
  function section(text) {
    print(`\n${text}`)
  }

  return { rows, row, section, started }
}

/**
 * The account's money: `total` is the balance plus the holds of running calls and videos.
 * @param {Pick<import('signalbox/client').GatewayClient, 'account'>} client
 */
async function readAccount(client) {
  const { balance, held } = await client.account.balance()
  return { balance: parseDollars(balance), total: parseDollars(balance) + parseDollars(held) }
}

/**
 * @param {string | undefined} cost
 * @param {bigint} spent
 */
function faultOfCost(cost, spent) {
  if (cost === undefined) return new Error('nobody says what it cost')
  if (cost !== FREE && parseDollars(cost) === 0n) return new Error('it cost nothing')
  if (parseDollars(cost) === spent) return undefined
  return new Error(`it is said to cost ${cost}, and the account lost ${formatDollars(spent)}`)
}

/** @param {unknown} fault */
function textOf(fault) {
  if (ClientError.isInstance(fault)) return `${fault.status} ${fault.code}: ${fault.message}`
  // An assertion message has several lines.
  return fault instanceof Error ? fault.message.replace(/\s+/g, ' ').trim() : String(fault)
}

const WIDTHS = [28, 28, 6, 12, 13]

/** @param {readonly string[]} cells */
function line(cells) {
  const padded = cells.map((cell, column) => {
    const width = WIDTHS[column] ?? 0
    return column >= 2 && column <= 4 ? cell.padStart(width) : cell.padEnd(width)
  })
  return padded.join('  ').trimEnd()
}

/**
 * The value of an earlier row.
 * @template Value
 * @param {Value | undefined} value
 * @param {string} row
 * @returns {Value}
 */
export function needed(value, row) {
  if (value === undefined) throw new Error(`it needs ${row}, which failed`)
  return value
}
