import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { bundledPrograms } from '../../../support/bundled-programs.ts'

/** A started process, and what it has written so far. */
export interface StoreProcess {
  readonly child: ChildProcess
  readonly lines: string[]
  /** Resolves when the process has written such a line. */
  line(pattern: RegExp): Promise<string>
  /** Starts the work of the process. */
  tell(): void
  /** Exit code or signal, once it has ended and all of its output is read. */
  readonly ended: Promise<number | string | null>
}

/** Bundles `store-process.ts` once for a test file, and starts it on request. Processes that still run are killed at the end. */
export function storeProcesses(): (...args: string[]) => StoreProcess {
  const start = bundledPrograms([join(import.meta.dirname, 'store-process.ts')])
  return (...args) => watch(start('store-process', args, { stdio: ['pipe', 'pipe', 'inherit'] }))
}

function watch(child: ChildProcess): StoreProcess {
  const lines: string[] = []
  const reader = createInterface({ input: child.stdout! })
  reader.on('line', (line) => lines.push(line))
  const ended = Promise.all([once(child, 'exit'), once(reader, 'close')]).then(([[code, signal]]) => code ?? signal)
  return {
    child,
    lines,
    ended,
    line: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = lines.find((line) => pattern.test(line))
          if (found === undefined) return
          reader.off('line', look)
          resolve(found)
        }
        reader.on('line', look)
        void ended.then((code) => reject(new Error(`ended with ${code} before it wrote ${pattern}`)))
        look()
      }),
    tell: () => void child.stdin!.write('go\n'),
  }
}
