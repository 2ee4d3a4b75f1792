import { readFileSync } from 'node:fs'
import { systemClock } from '../core/clock.ts'
import { textOfError } from '../core/errors.ts'
import { fetchText } from '../gateway/fetch-text.ts'
import { MAX_ANSWER_BYTES } from '../pipeline/buffered-call.ts'
import { egressRoute } from '../transport/egress-route.ts'
import { undiciTransport } from '../transport/undici.ts'
import { environmentProxy } from './environment-proxy.ts'
import { SettingError } from './setting-values.ts'
import type { Environment } from './terminal.ts'

const FETCH_TIMEOUT_MS = 30_000

/**
 * Reads a public catalog from a path or URL.
 * @throws SettingError that names the source.
 */
export async function readCatalog(source: string, environment: Environment): Promise<unknown> {
  const isAddress = /^https?:\/\//.test(source)
  const proxy = isAddress && URL.canParse(source) ? environmentProxy(source, environment) : undefined
  let text: string
  try {
    text = isAddress ? await fetchDirectly(source, proxy) : readFileSync(source, 'utf8')
  } catch (error) {
    throw new SettingError(`--from: ${source} cannot be read (${textOfError(firstCause(error))})`)
  }
  return parsed(source, text)
}

/** Returns the innermost cause, because "fetch failed" has no reason. */
function firstCause(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? firstCause(error.cause) : error
}

async function fetchDirectly(address: string, proxy: string | undefined): Promise<string> {
  if (proxy !== undefined) return textThrough(proxy, address)
  const answer = await fetch(address, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) })
  if (!answer.ok) throw new Error(`status ${answer.status}`)
  return answer.text()
}

/** Uses the transport of calls, because `fetch` does not support proxies. */
async function textThrough(proxy: string, address: string): Promise<string> {
  const transport = undiciTransport()
  try {
    const egress = egressRoute({ proxy })
    return await fetchText(address, { transport, clock: systemClock, egress, maxBytes: MAX_ANSWER_BYTES })
  } finally {
    await transport.close()
  }
}

function parsed(source: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new SettingError(`${source} is not JSON`)
  }
}

/**
 * Reads a JSON file, or returns `undefined` if there is none.
 * @throws SettingError that names the file.
 */
export function readIfThere<Value>(path: string, check: (json: unknown) => Value): Value | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new SettingError(`${path} cannot be read (${(error as Error).message})`)
  }
  return naming(path, () => check(parsed(path, text)))
}

/** Adds a name to the errors of shared code. */
export function naming<Value>(name: string, run: () => Value): Value {
  try {
    return run()
  } catch (error) {
    if (error instanceof TypeError) throw new SettingError(`${name}: ${error.message}`)
    throw error
  }
}
