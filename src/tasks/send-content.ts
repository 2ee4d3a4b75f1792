import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import { checkPublicUrl } from '../transport/egress.ts'
import type { TransportControl, TransportFailure, TransportHandler } from '../transport/transport.ts'
import { firstHeader, type HeaderMap, mediaType } from '../wire/headers.ts'

/** Headers of the vendor's file that are passed to the caller. */
const PASSED_HEADERS = ['content-length', 'content-range', 'accept-ranges', 'etag', 'last-modified']

/**
 * Types that a browser can display and that contain no scripts. The file has the gateway's own origin, where a vendor's page could
 * act with the cookies of the host.
 */
const PLAYED = /^(?:video|audio|image)\/(?!svg)/

/**
 * Streams the content of a completed task to the caller. The address comes from the vendor, so the rule for callers' addresses
 * applies: no private IP address, literal or by DNS, no redirect, and no credential is sent.
 * @throws GatewayError `task_not_finished`, `content_not_found`, or an `upstream_…` code before anything was sent.
 */
export async function sendContent(
  context: PipelineContext,
  exchange: { readonly request: GatewayRequest; readonly sink: ByteSink; readonly requestId: string },
  task: TaskRecord,
): Promise<void> {
  const { state, details } = task
  if (state === 'failed' || state === 'cancelled') throw new GatewayError('content_not_found')
  if (state !== 'completed') throw new GatewayError('task_not_finished', { retryAfterSeconds: 5 })
  if (details.contentUrl === undefined) throw new GatewayError('content_not_found')
  const check = checkPublicUrl(details.contentUrl, { allowPrivate: context.allowPrivateUrls })
  if ('reason' in check)
    throw new GatewayError('upstream_invalid_response', { cause: new Error(`the content's address ${check.reason}`) })
  const { url } = check
  const transfer = new Transfer(exchange.sink, exchange.requestId)
  transfer.begin(
    context.publicTransport.send(
      {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: 'GET',
        headers: [...ACCEPT, ...rangeOf(exchange.request)],
        body: null,
        firstByteTimeoutMs: context.timeouts.firstByteMs,
        idleTimeoutMs: context.timeouts.idleMs,
      },
      transfer,
    ),
  )
  const calls = context.taskCalls
  calls.add(transfer)
  try {
    await transfer.ended
  } finally {
    calls.delete(transfer)
  }
}

const ACCEPT = ['accept', '*/*', 'accept-encoding', 'identity']

/** Headers `range` and `if-range` of the request. If the file is not the one that the caller began with, the whole file is sent. */
function rangeOf(request: GatewayRequest): string[] {
  const range = request.header('range')
  const file = request.header('if-range')
  return range === undefined ? [] : ['range', range, ...(file === undefined ? [] : ['if-range', file])]
}

/** Returns the header `content-range` of a 416 (RFC 9110, section 15.5.17), or `undefined` for other errors. */
export function contentRange({ cause }: GatewayError): string | undefined {
  return cause instanceof RangeCause ? cause.message : undefined
}

class RangeCause extends Error {}

class Transfer implements TransportHandler {
  /** Rejects with a GatewayError if nothing was sent to the caller, or if code on the caller's side failed. */
  readonly ended: Promise<void>
  readonly #sink: ByteSink
  readonly #requestId: string
  #resolve!: () => void
  #reject!: (error: GatewayError) => void
  #control: TransportControl | undefined
  #isSending = false

  constructor(sink: ByteSink, requestId: string) {
    this.#sink = sink
    this.#requestId = requestId
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  begin(control: TransportControl): void {
    this.#control = control
    this.#sink.onDrain(() => control.resume())
    this.#sink.onClose(() => control.abort())
  }

  abort(): void {
    this.#control?.abort()
  }

  onHead(status: number, headers: HeaderMap): void {
    if (status === 416) {
      const message = 'Range: outside of the content'
      const range = firstHeader(headers, 'content-range')
      const cause = range === undefined ? undefined : new RangeCause(range)
      this.#fail(new GatewayError('invalid_request', { status, message, param: 'Range', cause }))
      return
    }
    if (status !== 200 && status !== 206) {
      // The vendor keeps content for a day. After that its address returns 403 or 404.
      const isGone = status === 403 || status === 404 || status === 410
      this.#fail(new GatewayError(isGone ? 'content_not_found' : 'upstream_invalid_response'))
      return
    }
    const type = firstHeader(headers, 'content-type') ?? ''
    const head: string[] = ['x-request-id', this.#requestId, 'x-content-type-options', 'nosniff']
    head.push('content-type', PLAYED.test(mediaType(type)) ? type : 'application/octet-stream')
    for (const name of PASSED_HEADERS) {
      const value = firstHeader(headers, name)
      if (value !== undefined) head.push(name, value)
    }
    this.#isSending = true
    this.#toCaller(() => this.#sink.head(status, head))
  }

  onData(chunk: Uint8Array): void {
    if (!this.#isSending) return
    this.#toCaller(() => {
      if (!this.#sink.write(chunk)) this.#control?.pause()
    })
  }

  onEnd(): void {
    if (!this.#isSending) return
    this.#toCaller(() => this.#sink.end())
    this.#resolve()
  }

  onFailure(failure: TransportFailure): void {
    if (!this.#isSending) {
      this.#reject(
        new GatewayError(failure.kind === 'timeout' ? 'upstream_timeout' : 'upstream_unavailable', {
          cause: failure.error,
        }),
      )
      return
    }
    // A response that has begun must not look complete.
    this.#sink.destroy()
    this.#resolve()
  }

  /** Errors on the caller's side must not be lost in a network callback: the end would never be reported. */
  #toCaller(step: () => void): void {
    try {
      step()
    } catch (cause) {
      this.#sink.destroy()
      this.#fail(GatewayError.from(cause))
    }
  }

  #fail(error: GatewayError): void {
    this.#isSending = false
    this.#reject(error)
    this.#control?.abort()
  }
}
