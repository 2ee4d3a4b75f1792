import type { Clock, Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { brokenResponse, ClientError, clientError, foreignType, requestIdOf } from './client-error.ts'
import { type CallOptions, type ClientOptions, checkClientOptions, gatewayURL } from './client-options.ts'
import { setField } from './upload.ts'

const DEFAULT_TIMEOUT_MS = 600_000
const DEFAULT_MAX_RETRIES = 2
const FIRST_DELAY_MS = 500
const MAX_RETRY_DELAY_MS = 8_000

/** A longer `Retry-After` is not awaited. */
const MAX_RETRY_AFTER_SECONDS = 60

/** Node's error codes of connections that failed before anything was sent. Browsers have none. */
const UNSENT_CODES: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** One call before it is sent. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Path below the base URL: `/chat/completions`. */
  readonly path: string
  /** Body, sent as JSON or as a form. */
  readonly body?: object
  /** Whether a vendor is paid even if the answer is lost. Then the call is not retried if that may have happened. */
  readonly isPaidJob?: boolean
  readonly options?: CallOptions | undefined
}

/** An answer whose headers have arrived, with the scope of its body. */
export interface OpenResponse {
  readonly response: Response
  readonly isPaidJob: boolean
  readonly requestId: string | undefined
  readonly scope: CallScope
  readonly callerSignal: AbortSignal | undefined
}

/** Sends calls to one gateway. */
export class Connection {
  readonly clock: Clock
  readonly #options: ClientOptions
  readonly #baseURL: string
  readonly #fetch: (request: Request) => Promise<Response>

  /** @throws TypeError if the base URL is not http or https, or the key is not a valid header value. */
  constructor(options: ClientOptions) {
    checkClientOptions(options)
    this.#options = options
    this.#baseURL = gatewayURL(options.baseURL)
    this.#fetch = options.fetch ?? ((request) => fetch(request))
    this.clock = options.clock ?? clientClock
  }

  /**
   * Sends a call and reads its JSON.
   * @throws ClientError if the answer is not valid or breaks off; also what {@link open} throws.
   */
  async json<Answer>(call: Call): Promise<Answer> {
    return (await this.jsonWithId<Answer>(call)).body
  }

  /** Sends a call and reads its JSON and the gateway's request id. */
  async jsonWithId<Answer>(call: Call): Promise<{ readonly body: Answer; readonly requestId: string | undefined }> {
    return this.#whole(call, async (response) => {
      const body: unknown = await response.json()
      if (typeof body !== 'object' || body === null) throw new SyntaxError('no object')
      return body as Answer
    })
  }

  /**
   * Sends a call and reads its text.
   * @throws ClientError if an intermediary sent a page, and as {@link json} does.
   */
  async text(call: Call): Promise<string> {
    const { body } = await this.#whole(call, async (response) => {
      if (response.headers.get('content-type')?.startsWith('text/html') === true) throw new SyntaxError('a page')
      return response.text()
    })
    return body
  }

  /** Reads a whole answer. A SyntaxError in `read` marks an invalid answer. */
  async #whole<Body>(
    call: Call,
    read: (response: Response) => Promise<Body>,
  ): Promise<{ readonly body: Body; readonly requestId: string | undefined }> {
    const { response, requestId, isPaidJob, scope, callerSignal } = await this.open(call)
    try {
      return { body: await scope.within(read(response)), requestId }
    } catch (cause) {
      if (callerSignal?.aborted === true) throw callerSignal.reason
      if (scope.isTimedOut) throw this.#timeout(call, requestId)
      const isWhole = (cause as Error | undefined)?.name === 'SyntaxError'
      const fault = isWhole ? `cannot be read as JSON.${foreignType(response, 'json')}` : 'broke off.'
      throw brokenResponse(`The answer ${fault}`, { requestId, isPaidJob }, cause)
    } finally {
      scope.end()
    }
  }

  /**
   * Sends a call, with retries where they are safe, until the head of a successful answer has arrived. The caller ends its
   * scope.
   * @throws ClientError for error answers, failed connections and timeouts; the reason of the caller's signal.
   */
  async open(call: Call): Promise<OpenResponse> {
    const { method, options = {} } = call
    const maxRetries = options.maxRetries ?? this.#options.maxRetries ?? DEFAULT_MAX_RETRIES
    const madeUpKey = method === 'POST' && maxRetries > 0 ? randomKey() : undefined
    const body = bodyOf(call)
    const headers = this.#headers(call, options.idempotencyKey ?? madeUpKey)
    for (let attempt = 0; ; attempt++) {
      options.signal?.throwIfAborted()
      const scope = new CallScope(this.clock, this.#timeoutMs(call), options.signal)
      try {
        return await this.#attempt(call, { headers, body, scope })
      } catch (cause) {
        scope.cancel()
        if (options.signal?.aborted === true) throw options.signal.reason
        // A disconnected call is charged, so a retry after a timeout would be charged too.
        if (scope.isTimedOut) throw this.#timeout(call)
        // Other errors come from the caller's own callback.
        const isRetried = attempt < maxRetries && GatewayError.isInstance(cause)
        const delayMs = isRetried ? retryDelayMs(cause, attempt) : undefined
        if (delayMs === undefined) throw cause
        await pause(this.clock, delayMs, options.signal)
      }
    }
  }

  async #attempt(
    { method, path, options, isPaidJob = false }: Call,
    { headers, body, scope }: { headers: Headers; body: string | FormData | null; scope: CallScope },
  ): Promise<OpenResponse> {
    const request = new Request(`${this.#baseURL}${path}`, { method, headers, body, signal: scope.signal })
    const response = await this.#reached(isPaidJob, () => scope.within(this.#fetch(request)))
    const requestId = requestIdOf(response)
    options?.onResponse?.({
      status: response.status,
      requestId,
      cost: response.headers.get('x-signalbox-cost') ?? undefined,
      costDue: response.headers.get('x-signalbox-cost-due') ?? undefined,
      dropped: response.headers.get('x-signalbox-dropped')?.split(', ') ?? [],
      headers: response.headers,
    })
    if (!response.ok) {
      const nowMs = this.clock.now()
      throw await this.#reached(isPaidJob, () => scope.within(clientError(response, { nowMs, isPaidJob })))
    }
    return { response, requestId, isPaidJob, scope, callerSignal: options?.signal }
  }

  #headers({ body, options }: Call, idempotencyKey: string | undefined): Headers {
    const headers = new Headers()
    const { apiKey } = this.#options
    if (apiKey !== undefined) headers.set('authorization', `Bearer ${apiKey}`)
    // The runtime chooses the boundary of a form when it serializes the form.
    if (body !== undefined && !(body instanceof FormData)) headers.set('content-type', 'application/json')
    if (idempotencyKey !== undefined) headers.set('idempotency-key', idempotencyKey)
    for (const [name, value] of Object.entries(options?.headers ?? {})) headers.set(name, value)
    return headers
  }

  /** Converts every failure of the connection to one error. */
  async #reached<Result>(isPaidJob: boolean, exchange: () => Promise<Result>): Promise<Result> {
    try {
      return await exchange()
    } catch (cause) {
      const message = `The gateway at ${this.#baseURL} could not be reached${reasonOf(cause)}.`
      throw new ClientError('upstream_unavailable', { message, cause, retryable: !isPaidJob || isUnsent(cause) })
    }
  }

  #timeoutMs({ options }: Call): number {
    return options?.timeoutMs ?? this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS
  }

  #timeout(call: Call, requestId?: string): ClientError {
    const message = `The gateway did not answer within ${this.#timeoutMs(call)} ms.`
    return new ClientError('upstream_timeout', { message, requestId, retryable: call.isPaidJob !== true })
  }
}

function bodyOf({ body, options }: Call): string | FormData | null {
  if (body === undefined) return null
  const extra = options?.extraBody ?? {}
  if (!(body instanceof FormData)) return JSON.stringify({ ...body, ...extra })
  for (const [name, value] of Object.entries(extra)) setField(body, name, value)
  return body
}

/** `crypto.randomUUID` exists only on secure pages. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * Returns the delay before a retry: the one that the gateway requested, else one that doubles each time, randomly shortened by up to
 * a quarter. Returns `undefined` if there is no retry. `retryable` decides: 408, 429, 5xx, failed connections, and calls whose first
 * attempt is still being answered. Only videos take longer than the retries wait.
 */
export function retryDelayMs(error: GatewayError, attempt: number): number | undefined {
  if (!error.retryable || error.code === 'task_not_finished') return undefined
  const { retryAfterSeconds } = error
  if (retryAfterSeconds !== undefined) {
    return retryAfterSeconds > MAX_RETRY_AFTER_SECONDS ? undefined : retryAfterSeconds * 1000
  }
  return Math.min(MAX_RETRY_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt) * (1 - Math.random() / 4)
}

/** Whether certainly no part of the request was sent. */
function isUnsent(error: unknown): boolean {
  return UNSENT_CODES.has(causeOf(error).code)
}

/** Returns the reason of a failed connection, to append to a message; empty if unknown. Node hides it below a `fetch failed`. */
function reasonOf(error: unknown): string {
  const { code, message } = causeOf(error)
  const reason = code ?? message
  return typeof reason === 'string' && reason !== '' ? `: ${reason}` : ''
}

function causeOf(error: unknown): { readonly code?: unknown; readonly message?: unknown } {
  const { cause } = (error ?? {}) as { readonly cause?: object | null }
  return cause ?? {}
}

/** Abort scope of one attempt. It ends by the caller's signal, by timeout, or at the end of the attempt. */
class CallScope {
  isTimedOut = false
  readonly #controller = new AbortController()
  readonly #callerSignal: AbortSignal | undefined
  readonly #timer: Timer
  readonly #abort = (): void => this.#controller.abort(this.#callerSignal?.reason)

  constructor(clock: Clock, timeoutMs: number, callerSignal: AbortSignal | undefined) {
    this.#callerSignal = callerSignal
    this.#timer = clock.schedule(timeoutMs, () => {
      this.isTimedOut = true
      this.#controller.abort()
    })
    callerSignal?.addEventListener('abort', this.#abort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Rejects if the attempt is aborted, even if `work` ignores its signal. */
  async within<Result>(work: Promise<Result>): Promise<Result> {
    const { signal } = this
    let onAbort: (() => void) | undefined
    const ended = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason)
      // A signal that is already aborted emits no event.
      if (signal.aborted) onAbort()
      else signal.addEventListener('abort', onAbort, { once: true })
    })
    try {
      return await Promise.race([work, ended])
    } finally {
      if (onAbort !== undefined) signal.removeEventListener('abort', onAbort)
    }
  }

  /** Stops the timeout because a stream has begun. */
  stopTimer(): void {
    this.#timer.cancel()
  }

  /** Aborts the rest of a failed attempt. */
  cancel(): void {
    this.end()
    this.#controller.abort()
  }

  /** Ends the scope of the attempt. */
  end(): void {
    this.#timer.cancel()
    this.#callerSignal?.removeEventListener('abort', this.#abort)
  }
}

// Longer delays overflow timers, which would then fire immediately.
const MAX_DELAY_MS = 2 ** 31 - 1

/** System clock. Its timers keep a Node process alive until the answer arrives. */
const clientClock: Clock = {
  now: () => Date.now(),
  schedule(delayMs, callback) {
    const handle = setTimeout(callback, Math.min(Math.max(delayMs, 0), MAX_DELAY_MS))
    return { cancel: () => clearTimeout(handle) }
  },
}

/**
 * Waits for a delay.
 * @throws the signal's reason as soon as it is aborted.
 */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.schedule(delayMs, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    const abort = (): void => {
      timer.cancel()
      reject(signal?.reason)
    }
    if (signal?.aborted === true) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
}
