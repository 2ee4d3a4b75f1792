import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../../..')

/** Vendor keys in the environment of the tests must not turn an offline example into one that costs money. */
const VENDOR_KEYS = ['OPENAI', 'ANTHROPIC', 'GEMINI', 'DASHSCOPE', 'VOYAGE'].map((vendor) => `${vendor}_API_KEY`)

/** How a program ended. */
export interface Ended {
  /** Null when a signal ended it. */
  readonly code: number | null
  readonly output: string
}

/** An example that was started. */
interface StartedExample {
  /** Waits until the output matches, and gives the first group. @throws Error if the program ends before. */
  printed(pattern: RegExp): Promise<string>
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<Ended>
}

/** An example under way. */
export interface RunningExample {
  /** Printed `baseURL`. */
  readonly baseURL: string
  /** Printed `apiKey`. */
  readonly apiKey: string
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<Ended>
}

/** Starts `examples/<name>.mjs` on a free port, as a reader would, and waits until it listens. */
export async function runExample(name: string): Promise<RunningExample> {
  const { printed, stop } = startExample(name, { PORT: '0' })
  return { baseURL: await printed(/^baseURL +(\S+)$/m), apiKey: await printed(/^apiKey +(\S+)$/m), stop }
}

/** Starts `examples/<name>.mjs`, with these variables in its environment. */
export function startExample(name: string, environment: Readonly<Record<string, string>>): StartedExample {
  const { child, output, ended } = start(name, environment)
  return {
    async printed(pattern) {
      for (;;) {
        const value = pattern.exec(output())?.[1]
        if (value !== undefined) return value
        const data = once(child.stdout!, 'data')
        const outcome = await Promise.race([data, ended])
        if ('code' in outcome) throw new Error(`examples/${name}.mjs ended with ${outcome.code}:\n${outcome.output}`)
      }
    },
    stop() {
      child.kill('SIGTERM')
      return ended
    },
  }
}

/** Runs `examples/<name>.mjs` to its end, with these variables in its environment. */
export function endOfExample(name: string, environment: Readonly<Record<string, string>>): Promise<Ended> {
  return start(name, environment).ended
}

interface Started {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  output(): string
}

function start(name: string, environment: Readonly<Record<string, string>>): Started {
  const env: NodeJS.ProcessEnv = { ...process.env, ...environment }
  for (const key of [...VENDOR_KEYS, 'GATEWAY_KEY']) delete env[key]
  const child = spawn(process.execPath, [`examples/${name}.mjs`], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8')
    stream.on('data', (text: string) => {
      output += text
    })
  }
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, output }))
  return { child, ended, output: () => output }
}
