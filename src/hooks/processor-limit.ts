import { type Context, createContext, Script } from 'node:vm'

const box: { run?: (() => unknown) | undefined } = {}
let prepared: { readonly script: Script; readonly context: Context } | undefined

/** Limit of processor time for synchronous functions that cannot count their own work. Several functions can share it. */
export class ProcessorLimit {
  #leftMs: number

  constructor(limitMs: number) {
    this.#leftMs = limitMs
  }

  /**
   * Runs a function, and stops it when the time is used up.
   * @param run Pure function, because it may be stopped at any point and started again.
   * @throws Error if no time is left, and the exceptions of the function.
   */
  run<Result>(run: () => Result): Result {
    prepared ??= { script: new Script('run()'), context: createContext(box) }
    const startedAt = process.cpuUsage()
    const limitMs = this.#leftMs
    while (this.#leftMs >= 1) {
      box.run = run
      try {
        return prepared.script.runInContext(prepared.context, { timeout: Math.ceil(limitMs) }) as Result
      } catch (error) {
        // The timer includes other processes, so on a busy machine the function restarts until it has used its own time.
        if (!isTimeout(error)) throw error
      } finally {
        box.run = undefined
        const { user, system } = process.cpuUsage(startedAt)
        this.#leftMs = limitMs - (user + system) / 1_000
      }
    }
    throw new RangeError('the processor time is used up')
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}
