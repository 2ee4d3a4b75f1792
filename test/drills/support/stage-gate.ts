import type { FakeClock } from '../../../src/testing/index.ts'

/** Every place at which a request can go wrong, in the order in which it passes them. */
export type Stage =
  | 'authenticate'
  | 'receive body'
  | 'estimate'
  | 'acquire lease'
  | 'take rates'
  | 'reserve'
  | 'translate request'
  | 'send'
  | 'vendor head'
  | 'vendor body'
  | 'read answer'
  | 'pass answer through'
  | 'settle'
  | 'release lease'
  | 'adjust rates'
  | 'answer head'
  | 'answer bytes'
  | 'answer end'

/** Fault at a stage. */
export type StageFault = 'a throw' | 'a time-out' | 'a leaving caller'

/** How long a driver of these drills waits before it gives up by itself. */
export const DRIVER_DEADLINE_MS = 5_000

/** Lets one stage of one request go wrong, once, exactly while the request is in it. */
export class StageGate {
  readonly #clock: FakeClock
  readonly #stage: Stage
  readonly #fault: StageFault
  #hasStruck = false
  /** Set once the request exists, because only then can its caller disconnect. */
  leave: () => void = () => undefined

  constructor(clock: FakeClock, stage: Stage, fault: StageFault) {
    this.#clock = clock
    this.#stage = stage
    this.#fault = fault
  }

  /** Asked wherever a stage can wait; resolves when the stage may go on. */
  async reach(stage: Stage): Promise<void> {
    const fault = this.#strike(stage)
    if (fault === 'a time-out') {
      await new Promise<void>((resolve) => {
        this.#clock.schedule(DRIVER_DEADLINE_MS, resolve)
        setImmediate(() => this.#clock.advance(DRIVER_DEADLINE_MS))
      })
      throw new Error(`no answer within ${DRIVER_DEADLINE_MS} ms`)
    }
    if (fault === 'a leaving caller') {
      this.leave()
      // The stage stays where it is until everything that the leaving sets off has run.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** Called in stages that cannot wait. Returns true if the time has expired there. */
  pass(stage: Stage): boolean {
    const fault = this.#strike(stage)
    if (fault === 'a leaving caller') this.leave()
    return fault === 'a time-out'
  }

  #strike(stage: Stage): StageFault | undefined {
    if (stage !== this.#stage || this.#hasStruck) return undefined
    this.#hasStruck = true
    if (this.#fault === 'a throw') throw new Error(`${stage} failed`)
    return this.#fault
  }
}
