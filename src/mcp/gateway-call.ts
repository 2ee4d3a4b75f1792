import { Buffer } from 'node:buffer'
import { ERROR_TABLE, type ErrorCode, GatewayError } from '../core/errors.ts'
import type { BodyListener, ByteSink, ExchangeHandler, GatewayRequest } from '../core/exchange.ts'
import { nonEmptyText, objectOf, parseVendorJson } from '../core/json.ts'
import { encodeForm, type Form } from '../wire/write-form.ts'

/** A request to the gateway within this process. */
export interface GatewayCall {
  readonly method: 'GET' | 'POST'
  /** Path below the mount, percent-encoded: `/v1/chat/completions`. */
  readonly path: string
  /** Body, sent as JSON. */
  readonly body?: unknown
  /** Form, sent in place of `body`. */
  readonly form?: Form
  readonly idempotencyKey?: string | undefined
}

/** Answer of the gateway, which may be an error. */
export interface GatewayAnswer {
  readonly status: number
  /** Response headers, keyed by lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

/** Maximum number of bytes per answer. A result is held in memory completely, and images and audio a second time as base64. */
export const MAX_ANSWER_BYTES = 96 * 1024 * 1024

/**
 * Sends a request to the gateway within this process. An abort of `signal` is a disconnect to the gateway.
 * @throws GatewayError `client_closed_request` after an abort; `upstream_invalid_response` if the answer breaks off or exceeds
 *   `limitBytes`.
 */
export function callGateway(
  handler: ExchangeHandler,
  call: GatewayCall,
  { signal, limitBytes = MAX_ANSWER_BYTES }: { readonly signal: AbortSignal; readonly limitBytes?: number },
): Promise<GatewayAnswer> {
  return new Promise((resolve, reject) => {
    const exchange = new CallExchange(call, limitBytes, (outcome) => {
      signal.removeEventListener('abort', exchange.abort)
      if (outcome instanceof GatewayError) reject(outcome)
      else resolve(outcome)
    })
    if (signal.aborted) exchange.abort()
    else signal.addEventListener('abort', exchange.abort)
    if (!exchange.closed) handler.handle(exchange, exchange)
  })
}

/** Both sides of one call: the request that the gateway reads, and the sink that it writes to. */
class CallExchange implements GatewayRequest, ByteSink {
  readonly method: string
  readonly path: string
  readonly query = ''
  readonly #headers = new Map<string, string>()
  readonly #body: readonly Uint8Array[] | undefined
  readonly #bodyBytes: number = 0
  readonly #limitBytes: number
  readonly #settle: (outcome: GatewayAnswer | GatewayError) => void
  readonly #chunks: Buffer[] = []
  #byteLength = 0
  #status = 200
  #answerHeaders: ReadonlyMap<string, string> = new Map()
  #closeListener: (() => void) | undefined
  #isOver = false
  #hasLeft = false

  constructor(call: GatewayCall, limitBytes: number, settle: (outcome: GatewayAnswer | GatewayError) => void) {
    this.method = call.method
    this.path = call.path
    this.#limitBytes = limitBytes
    this.#settle = settle
    if (call.idempotencyKey !== undefined) this.#headers.set('idempotency-key', call.idempotencyKey)
    if (call.form !== undefined) {
      const { contentType, chunks, byteLength } = encodeForm(call.form)
      this.#headers.set('content-type', contentType)
      this.#body = chunks
      this.#bodyBytes = byteLength
    } else if (call.body !== undefined) {
      const json = Buffer.from(JSON.stringify(call.body))
      this.#headers.set('content-type', 'application/json')
      this.#body = [json]
      this.#bodyBytes = json.byteLength
    }
  }

  header(name: string): string | undefined {
    return this.#headers.get(name)
  }

  readBody(limitBytes: number, listener: BodyListener): void {
    if (this.#hasLeft) listener('aborted', [])
    else if (this.#body === undefined) listener(undefined, [])
    else if (this.#bodyBytes > limitBytes) listener('too_large', [])
    else listener(undefined, this.#body)
  }

  get closed(): boolean {
    return this.#hasLeft
  }

  head(status: number, headers: readonly string[]): void {
    this.#status = status
    const list = new Map<string, string>()
    for (let index = 0; index + 1 < headers.length; index += 2) list.set(headers[index]!, headers[index + 1]!)
    this.#answerHeaders = list
  }

  write(bytes: Uint8Array | string): boolean {
    if (this.#isOver) return true
    const chunk = Buffer.from(bytes)
    this.#byteLength += chunk.byteLength
    if (this.#byteLength > this.#limitBytes) {
      const message = `The answer is larger than ${this.#limitBytes} bytes.`
      this.#rejectWith(new GatewayError('upstream_invalid_response', { message }))
    } else this.#chunks.push(chunk)
    return true
  }

  end(bytes?: Uint8Array | string): void {
    if (bytes !== undefined) this.write(bytes)
    this.#finish({ status: this.#status, headers: this.#answerHeaders, body: Buffer.concat(this.#chunks) })
  }

  destroy(): void {
    this.#finish(new GatewayError('upstream_invalid_response', { message: 'The answer was cut short.' }))
  }

  onDrain(): void {
    // Writes are always accepted, up to the limit.
  }

  onClose(listener: () => void): void {
    if (this.#hasLeft) listener()
    else this.#closeListener = listener
  }

  /** Aborts the call, as if the caller had disconnected. */
  readonly abort = (): void => this.#rejectWith(new GatewayError('client_closed_request'))

  #rejectWith(error: GatewayError): void {
    if (this.#isOver) return
    this.#hasLeft = true
    this.#chunks.length = 0
    this.#finish(error)
    this.#closeListener?.()
  }

  #finish(outcome: GatewayAnswer | GatewayError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#settle(outcome)
  }
}

/** Codes of error shapes without a code (API specification, "Errors": insufficient balance). */
const CODES_BY_STATUS: ReadonlyMap<number, ErrorCode> = new Map([[402, 'insufficient_balance']])

/** Returns the error in an answer of the gateway, in any of its shapes. `publicCode` is the code in the answer. */
export function refusedAnswer({ status, headers, body }: GatewayAnswer): GatewayError {
  const outer = objectOf(jsonOf(body))
  const inner = objectOf(outer['error'])
  const shown = nonEmptyText(inner['code']) ?? nonEmptyText(outer['code'])
  const code =
    knownCode(shown) ?? CODES_BY_STATUS.get(status) ?? (status < 500 ? 'upstream_rejected' : 'internal_error')
  const retryAfterSeconds = Number(headers.get('retry-after') ?? Number.NaN)
  return new GatewayError(code, {
    status,
    message: nonEmptyText(inner['message']) ?? nonEmptyText(outer['message']),
    publicCode: shown,
    param: nonEmptyText(inner['param']),
    ...(Number.isFinite(retryAfterSeconds) ? { retryAfterSeconds } : {}),
  })
}

/** Returns the JSON in a body, or `undefined` if it is not JSON. */
export function jsonOf(body: Uint8Array): unknown {
  return parseVendorJson(new TextDecoder().decode(body))
}

function knownCode(code: string | undefined): ErrorCode | undefined {
  return code !== undefined && Object.hasOwn(ERROR_TABLE, code) ? (code as ErrorCode) : undefined
}
