import { once } from 'node:events'
import { join } from 'node:path'
import { bundledPrograms } from '../../support/bundled-programs.ts'

/** A program in a process of its own. */
export interface DrillProcess<Ready, Answer> {
  /** First message of the process. */
  readonly ready: Ready
  /** Asks it something, one question at a time. */
  ask(question: unknown): Promise<Answer>
  /** Sends a signal and waits for the end. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
}

/**
 * Bundles programs of this folder once for a test file, and starts them on request. Processes that still run are killed at the end.
 * @param names Files without their ending.
 * @param nodeOptions Options of Node for the processes.
 */
export function drillPrograms(
  names: readonly string[],
  nodeOptions = '',
): <Ready, Answer>(name: string, settings: unknown) => Promise<DrillProcess<Ready, Answer>> {
  const start = bundledPrograms(names.map((name) => join(import.meta.dirname, `${name}.ts`)))
  return async <Ready, Answer>(name: string, settings: unknown) => {
    const child = start(name, [JSON.stringify(settings)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, NODE_OPTIONS: nodeOptions },
    })
    const exited = once(child, 'exit').then(([code, signal]) => `the process ended with ${String(code ?? signal)}`)
    const said = async <Words>(): Promise<Words> => {
      const words = await Promise.race([once(child, 'message'), exited])
      if (typeof words === 'string') throw new Error(words)
      return words[0] as Words
    }
    return {
      ready: await said<Ready>(),
      ask(question) {
        const answer = said<Answer>()
        child.send(question as object)
        return answer
      },
      async end(signal) {
        child.kill(signal)
        await exited
      },
    }
  }
}
