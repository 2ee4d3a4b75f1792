import { readFile } from 'node:fs/promises'
import type { Credential } from '../core/credential.ts'
import { isJsonObject, objectOf, parseVendorJson } from '../core/json.ts'
import { type EgressOptions, egressRoute } from '../transport/egress.ts'
import type { TransportRequest } from '../transport/transport.ts'
import { undiciTransport } from '../transport/undici.ts'

/** Maximum size of a token endpoint's answer, in bytes. */
const MAX_ANSWER_BYTES = 256 * 1024

/** Below the 10 seconds after which a provider times out, so that the error names the silent server. */
const TIMEOUT_MS = 8_000

/** Request to a token endpoint. */
interface TokenQuestion {
  readonly url: string
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly headers?: Readonly<Record<string, string>>
  /** Form, sent as `application/x-www-form-urlencoded`. */
  readonly form?: Readonly<Record<string, string>>
  /** Object that is sent as `application/json` instead of a form. */
  readonly json?: object
  readonly signal: AbortSignal
}

/** Complete answer of a token endpoint. */
export interface TokenAnswer {
  readonly status: number
  readonly text: string
  /** Body as an object. Empty if the body is not an object. */
  readonly json: Readonly<Record<string, unknown>>
}

/** Sends requests to token endpoints. */
export type AskTokens = (question: TokenQuestion) => Promise<TokenAnswer>

/**
 * Returns a function that uses its own connections, with the given proxy and authority. Redirects are not followed.
 * @throws TypeError for egress options that cannot be used.
 */
export function tokenAsker(options: EgressOptions = {}): AskTokens {
  const egress = egressRoute(options)
  const transport = undiciTransport()
  return ({ url, method, headers = {}, form, json, signal }) => {
    const { origin, pathname, search } = new URL(url)
    const sent = Object.entries({ accept: 'application/json', ...headers }).flat()
    if (form !== undefined) sent.push('content-type', 'application/x-www-form-urlencoded')
    if (json !== undefined) sent.push('content-type', 'application/json')
    const text = json === undefined ? form && new URLSearchParams(form).toString() : JSON.stringify(json)
    const request: TransportRequest = {
      origin,
      path: `${pathname}${search}`,
      method,
      headers: sent,
      body: text ?? null,
      firstByteTimeoutMs: TIMEOUT_MS,
      idleTimeoutMs: TIMEOUT_MS,
      egress,
    }
    return new Promise((resolve, reject) => {
      const chunks: Uint8Array[] = []
      let byteLength = 0
      let status = 0
      const control = transport.send(request, {
        onHead: (answered) => {
          status = answered
        },
        onData: (chunk) => {
          byteLength += chunk.byteLength
          if (byteLength > MAX_ANSWER_BYTES) control.abort()
          else chunks.push(chunk)
        },
        onEnd: () => {
          signal.removeEventListener('abort', abort)
          const text = Buffer.concat(chunks).toString('utf8')
          // Error pages of proxies are HTML; the status is sufficient.
          resolve({ status, text, json: objectOf(parseVendorJson(text)) })
        },
        onFailure: ({ kind, error }) => {
          signal.removeEventListener('abort', abort)
          const remedy = kind === 'proxy' ? '' : ': check the address, proxy and tls.ca of the credential'
          reject(
            new Error(`${origin} cannot be called for a token (${kind}: ${error.message})${remedy}`, { cause: error }),
          )
        },
      })
      const abort = (): void => control.abort()
      if (signal.aborted) abort()
      else signal.addEventListener('abort', abort)
    })
  }
}

/**
 * Returns the token of an OAuth answer: `access_token`, and `expires_in` in seconds, which does not depend on clocks.
 * @throws Error with `what` and the setting to fix, and with the server's own message if it rejected the request.
 */
export function oauthCredential({ status, json }: TokenAnswer, nowMs: number, what: string): Credential {
  const { access_token: token, expires_in: seconds } = json
  if (status >= 200 && status < 300 && typeof token === 'string') {
    const lifetimeSeconds = Number(seconds)
    return lifetimeSeconds > 0 ? { token, expiresAtMs: nowMs + lifetimeSeconds * 1000 } : { token }
  }
  throw new Error(`${what}: ${refusalOf(status, json)}`)
}

/** Returns the server's own message, without anything that could be a token. */
export function refusalOf(status: number, json: TokenAnswer['json']): string {
  const { error, error_description: description, message } = json
  const nested = isJsonObject(error) ? error : {}
  const words = [typeof error === 'string' ? error : nested['status'], description ?? message ?? nested['message']]
  const text = words.filter((word) => typeof word === 'string').join(': ')
  return `${status}${text === '' ? '' : ` ${withoutTokens(text).slice(0, 500)}`}`
}

const TOKENS = /eyJ[\w-]{8,}(?:\.[\w-]*){0,2}|ya29\.[\w.-]+|[\w+/=-]{64,}/g

function withoutTokens(text: string): string {
  return text.replace(TOKENS, '[redacted]')
}

/** Matches keys and tokens, but no paths: a setting that should name a file may contain the secret itself. */
const IS_CONTENT = /[{}\n]|eyJ[\w-]{8}/

/**
 * Reads a file that the platform replaces regularly, so it is read each time.
 * @throws Error with the setting and the file.
 */
export async function textOfFile(path: string, setting: string): Promise<string> {
  if (IS_CONTENT.test(path))
    throw new Error(`${setting}: contains the content of a file; write it to a file, and set its path`)
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (cause) {
    throw new Error(`${setting}: ${path} cannot be read (${(cause as NodeJS.ErrnoException).code})`, { cause })
  }
}

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Returns a required setting: the option, or the first of the variables that is set.
 * @throws TypeError with the option and the first variable.
 */
export function required<Name extends string>(
  factory: string,
  options: { readonly [Each in Name]?: string | undefined } & { readonly environment?: Environment | undefined },
  name: Name,
  ...variables: readonly [string, ...string[]]
): string {
  const { environment = process.env } = options
  const value = options[name] ?? variables.map((variable) => environment[variable]).find(Boolean)
  if (value === undefined || value.trim() === '') throw new TypeError(`set ${factory}({ ${name} }), or ${variables[0]}`)
  return value.trim()
}
