import { isSuccess } from './http-connection.mjs'
import { requestFor } from './request-for.mjs'
import { within } from './within.mjs'

const ANSWER_WITHIN_MS = 60_000
const SETTLE_WITHIN_MS = 5_000

/**
 * Sends a scenario's request once and checks the whole answer, so that a broken proxy cannot look fast.
 * @returns {Promise<number>} size of the body, which every later answer must have
 * @throws Error that names the faults
 */
export async function checkAnswer({ driver, proxy, running, scenario }) {
  const request = requestFor({ scenario, proxy, running })
  const asked = driver.ask('fetchWhole', { port: running.port, request })
  const answer = await within(ANSWER_WITHIN_MS, `${proxy.name}, a first answer`, asked)
  if (!isSuccess(answer)) throw new Error(`${proxy.name}: status ${answer.status}: ${answer.body.slice(0, 500)}`)
  const faults = scenario.faultsOf(answer, proxy)
  if (faults.length > 0) throw new Error(`${proxy.name}: ${faults.join('; ')}: ${answer.body.slice(-500)}`)
  return answer.bodyBytes
}

/**
 * Reads a proxy's account when nothing is held any more; undefined for proxies without accounts. If a request keeps its hold,
 * as a video does until it is rendered, set `isHolding` to read the rest of the balance.
 */
export async function settledBalance(running, { isHolding = false } = {}) {
  const deadline = performance.now() + SETTLE_WITHIN_MS
  while (performance.now() < deadline) {
    const account = await running.account()
    if (account === undefined) return undefined
    if (isHolding || account.held === 0n) return account.balance
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('money is still held after all answers have ended')
}

/** @throws Error unless exactly the answers that were given have been charged */
export function checkCharge({ proxy, before, after, answers, costNanoDollars }) {
  if (before === undefined || after === undefined) return
  const expected = BigInt(answers) * costNanoDollars
  if (before - after !== expected) {
    throw new Error(`${proxy.name}: ${before - after} nano-dollars were taken for ${answers} answers, not ${expected}`)
  }
}
