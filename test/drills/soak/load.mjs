import { CALLS } from './calls.mjs'

const TICK_MS = 50
/** Share of one core for gateway, stand-ins and callers together: a soak is not a benchmark. */
const CPU_SHARE = 0.5
const FIRST_CALLS_A_SECOND = 30
const MAX_CALLS_A_SECOND = 200
const MAX_AT_ONCE = 64
/** Reasons that are kept. */
const MAX_WRONG = 20

/** Calls of all kinds at a steady rate, which is steered so that the processes take a fixed share of a core. */
export class Load {
  #callers
  #random
  #timer
  #perSecond = FIRST_CALLS_A_SECOND
  #due = 0
  #number = 0
  #underWay = new Set()
  /** By name: calls that were made. */
  made = new Map(CALLS.map(({ name }) => [name, 0]))
  wrongCount = 0
  wrong = []

  /** `random` gives numbers from 0 up to 1. */
  constructor(callers, random) {
    this.#callers = callers
    this.#random = random
  }

  get perSecond() {
    return this.#perSecond
  }

  get total() {
    return this.#number
  }

  start() {
    this.#timer = setInterval(() => {
      this.#due += (this.#perSecond * TICK_MS) / 1_000
      for (; this.#due >= 1; this.#due -= 1) if (this.#underWay.size < MAX_AT_ONCE) this.#begin()
    }, TICK_MS)
  }

  /** Adapts the load to the share of a core that was used recently. */
  steer(cpuShare) {
    const factor = Math.min(1.5, Math.max(0.5, CPU_SHARE / Math.max(0.01, cpuShare)))
    this.#perSecond = Math.min(MAX_CALLS_A_SECOND, Math.max(1, this.#perSecond * factor))
  }

  /** Begins no more calls, and waits for those under way. */
  async stop() {
    clearInterval(this.#timer)
    await Promise.all(this.#underWay)
  }

  #begin() {
    const { name, run } = this.#anyCall()
    const caller = this.#callers[this.#number % this.#callers.length]
    const mark = `number ${this.#number++}`
    this.made.set(name, this.made.get(name) + 1)
    const call = run(caller, mark)
      .catch((error) => {
        this.wrongCount += 1
        if (this.wrong.length < MAX_WRONG) this.wrong.push(`${name}, ${mark}: ${error.stack ?? error}`)
      })
      .finally(() => this.#underWay.delete(call))
    this.#underWay.add(call)
  }

  #anyCall() {
    let left = this.#random() * CALLS.reduce((sum, { share }) => sum + share, 0)
    return CALLS.find(({ share }) => {
      left -= share
      return left < 0
    })
  }
}
