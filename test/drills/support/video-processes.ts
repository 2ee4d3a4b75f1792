import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'tsup'
import { afterAll, beforeAll } from 'vitest'
import type { DrillStore } from './open-drill-store.ts'

/** What a gateway for videos is told. */
export interface VideoServerSettings {
  readonly store: DrillStore
  readonly vendorOrigin: string
  readonly vendorKey: string
  readonly key: string
  readonly account: string
  /** Dollars, credited once. */
  readonly credit: string
  readonly webhookSecret: string
  readonly pollIntervalMs: number
  /** Every so many-th connection for a submission does not come about; absent: all do. */
  readonly refuseEvery?: number
}

/** What it says to its parent. */
export type VideoServerWords =
  | { readonly url: string }
  | {
      readonly residentBytes: number
      /** When it asked the vendor about tasks since the last time, Unix milliseconds. */
      readonly askedAtMs: readonly number[]
    }

/** A gateway in a process of its own. */
export interface VideoProcess {
  readonly url: string
  /** Memory that it takes, and when it asked the vendor about tasks since the last time. */
  measure(): Promise<Extract<VideoServerWords, { residentBytes: number }>>
  /** Sends a signal and waits for the end. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
}

const ROOT = join(import.meta.dirname, '../../..')

/** Bundles the gateway once for a test file, and starts it as often as asked. What still runs is killed at the end. */
export function videoProcesses(): (settings: VideoServerSettings) => Promise<VideoProcess> {
  // Inside the project, so that the bundle finds the packages it needs.
  const folder = mkdtempSync(join(ROOT, 'node_modules/.signalbox-test-'))
  const children = new Set<ChildProcess>()
  beforeAll(async () => {
    await build({
      entry: [join(import.meta.dirname, 'video-server.ts')],
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
  return async (settings) => {
    const program = ['--expose-gc', join(folder, 'video-server.mjs'), JSON.stringify(settings)]
    const child = spawn(process.execPath, program, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    children.add(child)
    const exited = once(child, 'exit').then(([code, signal]) => {
      children.delete(child)
      return `the gateway ended with ${String(code ?? signal)}`
    })
    const said = async <Words>(): Promise<Words> => {
      const words = await Promise.race([once(child, 'message'), exited])
      if (typeof words === 'string') throw new Error(words)
      return words[0] as Words
    }
    const { url } = await said<{ url: string }>()
    return {
      url,
      measure() {
        const answer = said<Extract<VideoServerWords, { residentBytes: number }>>()
        child.send('measure')
        return answer
      },
      async end(signal) {
        child.kill(signal)
        await exited
      },
    }
  }
}
