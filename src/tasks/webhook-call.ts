import type { Clock } from '../core/clock.ts'
import type { Transport, TransportFailure } from '../transport/transport.ts'
import { type HeaderMap, retryAfterSeconds } from '../wire/headers.ts'

/** Maximum duration of one attempt, from connecting to the end of the answer, in milliseconds. */
export const WEBHOOK_TIMEOUT_MS = 15_000

/** Maximum number of bytes read from a response body. The content is ignored; an ordinary response ends by itself within this limit. */
const MAX_BODY_BYTES = 64 * 1024

/** Receiver's response, or the reason why there is none. */
export interface WebhookResponse {
  /** HTTP status, or `undefined` if there was no response. */
  readonly status?: number
  /** Display text of the failure, or `undefined` if the message was delivered. */
  readonly error?: string
  /** Wait requested by the header `retry-after`. */
  readonly retryAfterSeconds?: number | undefined
}

/** Message in flight. */
export interface WebhookCall {
  /** Never rejects. Resolves with `undefined` if `abort` ended the call. */
  readonly answer: Promise<WebhookResponse | undefined>
  /** Ends the call and its connection. Has no effect after the end. */
  abort(): void
}

/** Message to send, and the transport to use. */
export interface WebhookCallOptions {
  readonly transport: Transport
  readonly clock: Clock
  readonly url: URL
  /** Flat list: name, value, name, value. */
  readonly headers: readonly string[]
  readonly body: string
}

/**
 * Posts a message. The status decides after the response has ended or 64 KiB of it were read. A response that takes longer than 15
 * seconds or breaks off is a failure, whatever its status. Redirects are failures.
 */
export function postWebhook({ transport, clock, url, headers, body }: WebhookCallOptions): WebhookCall {
  let settle: (answer: WebhookResponse | undefined) => void = () => undefined
  const answer = new Promise<WebhookResponse | undefined>((resolve) => {
    settle = resolve
  })
  let head: WebhookResponse = {}
  let byteLength = 0
  const finish = (outcome: WebhookResponse | undefined): void => {
    deadline.cancel()
    settle(outcome)
  }
  const deadline = clock.schedule(WEBHOOK_TIMEOUT_MS, () => {
    finish({ ...head, error: `no whole answer within ${WEBHOOK_TIMEOUT_MS / 1000} s` })
    control.abort()
  })
  const control = transport.send(
    {
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: 'POST',
      headers: [
        ...['content-type', 'application/json', 'user-agent', 'signalbox', 'accept-encoding', 'identity'],
        // Messages are rare. The receiver would have closed a reused connection by then, and an attempt would fail.
        ...['connection', 'close'],
        ...headers,
      ],
      body,
      firstByteTimeoutMs: WEBHOOK_TIMEOUT_MS,
      idleTimeoutMs: WEBHOOK_TIMEOUT_MS,
    },
    {
      onHead(status, answerHeaders) {
        head = readHead(status, answerHeaders, clock.now())
      },
      onData(chunk) {
        byteLength += chunk.byteLength
        if (byteLength < MAX_BODY_BYTES) return
        finish(head)
        control.abort()
      },
      onEnd: () => finish(head),
      onFailure: (failure) => finish({ ...head, error: textOf(failure) }),
    },
  )
  return {
    answer,
    abort() {
      finish(undefined)
      control.abort()
    },
  }
}

function readHead(status: number, headers: HeaderMap, nowMs: number): WebhookResponse {
  if (status >= 200 && status < 300) return { status }
  const isRedirect = status >= 300 && status < 400
  return {
    status,
    error: `answered with status ${status}${isRedirect ? '; redirects are not followed' : ''}`,
    retryAfterSeconds: retryAfterSeconds(headers, nowMs),
  }
}

const PHASES: Readonly<Record<TransportFailure['phase'], string>> = {
  connect: 'no connection',
  sent: 'no answer',
  body: 'the answer broke off',
}

function textOf({ phase, kind, error }: TransportFailure): string {
  return `${PHASES[phase]} (${kind}): ${error.message === '' ? error.name : error.message}`
}
