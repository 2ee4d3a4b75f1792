import { type Context, createContext, Script } from 'node:vm'

const box: { run?: (() => unknown) | undefined } = {}
let prepared: { readonly script: Script; readonly context: Context } | undefined

/**
 * Runs a synchronous function that cannot count its own work, and stops it after a time.
 * @param run Pure function, because it may be stopped at any point.
 * @throws Error `ERR_SCRIPT_EXECUTION_TIMEOUT` after `timeoutMs`, and what the function throws.
 */
export function withTimeLimit<Result>(timeoutMs: number, run: () => Result): Result {
  prepared ??= { script: new Script('run()'), context: createContext(box) }
  box.run = run
  try {
    return prepared.script.runInContext(prepared.context, { timeout: timeoutMs }) as Result
  } finally {
    box.run = undefined
  }
}
