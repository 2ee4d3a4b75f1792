import { ERROR_TABLE, type ErrorCode, GatewayError } from '../core/errors.ts'
import { isJsonObject } from '../core/json.ts'
import type { GatewayAnswer } from './gateway-call.ts'

/** The shapes without a code (API specification, "Errors": insufficient balance). */
const CODES_BY_STATUS: ReadonlyMap<number, ErrorCode> = new Map([[402, 'insufficient_balance']])

/** The error that the gateway answered with, whichever of its shapes the endpoint has. `publicCode` is what the HTTP API says. */
export function refusedAnswer({ status, headers, body }: GatewayAnswer): GatewayError {
  const outer = membersOf(jsonOf(body))
  const inner = membersOf(outer['error'])
  const shown = textOf(inner['code']) ?? textOf(outer['code'])
  const code =
    knownCode(shown) ?? CODES_BY_STATUS.get(status) ?? (status < 500 ? 'upstream_rejected' : 'internal_error')
  const retryAfterSeconds = Number(headers.get('retry-after') ?? Number.NaN)
  return new GatewayError(code, {
    status,
    message: textOf(inner['message']) ?? textOf(outer['message']),
    publicCode: shown,
    param: textOf(inner['param']),
    ...(Number.isFinite(retryAfterSeconds) ? { retryAfterSeconds } : {}),
  })
}

/** The JSON in a body; undefined when it is none. */
export function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body)) as unknown
  } catch {
    return undefined
  }
}

function knownCode(code: string | undefined): ErrorCode | undefined {
  return code !== undefined && Object.hasOwn(ERROR_TABLE, code) ? (code as ErrorCode) : undefined
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return isJsonObject(value) ? value : {}
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
