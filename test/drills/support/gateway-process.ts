import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'tsup'
import { afterAll, beforeAll } from 'vitest'
import type { Timeouts } from '../../../src/stages/stage-context.ts'

/** What a gateway of a drill is told. */
export interface GatewaySettings {
  readonly vendors: readonly { readonly id: string; readonly origin: string }[]
  /** Makes one model of each kind for each route: `chat-<name>`, `embeddings-<name>`, `image-<name>`. */
  readonly routes: readonly { readonly name: string; readonly vendors: readonly string[] }[]
  readonly timeouts: Timeouts
  /** Of the server; absent: Node's own. */
  readonly requestTimeoutMs?: number
}

/** What it holds at one moment, after garbage collection. Money in nano-dollars. */
export interface GatewayMeasures {
  /** Objects, and buffers outside the heap. */
  readonly heapBytes: number
  readonly externalBytes: number
  readonly residentBytes: number
  /** Connections of both sides. */
  readonly sockets: number
  readonly callsUnderWay: number
  readonly retriesLeft: number
  /** Used since it was asked last. */
  readonly cpuMs: number
  readonly balance: string
  readonly held: string
  /** Sum of all entries. */
  readonly journal: string
  /** Sum of all bills that the host was told of. */
  readonly charged: string
  /** How often requests ended in each way: endpoint, ending, status, code. */
  readonly endings: Readonly<Record<string, number>>
}

/** A program in a process of its own. */
export interface DrillProcess<Ready, Answer> {
  /** What it said first. */
  readonly ready: Ready
  /** Asks it something, one question at a time. */
  ask(question: unknown): Promise<Answer>
  /** Kills it and waits for the end. */
  kill(): Promise<void>
}

const ROOT = join(import.meta.dirname, '../../..')

/**
 * Bundles programs of this folder once for a test file, and starts them as often as asked. What still runs is killed at the end.
 * @param names Files without their ending.
 */
export function drillPrograms(
  names: readonly string[],
): <Ready, Answer>(name: string, settings: unknown) => Promise<DrillProcess<Ready, Answer>> {
  // Inside the project, so that the bundles find the packages they need.
  const folder = mkdtempSync(join(ROOT, 'node_modules/.signalbox-test-'))
  const children = new Set<ChildProcess>()
  beforeAll(async () => {
    await build({
      entry: names.map((name) => join(import.meta.dirname, `${name}.ts`)),
      outDir: folder,
      format: 'esm',
      target: 'node20',
      platform: 'node',
      config: false,
      dts: false,
      removeNodeProtocol: false,
      silent: true,
      outExtension: () => ({ js: '.mjs' }),
    })
  })
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  return async <Ready, Answer>(name: string, settings: unknown) => {
    const program = ['--expose-gc', join(folder, `${name}.mjs`), JSON.stringify(settings)]
    const child = spawn(process.execPath, program, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    children.add(child)
    const exited = once(child, 'exit').then(([code, signal]) => {
      children.delete(child)
      return `the process ended with ${String(code ?? signal)}`
    })
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
      async kill() {
        child.kill('SIGKILL')
        await exited
      },
    }
  }
}
