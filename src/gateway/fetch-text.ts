import type { Clock } from '../core/clock.ts'
import { BufferedCall } from '../pipeline/buffered-call.ts'
import type { EgressRoute, Transport } from '../transport/transport.ts'
import { joinChunks } from '../wire/join-chunks.ts'

const FETCH_TIMEOUT_MS = 30_000

/** Options of a download. */
export interface FetchTextOptions {
  readonly transport: Transport
  readonly clock: Clock
  readonly egress: EgressRoute | undefined
  readonly maxBytes: number
}

/**
 * Fetches a JSON document for the operator by the transport of calls, which supports proxies. Redirects are not followed.
 * @throws Error for a status other than 2xx, more than `maxBytes`, or no complete answer within 30 seconds.
 */
export async function fetchText(
  address: string,
  { transport, clock, egress, maxBytes }: FetchTextOptions,
): Promise<string> {
  const { origin, pathname, search } = new URL(address)
  const call = new BufferedCall((ended) => ended, maxBytes)
  let stop: (fault: Error) => void = () => undefined
  const stopped = new Promise<never>((_resolve, reject) => {
    stop = reject
  })
  const timer = clock.schedule(FETCH_TIMEOUT_MS, () => {
    stop(new Error(`no complete answer within ${FETCH_TIMEOUT_MS} ms`))
    call.abort()
  })
  try {
    call.begin(transport, {
      ...{ origin, path: `${pathname}${search}`, method: 'GET', headers: ['accept', 'application/json'], body: null },
      ...{ firstByteTimeoutMs: FETCH_TIMEOUT_MS, idleTimeoutMs: FETCH_TIMEOUT_MS, egress },
    })
    const outcome = await Promise.race([call.result, stopped])
    if ('failure' in outcome) throw outcome.failure.error
    if ('oversize' in outcome) throw new Error(`it is larger than ${maxBytes} bytes`)
    const { status, chunks } = outcome.answer
    if (status >= 300 && status < 400) throw new Error(`status ${status}; redirects are not followed`)
    if (status < 200 || status >= 300) throw new Error(`status ${status}`)
    return joinChunks(chunks).toString('utf8')
  } finally {
    timer.cancel()
  }
}
